# SPDX-License-Identifier: Apache-2.0
"""Commands for a cluster with Tacker's own configuration, database and objects."""

import fcntl
import json
import sys
import types
from datetime import datetime

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context
from tacker.sol_refactored import objects as v2_objects

from tacker_k8s_mgmt import errors, journal
from tacker_k8s_mgmt.hooks import instances
from tacker_k8s_mgmt.hooks.v1 import lookup, vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import VIM_KEY, V1Instance
from tacker_k8s_mgmt.hooks.v2 import lookup as v2_lookup
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.model.vim import Vim
from tacker_k8s_mgmt.remote.ssh import login
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, RecordedKeys
from tests.contract.tacker_configuration import (
    configured,
    database,
    python,
    rows_of,
)
from tests.contract.v1_instances import hook
from tests.helpers.requests import params
from tests.helpers.sshd import PASSWORD, Sshd

CONTEXT = tacker_context.get_admin_context()
NOBODY = "0f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("tacker")


@pytest.fixture(scope="module")
def config_file(place):
    return configured(place)


@pytest.fixture(scope="module")
def known(place, config_file):
    """Ids of the VNF instances, by what they are."""
    # Nothing listens there.
    return database(place, config_file, port=1)


@pytest.fixture
def _quick(request, monkeypatch):
    """What is started has done its imports, unless a test has it start alone."""
    if "alone" not in request.fixturenames:
        program = request.getfixturevalue("python_for_commands")
        monkeypatch.setattr(sys, "executable", program)


@pytest.fixture
def check(config_file, _quick):
    def run(vnf_id, *arguments, files=(config_file,)):
        words = [word for file in files for word in ("--config-file", file)]
        command = ("-m", "tacker_k8s_mgmt.tools.cli", "cluster", "check", vnf_id)
        return python(*command, *words, *arguments)

    return run


def see_all_asked(done, known, api=""):
    """See that all was asked of a cluster of which nothing answers.

    :param api: the beginning of its names in :func:`known`.
    """
    assert done.returncode == 2, done.stderr
    assert "secret" not in done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["vnf_instance_name"] == f"{api}cluster"
    failed = known[f"{api}operation"]
    assert report["open_operation"] == f"HEAL {failed} is FAILED_TEMP"
    silent = report["not_asked"]
    assert set(silent) == {"heat", "inventory", "cluster", "load_balancer"}
    assert "No SSH connection to ansible@127.0.0.1:1" in silent["inventory"]
    (balancer,) = report["rows"]
    assert balancer["vim"] == "-"
    assert [difference["what"] for difference in balancer["differences"]] == [
        "the cluster is no VIM in Tacker"
    ]


@pytest.mark.usefixtures("alone")
def test_everything_is_asked_and_nothing_is_written(check, known, place):
    before, written = rows_of(place), set(place.rglob("*"))
    see_all_asked(check(known["cluster"], "--json"), known)
    assert rows_of(place) == before
    # Not even the directory in which host keys would be recorded.
    assert set(place.rglob("*")) == written


@pytest.mark.usefixtures("alone")
def test_nothing_but_the_report_is_on_the_screen_and_no_secret(check, known):
    done = check(known["cluster"])
    assert done.returncode == 2
    assert done.stderr == ""
    assert "Could not be asked: inventory." in done.stdout
    assert "secret" not in done.stdout


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("dormant", "is no cluster"),
        ("terminated", "is not instantiated"),
        ("broken", "k8s_cluster_installation_param has"),
    ],
)
def test_what_is_no_cluster_is_reported(check, known, which, said):
    done = check(known[which])
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("name", ["idle", "v2 idle"])
def test_a_vnf_instance_may_be_named(check, known, name):
    done = check(name, "--json")
    assert json.loads(done.stdout)["vnf_instance_id"] == known[name]


def test_a_name_of_several_or_of_none_is_refused(check, known):
    done = check("cluster")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Several VNF instances have the name cluster: " in done.stderr
    assert known["cluster"] in done.stderr
    assert "Tacker has no VNF instance nobody, " in check("nobody").stderr


@pytest.mark.usefixtures("_quick")
def test_the_state_of_an_operation_of_either_api(known, config_file, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys; from tacker_k8s_mgmt.hooks import instances;"
        f"assert not instances.under_way('{known['v2 cluster']}', sys.argv[1:2]);"
        f"assert not instances.under_way('{known['cluster']}', sys.argv[1:2]);"
        f"assert instances.under_way('{known['dormant']}', sys.argv[1:2]);"
        "print([instances.operation_state(one, sys.argv[1:2]) for one in sys.argv[2:]])"
    )
    operations = (known["operation"], known["v2 operation"], NOBODY)
    done = python(str(program), config_file, *operations)
    assert done.stdout == "['FAILED_TEMP', 'FAILED_TEMP', '']\n", done.stderr


class TestList:
    @pytest.fixture
    def rows(self, config_file, _quick):
        command = ("-m", "tacker_k8s_mgmt.tools.cli", "cluster", "list", "--json")
        done = python(*command, TACKER_K8S_MGMT_CONFIG=config_file)
        assert done.returncode == 0, done.stderr
        assert "secret" not in done.stdout
        return {row["VNF Instance ID"]: row for row in json.loads(done.stdout)}

    def test_clusters_of_both_apis_and_nothing_else(self, rows, known, place):
        named = {name for name, one in known.items() if one in rows}
        assert named == {
            *("cluster", "idle", "terminated", "broken", "vim"),
            *("v2 cluster", "v2 terminated", "v2 forgotten", "v2 idle", "v2 vim"),
        }

    def test_state_vim_url_and_last_operation(self, rows, known):
        one, two = rows[known["cluster"]], rows[known["v2 cluster"]]
        for row, api in ((one, "v1"), (two, "v2")):
            assert (row["API"], row["State"]) == (api, "INSTANTIATED")
            # A later one has completed.
            assert (row["Operation"], row["Operation State"]) == ("HEAL", "FAILED_TEMP")
            assert (row["VIM"], row["API URL"]) == ("", "")
        assert one["Operation ID"] == known["operation"]
        assert two["Operation ID"] == known["v2 operation"]
        assert rows[known["v2 terminated"]]["State"] == "NOT_INSTANTIATED"
        one, two = rows[known["vim"]], rows[known["v2 vim"]]
        assert (one["VIM"], one["API URL"]) == ("vim", "https://one.example:6443")
        assert two["API URL"] == "https://two.example:6443"
        assert two["VIM"].startswith("k8s_two")

    def test_vms_are_those_that_tacker_lists(self, rows, known):
        assert rows[known["v2 idle"]]["VMs"] == {}
        assert rows[known["vim"]]["VMs"] == {"masterNode": 1, "workerNode": 2}

    @pytest.mark.parametrize(
        "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x"]
    )
    def test_a_database_without_a_file_is_not_missed(self, url):
        instances._refuse_missing_file(url)

    @pytest.mark.usefixtures("_quick")
    def test_without_a_database_it_is_an_error_and_none_is_made(self, tmp_path):
        database = tmp_path / "absent.sqlite"
        config = tmp_path / "tacker.conf"
        config.write_text(f"[database]\nconnection = sqlite:///{database}\n")
        words = ("cluster", "list", "--config-file", str(config))
        done = python("-m", "tacker_k8s_mgmt.tools.cli", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"Tacker's database {database} is not there." in done.stderr
        assert not database.exists()


class TestV2:
    """A VNF instance of the v2 API, whose kept parameters have no secrets."""

    def test_everything_is_asked_and_nothing_is_written(self, check, known, place):
        before = rows_of(place)
        see_all_asked(check(known["v2 cluster"], "--json"), known, "v2 ")
        assert rows_of(place) == before

    @pytest.mark.usefixtures("_quick")
    def test_secrets_are_those_of_the_last_request_that_was_carried_out(
        self, known, config_file, tmp_path
    ):
        program = tmp_path / "secrets.py"
        program.write_text(
            "import sys; from tacker_k8s_mgmt.hooks import instances\n"
            "with instances.open_cluster(sys.argv[1], sys.argv[2:]) as found:\n"
            "    print(*sorted(set(found.params.secrets())))"
        )
        report = python(str(program), known["v2 cluster"], config_file)
        assert report.stdout.split() == [
            "b4lancer-secret",
            "changed-secret",
            "n0de-secret",
        ]

    def test_operations_are_in_the_order_of_their_beginning(self, monkeypatch):
        """Whatever the order of the database is; the latest request counts first."""
        v2_objects.register_all()
        hours = {"second": 2, "fourth": 4, "first": 1, "third": 3}
        states = {"third": "ROLLED_BACK"}
        rows = [
            types.SimpleNamespace(
                startTime=datetime(2026, 1, 1, hour),
                to_dict=lambda name=name: {
                    "id": name,
                    "operation": "HEAL",
                    "operationState": states.get(name, "COMPLETED"),
                    "operationParams": {"additionalParams": {"of": name}},
                },
            )
            for name, hour in hours.items()
        ]
        monkeypatch.setattr(
            v2_objects.VnfLcmOpOccV2, "get_by_filter", lambda *_, **__: [*rows]
        )
        instance = types.SimpleNamespace(to_dict=dict)
        monkeypatch.setattr(v2_objects.VnfInstanceV2, "get_by_id", lambda *_: instance)
        found = [row["id"] for row in v2_lookup._operations(CONTEXT, "vnf")]
        assert found == ["first", "second", "third", "fourth"]
        carried_out = v2_lookup.V2Record("vnf").carried_out()
        assert [one["of"] for one in carried_out] == ["fourth", "second", "first"]

    @pytest.mark.parametrize(
        ("which", "said"),
        [
            ("v2 dormant", "is no cluster"),
            ("v2 terminated", "is not instantiated"),
            ("v2 forgotten", "ansible.password"),
        ],
    )
    def test_what_cannot_be_looked_at_is_reported(self, check, known, which, said):
        done = check(known[which])
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def test_a_vnf_instance_that_is_not_there(check, known):
    done = check(NOBODY)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"Tacker has no VNF instance {NOBODY}, neither of its v1 nor of its v2 API. "
        "Look at the ids and names that `openstack vnflcm list` shows.\n"
    )


def test_no_configuration_at_all(check):
    done = check(NOBODY, files=())
    assert done.returncode == 2
    assert "There is no tacker.conf" in done.stderr
    assert "--config-file" in done.stderr


def test_a_configuration_that_cannot_be_read(check, tmp_path):
    path = tmp_path / "broken.conf"
    path.write_text("[DEFAULT\n")
    done = check(NOBODY, files=(str(path),))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Tacker's configuration could not be read" in done.stderr
    assert str(path) in done.stderr


def test_a_database_that_is_down_is_not_waited_for_and_its_password_not_shown(
    check, tmp_path
):
    path = tmp_path / "tacker.conf"
    url = "mysql+pymysql://tacker:d4tabase-secret@127.0.0.1:1/tacker"
    path.write_text(f"[database]\nconnection = {url}\nretry_interval = 1000\n")
    done = check(NOBODY, files=(str(path),))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Tacker's database could not be read" in done.stderr
    assert "d4tabase-secret" not in done.stderr


# Operations

PROGRAM = """
import sys

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import instances
from tacker_k8s_mgmt.operations.step import Step


class Note:
    def __init__(self, deps):
        self._workdir = deps.site.workdir

    def steps(self):
        note = Step("note", "note the lock", self._note)
        return [note, Step("read", "read", self._read)]

    def left(self):
        return "The note is left."

    def _note(self):
        self._workdir.write("note", self._workdir.read("operation.lock"))

    def _read(self):
        if self._workdir.read("broken") is not None:
            raise errors.ClusterError(detail="It is broken.")


if sys.argv[3:]:
    instances.os.geteuid = lambda: int(sys.argv[3])
try:
    instances.run(sys.argv[1], "note", Note, [sys.argv[2]])
except errors.K8sMgmtError as error:
    sys.exit(str(error))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A conductor with VNF instances whose Ansible server answers."""
    place = tmp_path_factory.mktemp("site")
    sshd = Sshd(place / "server")
    directory = place / "server" / "cluster"
    directory.mkdir()
    config_file = configured(place)
    server = {"port": sshd.port, "password": PASSWORD}
    known = database(
        place, config_file, transferring_inventory_path=str(directory), **server
    )
    program = place / "program.py"
    program.write_text(PROGRAM)

    def run(which, *arguments):
        return python(str(program), known[which], config_file, *arguments)

    state = place / "state" / "k8s_mgmt"
    yield types.SimpleNamespace(
        sshd=sshd, run=run, known=known, directory=directory, state=state
    )
    sshd.close()


@pytest.mark.usefixtures("_quick")
class TestRun:
    """An operation that Tacker does not know, on VNF instances of both APIs."""

    @pytest.fixture(autouse=True)
    def _clean(self, site):
        yield
        for path in site.directory.iterdir():
            path.unlink()

    @pytest.mark.parametrize(("which", "api"), [("idle", "v1"), ("v2 idle", "v2")])
    def test_it_holds_the_lock_and_is_in_the_journal(self, site, which, api):
        done = site.run(which)
        assert (done.returncode, done.stderr) == (0, "")
        owner = json.loads((site.directory / "note").read_text())
        assert owner["operation"] == "note"
        records, _ = journal.read(journal.path_of(str(site.state), site.known[which]))
        assert {(record["hook"], record["api"]) for record in records} == {
            ("note", api)
        }
        assert records[-1]["outcome"] == "completed"

    def test_a_failed_step_says_what_is_left_and_what_to_do(self, site):
        (site.directory / "broken").touch()
        done = site.run("idle")
        assert done.stderr == (
            "note: step 2/2 (read) failed: It is broken. The note is left. The same "
            "command, run again, continues from here.\n"
        )

    @pytest.mark.parametrize(
        ("which", "password"),
        # In v2, that of the last request that was carried out.
        [("cluster", PASSWORD), ("v2 cluster", "changed-secret")],
    )
    def test_none_is_begun_while_one_of_tackers_is_unfinished(
        self, site, which, password, monkeypatch
    ):
        monkeypatch.setattr(site.sshd, "password", password)
        done = site.run(which)
        operation = site.known[which.replace("cluster", "operation")]
        assert done.returncode == 1
        assert f"an operation on it: HEAL {operation} is FAILED_TEMP. " in done.stderr
        assert not (site.directory / "note").exists()

    def test_none_is_begun_while_another_holds_the_lock(self, site):
        lock = site.directory / "operation.lock"
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # An unfinished operation of Tacker is looked for with the lock only.
            done = site.run("cluster")
        assert "is locked by an unknown operation." in done.stderr
        assert not (site.directory / "note").exists()

    def test_another_user_than_the_conductors_is_refused(self, site):
        done = site.run("idle", "4711")
        assert done.returncode == 1
        assert "belongs to another user" in done.stderr
        assert not (site.directory / "operation.lock").exists()


# The VIM


def registry(monkeypatch, *vims, metadata=None, named=()):
    plugin = types.SimpleNamespace(get_vims=lambda context: list(vims))
    monkeypatch.setattr(vim_registry, "_plugin", lambda: plugin)
    infos = [types.SimpleNamespace(vim_id=one) for one in named]
    instance = types.SimpleNamespace(
        id="vnf",
        tenant_id="tenant",
        vnf_metadata=metadata,
        vim_connection_info=infos,
    )
    return vim_registry.VimRegistry(V1Instance(CONTEXT, instance))


def entry(vim_id="v", **changes):
    mark = "Kubernetes cluster of VNF instance vnf"
    found = {"id": vim_id, "name": "ours", "type": "kubernetes", "tenant_id": "tenant"}
    return {**found, "auth_url": "https://lb:6443", "description": mark, **changes}


@pytest.mark.parametrize(
    ("named", "is_named"),
    [(("openstack", "v"), True), (("openstack",), False), (("v",), False), ((), False)],
)
def test_the_vim_and_whether_the_instance_names_it(monkeypatch, named, is_named):
    found = registry(monkeypatch, entry(), named=named).registered()
    assert found == (Vim("v", "ours", "https://lb:6443", is_named),)


def test_the_vim_is_found_by_the_id_that_the_instance_keeps(monkeypatch):
    other = entry("other", description="x")
    kept = entry(description="")
    found = registry(monkeypatch, other, kept, metadata={VIM_KEY: "v"})
    assert [one.vim_id for one in found.registered()] == ["v"]


@pytest.mark.parametrize(
    "change", [{"description": ""}, {"tenant_id": "t2"}, {"type": "openstack"}]
)
def test_a_vim_of_others_is_not_the_clusters(monkeypatch, change):
    assert registry(monkeypatch, entry(**change)).registered() == ()


# Host keys


@pytest.fixture
def seen(monkeypatch, tmp_path):
    monkeypatch.setattr(vim_registry, "_plugin", lambda: None)
    instance = types.SimpleNamespace(id="vnf", tenant_id="tenant", vnf_metadata={})
    options = types.SimpleNamespace(connect_timeout=1, key_directory="")
    return lookup.SeenV1Site(hook(instance, options, tmp_path / "state"), params())


def test_only_recorded_keys_are_given_to_a_session(seen, monkeypatch):
    given = []

    def connect(endpoint, *, host_keys, **_):
        given.append(host_keys)
        return types.SimpleNamespace(
            alive=True,
            close=lambda: None,
            get=lambda path: b"192.0.2.1 ssh-ed25519 KEY\n",
        )

    monkeypatch.setattr(login, "open_ssh", connect)
    seen.cluster(Machine(Role.CONTROL_PLANE, "s", "192.0.2.1", "10.0.0.1"))
    assert [type(keys) for keys in given] == [RecordedKeys, RecordedKeys]


def test_a_silent_ansible_server_is_waited_for_once(seen, monkeypatch):
    tries = []

    def connect(endpoint, **_):
        tries.append(endpoint.host)
        raise errors.RemoteError(detail="no answer")

    monkeypatch.setattr(login, "open_ssh", connect)
    machine = Machine(Role.CONTROL_PLANE, "s", "192.0.2.1", "10.0.0.1")
    for ask in (lambda: seen.workdir, lambda: seen.cluster(machine)):
        with pytest.raises(errors.RemoteError) as caught:
            ask()
    assert tries == ["192.0.2.5"]
    assert "recorded on the Ansible server 192.0.2.5" in str(caught.value)


def test_the_file_of_ansible_servers_keys_is_neither_made_nor_changed(seen, tmp_path):
    learnt, file = HostKeys(), seen.key_file(str(tmp_path / "state" / "known_hosts"))
    learnt.trust("192.0.2.5", 22, "ssh-ed25519", "KEY")
    file.add(learnt)
    assert file.load().text() == ""
    assert not (tmp_path / "state").exists()
