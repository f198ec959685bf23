# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster kubeconfig``: what is asked, written and refused."""

import getpass
import stat
import types
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.vim import PersonAccess
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.cli.base import NotDone
from tacker_k8s_mgmt.tools.cli.commands import cluster_access as kubeconfig
from tests.helpers.operations import instantiated
from tests.helpers.requests import VNF, params

TOKEN = "t0ken-of-alice"
ACCESS = PersonAccess("system:x", SecretStr(TOKEN), "2026-01-01T00:00:00Z", "CA")


class Cluster:
    """A control plane, which may be silent."""

    def __init__(self, asked, silent):
        self._asked, self._silent = asked, silent

    def person_access(self, *wanted):
        if self._silent:
            raise errors.RemoteError(detail="10.0.0.1 is silent.")
        self._asked.append(wanted)
        return ACCESS


@pytest.fixture
def opened(monkeypatch, tmp_path, look_up):
    monkeypatch.chdir(tmp_path)
    view: Any = instantiated()
    found = types.SimpleNamespace(
        view=view, vnf_id=VNF, name="my-cluster", params=params(), asked=[]
    )
    found.silent, found.verified = False, []
    view.cluster = lambda plane: Cluster(found.asked, found.silent)
    monkeypatch.setattr(
        kubeconfig, "verify", lambda url, access: found.verified.append(url)
    )
    return look_up(found)


def write(*arguments):
    return main(["cluster", "kubeconfig", "my-cluster", "--user", "alice", *arguments])


def test_the_file_leads_through_the_load_balancer(opened, tmp_path, capsys):
    assert write() == 0
    path = tmp_path / "my-cluster.kubeconfig"
    config = yaml.safe_load(path.read_text())
    (cluster,), (user,) = config["clusters"], config["users"]
    url = cluster["cluster"]["server"]
    machines = opened.view.machines()
    assert url == f"https://{machines.load_balancer.ssh_address}:6443"
    assert opened.verified == [url]
    assert user["user"] == {"token": TOKEN}
    assert config["current-context"] == "alice@my-cluster"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    out = capsys.readouterr().out
    assert TOKEN not in out
    assert f"{path.name}: {url} as system:x, until 2026-01-01" in out


def test_the_least_is_asked_for_unless_told_otherwise(opened):
    assert write() == 0
    more = ("--cluster-role", "cluster-admin", "--expires", "2d", "-o", "other")
    assert write(*more) == 0
    assert write("--expires", "10m", "-o", "third") == 0
    assert opened.asked == [
        ("alice", "view", 8 * 3600),
        ("alice", "cluster-admin", 2 * 24 * 3600),
        ("alice", "view", 600),
    ]


def test_a_file_is_replaced_only_by_force(opened, tmp_path, capsys):
    path = tmp_path / "mine"
    path.write_text("mine")
    assert write("-o", str(path)) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert opened.asked == []
    assert path.read_text() == "mine"
    assert write("-o", str(path), "--force") == 0
    assert TOKEN in path.read_text()


def test_standard_output_has_the_file_and_nothing_else(opened, tmp_path, capsys):
    assert write("-o", "-") == 0
    assert yaml.safe_load(capsys.readouterr().out)["current-context"] == (
        "alice@my-cluster"
    )
    assert list(tmp_path.iterdir()) == []


class TestOwnName:
    """Whose account it is, without --user."""

    @pytest.fixture(autouse=True)
    def nobody(self, monkeypatch):
        monkeypatch.delenv("SUDO_USER", raising=False)

    def run(self):
        return main(["cluster", "kubeconfig", "my-cluster"])

    @pytest.mark.parametrize("error", [KeyError, OSError])
    def test_a_user_id_without_a_name(self, opened, monkeypatch, capsys, error):
        def getuser():
            raise error("no name")

        monkeypatch.setattr(getpass, "getuser", getuser)
        assert main(["help", "cluster", "kubeconfig"]) == 0
        assert write("-o", "-") == 0
        assert self.run() == 2
        assert "has no name here; give --user" in capsys.readouterr().err

    def test_a_name_that_no_account_can_have(self, opened, monkeypatch, capsys):
        monkeypatch.setattr(getpass, "getuser", lambda: "Alice B")
        assert self.run() == 2
        assert "give --user" in capsys.readouterr().err

    def test_of_the_person_behind_sudo(self, opened, monkeypatch):
        monkeypatch.setenv("SUDO_USER", "bob")
        assert self.run() == 0
        assert opened.asked[0][0] == "bob"


def test_without_an_api_that_answers_nothing_is_written(opened, tmp_path, monkeypatch):
    def refuse(url, access):
        raise NotDone("no")

    monkeypatch.setattr(kubeconfig, "verify", refuse)
    assert write() == 1
    assert list(tmp_path.iterdir()) == []


def test_control_planes_that_do_not_answer_are_named(opened, capsys):
    opened.silent = True
    assert write() == 1
    assert "10.0.0.1" in capsys.readouterr().err


WRONG = {
    "a user": ("--user", "Alice B"),
    "a user with a dot": ("--user", "a.b"),
    "a role": ("--cluster-role", "system:node"),
    "a time": ("--expires", "soon"),
    "a time that is too short": ("--expires", "9m"),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_what_makes_no_account_is_refused(opened, arguments):
    with pytest.raises(SystemExit) as caught:
        write(*arguments)
    assert caught.value.code == 2
    assert opened.asked == []
