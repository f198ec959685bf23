# SPDX-License-Identifier: Apache-2.0
"""Journals for tests, written by the real one."""

from tacker_k8s_mgmt import journal

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"
OTHER = "11111111-5a0a-4f0e-9a55-3a1c1f1d2e3f"
ERROR = "step 2/2 failed: worker-1: Download: no route to host"


def nobody_warns(text):
    raise AssertionError(text)


class Recorder:
    """Records one hook, step by step."""

    def __init__(self, state_path, hook="instantiate_end", vnf_id=VNF, api="v1"):
        path = str(state_path)
        self._journal = journal.Journal(path, vnf_id, hook, nobody_warns, api=api)
        self._hook = hook
        self._number = 0
        self.path = journal.path_of(path, vnf_id)

    def begin(self, steps=2, **details):
        start = {"operation": self._hook, "steps": steps, **details}
        self._journal.record("operation-start", **start)
        self._steps = steps
        return self

    def step_start(self, name="run cluster.yml", **fields):
        self._number += 1
        self._step = {"number": self._number, "total": self._steps, "step": name}
        self._journal.record("step-start", **self._step, **fields)

    def progress(self, play=1, plays=3, task="Gather facts", tasks=7, **more):
        name = "Bootstrap hosts"
        text = f'play {play}/{plays} "{name}", task {tasks} "{task}"'
        found = {"text": text, "play": play, "plays": plays, "play_name": name}
        found |= {"task": task, "tasks": tasks, "results": 21, **more}
        self._journal.record("progress", **found)

    def note(self, text):
        self._journal.record("note", text=text)

    def step_end(self, outcome="done", seconds=4.2):
        self._journal.record("step-end", **self._step, outcome=outcome, seconds=seconds)

    def end(self, outcome="completed", seconds=4.5, **fields):
        self._journal.record(
            "operation-end", outcome=outcome, seconds=seconds, **fields
        )

    def step(self, name="run cluster.yml", outcome="done", **fields):
        self.step_start(name)
        self.progress(**fields)
        self.step_end(outcome)


def completed(state_path, hook="instantiate_end", ended=None, begun=None, **fields):
    """One hook that went well; where it was recorded.

    :param ended: what its end names besides; former releases named nothing.
    :param begun: what its start names besides.
    """
    one = Recorder(state_path, hook, **fields).begin(**(begun or {}))
    one.step("claim the cluster's directory")
    one.step()
    one.end(**(ended or {}))
    return one.path


def failed(state_path, hook="instantiate_end", error=ERROR, begun=None, **fields):
    """One hook that failed in its second step."""
    one = Recorder(state_path, hook, **fields).begin(**(begun or {}))
    one.step("claim the cluster's directory")
    one.step(outcome="failed")
    one.end("failed", error=error)
    return one.path
