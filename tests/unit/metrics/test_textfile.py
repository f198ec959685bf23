# SPDX-License-Identifier: Apache-2.0
"""The file for node exporter: what is in it, and what happens around it."""

import contextlib
import json
import os
import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tacker_k8s_mgmt import journal, metrics
from tests.unit.tools.cli.journals import OTHER, VNF, Recorder, completed, failed


@pytest.fixture
def directory(tmp_path):
    """Of the textfile collector; the state is beside it."""
    made = tmp_path / "textfile"
    made.mkdir()
    return made


def written(directory):
    """The samples of the file: values by names and labels."""
    path = metrics.write(str(directory.parent), str(directory))
    return samples(Path(path).read_text())


def samples(text):
    return {
        (sample.name.removeprefix("tacker_k8s_mgmt_"), *sample.labels.values()): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def runs(found):
    """How many hooks ended, by operation, hook and outcome, if any did."""
    return {
        (key[2], key[1], key[3]): value
        for key, value in found.items()
        if key[0] == "hook_runs_total" and value
    }


def test_hooks_are_counted_by_operation_and_outcome(directory):
    completed(directory.parent, "instantiate_start")
    failed(directory.parent)
    completed(directory.parent)
    completed(directory.parent, vnf_id=OTHER)
    found = written(directory)
    assert runs(found) == {
        ("instantiate", "instantiate_start", "completed"): 1,
        ("instantiate", "instantiate_end", "failed"): 1,
        ("instantiate", "instantiate_end", "completed"): 2,
    }
    # So that the first of them increases it.
    assert found["hook_runs_total", "instantiate_end", "instantiate", "cut_off"] == 0


def test_durations_are_in_buckets_as_is_the_playbooks_share(directory):
    for seconds in (0.5, 1, 1.1, 9000):
        one = Recorder(directory.parent, "heal_end").begin(2)
        one.step_start("wait")
        one.step_end(seconds=0.1)
        one.step_start("run scale.yml")
        one.progress()
        one.step_end(seconds=0.25)
        one.end(seconds=seconds)
    found = written(directory)
    name = "hook_duration_seconds"
    limits = {"1.0": 2, "5.0": 3, "7200.0": 3, "+Inf": 4}
    for limit, count in limits.items():
        assert found[f"{name}_bucket", "heal_end", limit, "heal"] == count
    assert found[f"{name}_count", "heal_end", "heal"] == 4
    assert found[f"{name}_sum", "heal_end", "heal"] == 9002.6
    assert found["playbook_seconds_total", "heal_end", "heal"] == 1.0


def test_failed_hooks_have_no_part_in_durations(directory):
    failed(directory.parent)
    assert not [key for key in written(directory) if "duration_seconds_sum" in key[0]]


def test_steps_have_durations_and_failures_by_kind(directory):
    one = Recorder(directory.parent, "scale_end").begin(4)
    for batch in (1, 2):
        one.step_start(f"batch {batch}/2: empty worker-{batch}", kind="empty a batch")
        one.step_end(seconds=batch)
    one.step_start("join", kind="join")
    one.step_end("nothing to do", seconds=1)
    one.step_start("run", kind="run")
    one.step_end("failed", seconds=50)
    one.end("failed", error="why")
    found = written(directory)
    steps = {key: value for key, value in found.items() if key[0].startswith("step_")}
    assert steps == {
        ("step_duration_seconds_count", "scale_end", "empty a batch"): 2,
        ("step_duration_seconds_sum", "scale_end", "empty a batch"): 3,
        ("step_failures_total", "scale_end", "empty a batch"): 0,
        ("step_failures_total", "scale_end", "run"): 1,
    }


def test_steps_of_former_journals_make_no_series_of_their_own(directory):
    one = Recorder(directory.parent, "change_current_package_end").begin(1)
    one.step("batch 1/2 of workers: empty worker-1, worker-2")
    one.end()
    found = written(directory)
    assert runs(found)
    assert not [key for key in found if key[0].startswith("step_")]


def test_work_for_a_cnf_makes_no_series_for_each_cnf(directory):
    completed(directory.parent, f"scale_end of CNF {OTHER}")
    completed(directory.parent, f"scale_end of CNF {VNF}")
    names = ("scale of CNF", "scale_end of CNF")
    assert runs(written(directory)) == {(*names, "completed"): 2}


def test_a_mistyped_state_path_is_not_made(directory):
    absent = directory / "absent"
    with pytest.raises(FileNotFoundError):
        metrics.write(str(absent), str(directory))
    assert not absent.exists()


def test_a_hook_that_was_cut_off_counts_once_the_next_one_runs(directory):
    Recorder(directory.parent).begin().step_start()
    assert runs(written(directory)) == {}
    completed(directory.parent)
    assert runs(written(directory)) == {
        ("instantiate", "instantiate_end", "cut_off"): 1,
        ("instantiate", "instantiate_end", "completed"): 1,
    }


def test_nothing_counts_twice_and_nothing_is_forgotten_with_the_journal(directory):
    keep = journal.Journal(str(directory.parent), VNF, "heal_end", pytest.fail, keep=1)
    completed(directory.parent)
    failed(directory.parent, "heal_end")
    before = runs(written(directory))
    assert runs(written(directory)) == before
    keep.record("operation-start", steps=0)
    keep.record("operation-end", outcome="completed", seconds=1)
    path = Path(journal.path_of(str(directory.parent), VNF))
    assert path.read_text().count("operation-start") == 1
    assert runs(written(directory)) == {**before, ("heal", "heal_end", "completed"): 1}
    path.unlink()
    found = written(directory)
    assert len(runs(found)) == 3
    assert ("last_hook_failed", VNF) not in found


def last(found, vnf_id=VNF):
    names = ("last_hook_failed", "operation_under_way")
    return tuple(found[name, vnf_id] for name in names)


def test_each_vnf_has_its_last_hook(directory):
    Recorder(directory.parent).begin(vnf_name="edge-4").step_start()
    found = written(directory)
    assert found["vnf_info", VNF, "edge-4"] == 1
    assert last(found) == (0, 1)
    assert found["last_record_timestamp_seconds", VNF] > 1e9
    failed(directory.parent)
    assert last(written(directory)) == (1, 0)
    completed(directory.parent)
    found = written(directory)
    assert last(found) == (0, 0)
    assert found["last_hook_duration_seconds", VNF] == 4.5


def test_a_vnf_that_waits_for_its_next_hook_is_under_way(directory):
    completed(directory.parent, "heal_start", {"followed_by": "heal_end"})
    assert last(written(directory)) == (0, 1)


def test_a_terminated_vnf_has_no_series_of_its_own(directory):
    completed(directory.parent)
    place = str(directory.parent), str(directory)
    metrics.write_check(*place, VNF, {"heat": 1}, [])
    assert written(directory)["check_differences", "heat", VNF] == 1
    completed(directory.parent, "terminate_end", {"followed_by": ""})
    found = written(directory)
    assert not [key for key in found if VNF in key]
    assert len(runs(found)) == 2


def test_a_check_shows_its_differences_until_the_next_one(directory):
    completed(directory.parent)
    place = str(directory.parent), str(directory), VNF
    metrics.write_check(*place, {"heat": 0, "cluster": 2}, ["heat"])
    found = written(directory)
    assert found["check_differences", "cluster", VNF] == 2
    assert found["check_source_unread", "heat", VNF] == 1
    assert found["check_source_unread", "cluster", VNF] == 0
    metrics.write_check(*place, {"heat": 0, "cluster": 0}, [])
    found = written(directory)
    assert found["check_differences", "cluster", VNF] == 0
    assert found["check_source_unread", "heat", VNF] == 0
    assert found["check_timestamp_seconds", VNF] > 1e9


def test_the_collector_may_read_the_file_and_nobody_the_state(directory):
    completed(directory.parent)
    former = os.umask(0o077)
    try:
        metrics.write(str(directory.parent), str(directory))
    finally:
        os.umask(former)
    assert [path.name for path in directory.iterdir()] == [metrics.FILE]
    assert (directory / metrics.FILE).stat().st_mode & 0o777 == 0o644
    own = directory.parent / "metrics"
    assert own.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in own.iterdir()} == {0o600}


def test_text_is_the_same_without_a_file(directory):
    completed(directory.parent)
    assert runs(samples(metrics.text(str(directory.parent)))) == runs(
        written(directory)
    )
    assert metrics.text(str(directory.parent)).endswith("\n")


def test_writers_at_the_same_time_lose_nothing(directory):
    ids = [f"{number:08d}-5a0a-4f0e-9a55-3a1c1f1d2e3f" for number in range(8)]

    def record(vnf_id):
        completed(directory.parent, vnf_id=vnf_id)
        metrics.write(str(directory.parent), str(directory))

    threads = [threading.Thread(target=record, args=(vnf_id,)) for vnf_id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = samples((directory / metrics.FILE).read_text())
    assert runs(found) == {("instantiate", "instantiate_end", "completed"): 8}


def test_a_writer_that_never_ends_is_not_waited_for(directory, monkeypatch):
    monkeypatch.setattr(metrics, "_LOCK_SECONDS", 0.1)
    with (
        metrics.changed(str(directory.parent)),
        pytest.raises(BlockingIOError),
        metrics.changed(str(directory.parent)),
    ):
        pass


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"totals": {}}', b"null", b"\xff\0"]
)
def test_a_damaged_state_begins_anew(directory, content, caplog):
    completed(directory.parent)
    before = written(directory)
    (directory.parent / "metrics" / "totals.json").write_bytes(content)
    assert written(directory) == before
    assert "start again" in caplog.text


def test_so_does_one_with_half_a_character(directory, caplog):
    """JSON may have it, and Prometheus' file cannot."""
    completed(directory.parent, vnf_id=VNF)
    written(directory)
    place = directory.parent / "metrics" / "totals.json"
    document = json.loads(place.read_text())
    document["vnfs"] = {VNF: {**document["vnfs"][VNF], "name": "\ud800"}}
    place.write_text(json.dumps(document))
    before = written(directory)
    assert "start again" in caplog.text
    assert before == written(directory)


@pytest.mark.parametrize("name", ["metrics/lock", "metrics/totals.json"])
def test_a_named_pipe_is_not_waited_for(directory, name):
    place = directory.parent / name
    place.parent.mkdir()
    os.mkfifo(place)
    with pytest.raises(OSError, match=f"(not a regular file|No such device).*{name}"):
        metrics.write(str(directory.parent), str(directory))
    # Also if something is at its other end.
    other = os.open(place, os.O_RDWR | os.O_NONBLOCK)
    with pytest.raises(OSError, match="not a regular file"):
        metrics.write(str(directory.parent), str(directory))
    os.close(other)
    assert not list(directory.iterdir())


def test_a_failed_write_leaves_the_state_as_it_was(directory):
    completed(directory.parent)
    with pytest.raises(OSError, match="absent"):
        metrics.write(str(directory.parent), str(directory / "absent"))
    assert not (directory.parent / "metrics" / "totals.json").exists()
    assert len(runs(written(directory))) == 1


def test_the_state_is_json_without_objects_of_python(directory):
    completed(directory.parent)
    written(directory)
    document = json.loads((directory.parent / "metrics" / "totals.json").read_text())
    assert set(document) == {"totals", "vnfs", "checks"}


NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
class TestRoot:
    """Root writes the metrics of a conductor whose account has been taken over."""

    @pytest.fixture
    def state_path(self):
        # pytest's own directories are closed to others.
        place = Path(tempfile.mkdtemp(prefix="metrics-", dir="/tmp"))
        place.chmod(0o755)
        made = place / "state"
        made.mkdir()
        completed(made)
        for path in (made, *made.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        yield made
        shutil.rmtree(place)

    @pytest.fixture
    def victim(self, state_path):
        place = state_path.parent / "root"
        place.mkdir(mode=0o755)
        (place / "shadow").write_text("root:secret")
        (place / "shadow").chmod(0o600)
        return place

    @staticmethod
    def seen(victim):
        return {
            path.name: (path.stat().st_uid, path.stat().st_mode, path.stat().st_size)
            for path in (victim, *victim.iterdir())
        }

    def test_its_files_are_the_conductors(self, state_path):
        directory = state_path.parent / "textfile"
        directory.mkdir()
        path = metrics.write(str(state_path), str(directory))
        assert os.stat(path).st_uid == 0
        own = [*state_path.rglob("metrics*"), *state_path.rglob("metrics/*")]
        assert len(own) > 2
        assert {one.stat().st_uid for one in own} == {NOBODY}
        assert metrics.text(str(state_path)) == Path(path).read_text()
        assert os.geteuid() == 0

    @pytest.mark.parametrize(
        "links",
        [
            {"metrics/lock": "shadow"},
            {"metrics/totals.json": "shadow"},
            {"metrics/.totals.json": "shadow"},
            {"metrics": ""},
            {"metrics/lock": "new"},
            {"journal": ""},
        ],
        ids=lambda links: next(iter(links)),
    )
    @pytest.mark.parametrize("writes", ["text", "write", "write_check"])
    def test_links_lead_nowhere(self, state_path, victim, links, writes):
        for name, target in links.items():
            place = state_path / name
            if place.name != "metrics":
                place.parent.mkdir(exist_ok=True)
                os.chown(place.parent, NOBODY, NOBODY)
            if place.is_dir():
                shutil.rmtree(place)
            place.symlink_to(victim / target)
            os.lchown(place, NOBODY, NOBODY)
        before, directory = self.seen(victim), state_path.parent / "textfile"
        directory.mkdir()
        where = () if writes == "text" else (str(directory),)
        more = (VNF, {"heat": 1}, ()) if writes == "write_check" else ()
        with contextlib.suppress(OSError):
            getattr(metrics, writes)(str(state_path), *where, *more)
        assert self.seen(victim) == before
        assert os.geteuid() == 0

    def test_a_state_path_that_is_exchanged_meanwhile(
        self, state_path, victim, monkeypatch
    ):
        """It is root's when its owner is looked up, and then a way to root's files."""
        theirs = state_path.rename(state_path.parent / "theirs")
        (theirs / "metrics").symlink_to(victim)
        os.lchown(theirs / "metrics", NOBODY, NOBODY)
        state_path.mkdir()
        fstat, before = os.fstat, self.seen(victim)

        def exchanged(descriptor):
            status = fstat(descriptor)
            if theirs.exists():
                state_path.rename(state_path.parent / "roots")
                theirs.rename(state_path)
            return status

        monkeypatch.setattr(os, "fstat", exchanged)
        with contextlib.suppress(OSError):
            metrics.text(str(state_path))
        assert not theirs.exists()
        assert self.seen(victim) == before
        assert os.geteuid() == 0

    def test_a_link_of_theirs_in_place_of_the_state_path(self, state_path, victim):
        theirs = state_path.rename(state_path.parent / "theirs")
        before = self.seen(victim)
        for target in (victim, theirs):
            state_path.unlink(missing_ok=True)
            state_path.symlink_to(target)
            os.lchown(state_path, NOBODY, NOBODY)
            with pytest.raises(OSError, match=r"link of another user.*state"):
                metrics.text(str(state_path))
            assert os.geteuid() == 0
        assert self.seen(victim) == before

    def test_a_collectors_directory_of_theirs_is_no_way_either(
        self, state_path, victim
    ):
        theirs = state_path.parent / "theirs"
        theirs.mkdir()
        os.chown(theirs, NOBODY, NOBODY)
        path = Path(metrics.write(str(state_path), str(theirs)))
        assert path.stat().st_uid == NOBODY
        path.unlink()
        path.symlink_to(victim / "shadow")
        before = self.seen(victim)
        with pytest.raises(OSError, match="symbolic link"):
            metrics.write(str(state_path), str(theirs))
        assert self.seen(victim) == before
