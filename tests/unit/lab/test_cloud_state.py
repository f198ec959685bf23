# SPDX-License-Identifier: Apache-2.0
"""The cloud's records on disk."""

import threading

import pytest

from lab.cloud.state import State


def empty_and_fail(state):
    with state.edit() as records:
        records["ports"].clear()
        del records["ports"]["absent"]


def test_an_edit_that_fails_leaves_everything_as_it_was(tmp_path):
    state = State(tmp_path)
    with state.edit() as records:
        records["ports"]["p"] = {}
    with pytest.raises(KeyError):
        empty_and_fail(state)
    assert state.read()["ports"] == {"p": {}}


def test_edits_of_several_engines_do_not_lose_each_other(tmp_path):
    def add(worker):
        for number in range(20):
            with State(tmp_path).edit() as records:
                records["ports"][f"{worker}-{number}"] = {}

    workers = [threading.Thread(target=add, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(State(tmp_path).read()["ports"]) == 80
