# SPDX-License-Identifier: Apache-2.0
"""Tacker's login for Helm: what a control plane is sent, and what its answers mean."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from lab import suites
from lab.settings import from_environment
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.vim import ClusterAccess
from tacker_k8s_mgmt.remote.kubernetes import helm
from tacker_k8s_mgmt.remote.kubernetes.helm import HelmHost
from tests.helpers.kubeapi import ADMIN_TOKEN, KUBECTL
from tests.helpers.kubectl_server import needs_kubectl

HOST, SERVER = "203.0.113.4", "https://10.10.0.4:6443"
PASSWORD, TOKEN = SecretStr("pa55word-of-helm"), SecretStr("t0ken-of-the-vim")
ACCESS = ClusterAccess(TOKEN, "the CA's certificate")
REFUSED = errors.CommandFailed(
    host=HOST, command="sh", rc=1, tail="sshd accepts no password", output=""
)


class Session(contextlib.AbstractContextManager):
    """A session that records what it is to run."""

    host = HOST

    def __init__(self, stdout="", error=None):
        self._stdout, self._error = stdout, error
        self.commands, self.inputs = [], []

    def __exit__(self, *_):
        pass

    def run(self, argv, *, stdin="", timeout, sudo=False):
        self.commands.append(argv)
        self.inputs.append(stdin)
        if self._error:
            raise self._error
        return SimpleNamespace(stdout=self._stdout)


def host(session, log_in=None):
    return HelmHost(session, SERVER, log_in or (lambda account: session))


def test_user_and_directory_are_those_that_pages_and_vims_name():
    session = Session()
    host(session).prepare(PASSWORD, ACCESS)
    assert session.commands[0][-2:] == ["tacker-helm", "/var/tacker/helm"]


def test_secrets_are_sent_on_standard_input_only():
    session = Session()
    host(session).prepare(PASSWORD, ACCESS)
    (argv,), (text,) = session.commands, session.inputs
    for secret in (PASSWORD, TOKEN):
        assert secret.get_secret_value() not in " ".join(argv)
    password, _, kubeconfig = text.partition("\n")
    assert password == PASSWORD.get_secret_value()
    config = json.loads(kubeconfig)
    assert config["users"][0]["user"] == {"token": TOKEN.get_secret_value()}
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == SERVER
    certificate = base64.b64decode(cluster["certificate-authority-data"]).decode()
    assert certificate == ACCESS.ca_certificate


@needs_kubectl
def test_kubectl_takes_the_kubeconfig(site, tmp_path):
    """Helm reads it as kubectl does."""
    session: Any = Session()
    access = ClusterAccess(SecretStr(ADMIN_TOKEN), site.kube.certificate.read_text())
    HelmHost(session, site.kube.url, lambda _: session).prepare(PASSWORD, access)
    config = tmp_path / "config"
    config.write_text(session.inputs[0].partition("\n")[2])
    done = subprocess.run(
        [KUBECTL, "--kubeconfig", config, "get", "nodes", "--output=name"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, "node/w1" in done.stdout) == (0, True), done.stderr
    view = json.loads(config.read_text())
    assert (view["apiVersion"], view["kind"]) == ("v1", "Config")
    assert view["users"][0]["name"] == "tacker-helm"


@pytest.mark.parametrize(("stdout", "is_new"), [("new\n", True), ("", False)])
def test_new_login_is_reported(stdout, is_new):
    assert host(Session(stdout)).prepare(PASSWORD, ACCESS) is is_new


def test_refusal_names_host_and_reason():
    with pytest.raises(errors.HelmLoginError) as caught:
        host(Session(error=REFUSED)).prepare(PASSWORD, ACCESS)
    assert HOST in str(caught.value)
    assert "sshd accepts no password" in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        REFUSED,
        errors.AuthError(user="tacker-helm", host=HOST, port=22, reason="denied"),
    ],
    ids=["helm", "login"],
)
def test_login_that_does_not_work_is_reported(error):
    def log_in(account):
        assert (account.username, account.password) == ("tacker-helm", PASSWORD)
        if isinstance(error, errors.AuthError):
            raise error
        return Session(error=error)

    with pytest.raises(errors.HelmLoginError, match=HOST):
        host(Session(), log_in).verify(PASSWORD)


@pytest.mark.parametrize("script", [helm._PREPARE, helm._PACK, helm._UNPACK])
def test_shell_understands_the_scripts(script):
    subprocess.run(["sh", "-nc", script], check=True, timeout=60)


def test_its_sudo_makes_it_no_other_user():
    rules = [line for line in helm._PREPARE.splitlines() if "NOPASSWD" in line]
    assert rules == ['  "$user ALL=($user) NOPASSWD: ALL" >"$rules.new"']


@pytest.mark.parametrize("rust", [False, True], ids=["sudo", "sudo-rs"])
def test_what_tacker_calls_sudo_stays_the_user_with_either_sudo(tmp_path, rust):
    """The real visudo of each; twice, and after the other one."""
    visudo = suites.path(from_environment(), suites.VISUDO_RS)
    if not rust:
        visudo = shutil.which("visudo", path="/usr/sbin:/usr/bin")
    bin_, rules = tmp_path / "bin", tmp_path / "etc" / "sudoers.d" / "tester"
    bin_.mkdir()
    (bin_ / "visudo").symlink_to(visudo)
    rules.parent.mkdir(parents=True)
    (tmp_path / "etc" / "ssh" / "sshd_config.d").mkdir(parents=True)
    begin, end = (helm._PREPARE.index(mark) for mark in ("rules=", "if [ -d "))
    script = helm._PREPARE[begin:end].replace("/etc/", f"{tmp_path}/etc/")
    script = script.replace("/usr/local/lib", str(tmp_path))
    rules.write_text("of the other sudo")
    environment = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
    for _ in "12":
        argv = ["sh", "-euc", f'user=tester\n{script}\nprintf %s "$wanted"']
        said = subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=True
        )
    assert said.stderr == ""
    assert rules.exists() is not rust
    programs = tmp_path / "tester"
    assert (f"SetEnv PATH={programs}:" in said.stdout) is rust
    if rust:
        asked = [programs / "sudo", "printf", "%s", "a b"]
        assert subprocess.check_output(asked, text=True) == "a b"
