# SPDX-License-Identifier: Apache-2.0
"""Sessions against a server that really runs the commands."""

import base64
import logging
import os
import shutil
import socket
import stat
import threading
import time
from pathlib import Path

import paramiko
import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import channel
from tacker_k8s_mgmt.remote.ssh import session as ssh_session
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, RecordedKeys
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.request import host_keys
from tests.helpers import ssh_keys
from tests.helpers.sshd import PASSWORD, LocalFiles, is_alive

FAKE_SUDO = r"""
echo "$*" >>"$HOME/sudo.log"
if [ -e "$HOME/nopasswd" ]; then
    :
elif [ "$1" = -n ]; then
    echo "sudo: a password is required" >&2
    exit 1
else
    IFS= read -r password
    [ "$password" = "$(cat "$HOME/password")" ] || { echo "Sorry, try again." >&2; exit 1; }
fi
while [ "$1" != -- ]; do shift; done
shift 2  # --, env
while [[ $1 == *=* ]]; do export "$1"; shift; done
exec "$@"
"""  # noqa: E501


def ends(pid):
    """Whether a process comes to its end; a signal needs a moment to be delivered."""
    waiting = Backoff(10)
    while is_alive(pid) and not waiting.spent():
        waiting.pause()
    return not is_alive(pid)


@pytest.fixture
def sudo(sshd):
    sshd.program("sudo", FAKE_SUDO)


# --- connecting ----------------------------------------------------------------------


def test_booting_host_is_retried_until_it_answers(sshd, log_in):
    sshd.refuse_connections = 3
    assert log_in().run(["echo", "up"], timeout=60).stdout == "up\n"
    assert sshd.refuse_connections == 0


def test_deadline_ends_the_tries_and_names_host_and_reason(sshd, log_in):
    sshd.refuse_connections = 1000
    with pytest.raises(errors.ConnectError) as caught:
        log_in(deadline=1)
    assert sshd.refuse_connections > 900  # it abandoned, and not for want of refusals
    assert f"ansible@127.0.0.1:{sshd.port} within 1 s" in str(caught.value)


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_host_without_sshd_is_a_connect_error(how, log_in, sshd):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if how == "refused":
            listener.close()
        endpoint = sshd.endpoint(port=port)
        with pytest.raises(errors.ConnectError):
            log_in(endpoint=endpoint, deadline=0.3)


def test_unknown_host_name_is_not_retried(log_in, sshd, monkeypatch):
    asked = []

    def unknown(*where, **__):
        asked.append(where)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    with pytest.raises(errors.ConnectError, match="Name or service not known"):
        log_in(deadline=60)
    assert len(asked) == 1


def test_wrong_password_fails_at_once_without_showing_it(sshd, log_in):
    with pytest.raises(errors.AuthError) as caught:
        log_in(endpoint=sshd.endpoint(password="wr0ng"), deadline=60)
    assert sshd.tried == ["password"]
    assert "wr0ng" not in str(caught.value)


def test_refusal_while_cloud_init_runs_is_reported_and_tried_again(sshd, log_in):
    sshd.refuse_logins = 2
    reasons = []
    log_in(auth_grace=5, on_refused=reasons.append)
    assert reasons == ["the password is not accepted"]
    assert (sshd.tried, sshd.logins) == (["password"] * 3, 1)


def test_host_that_takes_no_passwords_is_named_as_such(sshd, log_in):
    sshd.passwords = False
    with pytest.raises(errors.PasswordsRefused) as caught:
        log_in(deadline=60)
    assert sshd.tried == ["password"]
    assert "it takes no passwords, only publickey" in str(caught.value)
    assert "key_name" in str(caught.value)


def test_grace_for_refused_logins_begins_when_the_host_answers(sshd, log_in):
    # Booting alone takes longer than the grace.
    sshd.refuse_connections, sshd.refuse_logins = 2, 1
    log_in(auth_grace=0.5)
    assert sshd.logins == 1


def test_first_key_is_trusted_and_recorded(sshd, log_in):
    keys = HostKeys()
    log_in(host_keys=keys)
    recorded = keys.text()
    assert recorded.startswith(f"[127.0.0.1]:{sshd.port} ecdsa-sha2-nistp256 ")
    log_in(host_keys=HostKeys(recorded))


@pytest.fixture
def line(sshd):
    """Another key that is recorded for the host."""
    other = base64.b64encode(b"another key").decode()
    return f"[127.0.0.1]:{sshd.port} ecdsa-sha2-nistp256 {other}\n"


def test_changed_key_is_refused_before_the_password_is_sent(line, sshd, log_in):
    keys = HostKeys(line, label="/state/known_hosts")
    with pytest.raises(errors.HostKeyError, match="/state/known_hosts"):
        log_in(host_keys=keys)
    assert keys.text() == line
    assert sshd.logins == 0


def shown(sshd):
    return f"{sshd.key.get_name()} {sshd.key.get_base64()}"


@pytest.mark.parametrize("form", ["key", "fingerprint"])
def test_a_given_key_is_trusted_and_recorded(form, sshd, log_in):
    given = shown(sshd)
    if form == "fingerprint":
        given = host_keys.fingerprint(sshd.key.get_base64())
    known, other = HostKeys(), ssh_keys.make("rsa").public
    endpoint = sshd.endpoint(host_keys=(other, given))
    log_in(endpoint=endpoint, host_keys=known)
    assert sshd.key.get_base64() in known.text()


def test_a_key_that_is_not_given_gets_no_password_and_is_not_recorded(sshd, log_in):
    known = HostKeys()
    endpoint = sshd.endpoint(host_keys=(ssh_keys.make("ed25519").public,))
    with pytest.raises(errors.GivenKeyError) as caught:
        log_in(endpoint=endpoint, host_keys=known, deadline=60)
    fingerprint = host_keys.fingerprint(sshd.key.get_base64())
    assert f"127.0.0.1, ecdsa-sha2-nistp256 {fingerprint}, is none" in str(caught.value)
    assert (sshd.tried, known.text()) == ([], "")


def test_a_recorded_key_holds_beside_those_given_for_others(sshd, log_in):
    known = HostKeys()
    log_in(host_keys=known)
    endpoint = sshd.endpoint(host_keys=(ssh_keys.make("ed25519").public,))
    log_in(endpoint=endpoint, host_keys=known)
    assert sshd.logins == 2


def test_a_given_key_is_no_excuse_for_a_changed_one(line, sshd, log_in):
    endpoint = sshd.endpoint(host_keys=(shown(sshd),))
    with pytest.raises(errors.HostKeyError, match="not the one that was recorded"):
        log_in(endpoint=endpoint, host_keys=HostKeys(line))
    assert sshd.tried == []


def test_a_given_key_is_compared_where_none_may_be_learnt(sshd, log_in):
    known = RecordedKeys("", "/state/known_hosts")
    endpoint = sshd.endpoint(host_keys=(shown(sshd),))
    log_in(endpoint=endpoint, host_keys=known)
    assert (sshd.logins, known.text()) == (1, "")
    endpoint = sshd.endpoint(host_keys=(ssh_keys.make("ed25519").public,))
    with pytest.raises(errors.GivenKeyError):
        log_in(endpoint=endpoint, host_keys=known)


def test_unknown_host_gets_no_password_where_no_key_may_be_learnt(sshd, log_in):
    with pytest.raises(errors.UnknownHostError, match="/state/known_hosts"):
        log_in(host_keys=RecordedKeys("", "/state/known_hosts"))
    assert (sshd.tried, sshd.logins) == ([], 0)
    learnt = HostKeys()
    log_in(host_keys=learnt)
    log_in(host_keys=RecordedKeys(learnt.text()))
    assert sshd.logins == 2


# --- private keys --------------------------------------------------------------------


@pytest.fixture
def made(sshd):
    """A key that the host lets in."""
    made = ssh_keys.make("ed25519")
    sshd.authorized.add(made.public)
    return made


@pytest.mark.parametrize("kind", sorted(ssh_keys.KINDS))
def test_every_kind_of_key_logs_in(kind, sshd, log_in):
    made = ssh_keys.make(kind)
    sshd.authorized.add(made.public)
    session = log_in(endpoint=sshd.key_endpoint(made.private))
    assert session.run(["echo", "in"], timeout=60).stdout == "in\n"
    assert "password" not in sshd.tried


def test_refused_key_fails_at_once_and_nothing_else_is_tried(sshd, log_in):
    made = ssh_keys.make("ed25519")
    with pytest.raises(errors.AuthError) as caught:
        log_in(endpoint=sshd.key_endpoint(made.private, PASSWORD), deadline=60)
    assert sshd.tried == ["publickey"]
    assert "the private key is not accepted" in str(caught.value)
    assert "name, password or key" in str(caught.value)
    assert not [line for line in made.private.splitlines() if line in str(caught.value)]


def test_keys_of_agent_and_home_are_not_tried(sshd, log_in, tmp_path, monkeypatch):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").write_text(ssh_keys.make("ed25519").private)
    monkeypatch.setenv("HOME", str(tmp_path))
    log_in()
    assert sshd.tried == ["password"]


def test_host_that_wants_key_and_password_gets_both(made, sshd, log_in):
    sshd.wants_both = True
    log_in(endpoint=sshd.key_endpoint(made.private, PASSWORD))
    assert sshd.tried[-1] == "password"
    assert sshd.logins == 1


def test_host_that_wants_a_password_besides_refuses_a_key_alone(made, sshd, log_in):
    sshd.wants_both = True
    with pytest.raises(errors.AuthError, match=r"beside the private key .* password"):
        log_in(endpoint=sshd.key_endpoint(made.private), deadline=60)


def test_booting_host_that_lacks_the_key_yet_is_retried_when_asked(sshd, log_in):
    made = ssh_keys.make("ed25519")
    threading.Timer(0.3, sshd.authorized.add, [made.public]).start()
    log_in(endpoint=sshd.key_endpoint(made.private), auth_grace=10)
    assert sshd.logins == 1


def test_beside_a_key_the_password_serves_sudo(made, sudo, sshd, log_in):
    (sshd.home / "password").write_text(PASSWORD)
    session = log_in(endpoint=sshd.key_endpoint(made.private, PASSWORD))
    assert session.run(["echo", "root"], timeout=60, sudo=True).stdout == "root\n"


def test_key_alone_cannot_answer_sudo_and_says_what_can(made, sudo, sshd, log_in):
    session = log_in(endpoint=sshd.key_endpoint(made.private))
    with pytest.raises(errors.CommandFailed) as caught:
        session.run(["true"], timeout=60, sudo=True)
    assert "give the password beside the private key" in str(caught.value)
    (sshd.home / "nopasswd").touch()
    assert session.run(["echo", "root"], timeout=60, sudo=True).stdout == "root\n"


# --- commands ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    ["two words", "it's", '"', "$HOME", "`id`", ";exit 3", "*", "", "-n", "ü\n2"],
)
def test_arguments_arrive_as_they_were(word, session):
    assert session.run(["printf", "[%s]", word], timeout=60).stdout == f"[{word}]"


def test_input_is_passed_whole(session):
    data = os.urandom(300_000).hex()
    assert session.run(["cat"], stdin=data, timeout=60).stdout == data


def test_without_input_a_reader_sees_the_end_at_once(session):
    assert session.run(["cat"], timeout=60).stdout == ""


def test_command_that_ignores_its_input_is_no_error(session):
    data = "x" * 3_000_000
    assert session.run(["true"], stdin=data, timeout=60).rc == 0


def test_large_outputs_of_both_streams_do_not_block(session):
    script = "yes e | head -c 5000000 >&2; head -c 3000000 /dev/zero"
    result = session.run(["bash", "-c", script + "; echo end >&2"], timeout=30)
    assert len(result.stdout) == 3_000_000
    assert channel.STDERR_KEPT - 2 <= len(result.stderr) <= channel.STDERR_KEPT
    assert result.stderr.endswith("end\n")


def test_where_stderr_is_cut_no_part_of_a_word_is_left(session):
    script = "echo secret-secret; yes | tr -d '\\n' | head -c 65526; echo ' end'"
    said = session.run(["bash", "-c", f"{{ {script}; }} >&2"], timeout=30).stderr
    assert said == "y" * 65526 + " end\n"


def test_output_over_the_cap_is_a_clear_error(session, monkeypatch):
    monkeypatch.setattr(channel, "STDOUT_CAP", 100_000)
    with pytest.raises(errors.CommandFailed, match="bytes of output"):
        session.run(["yes"], timeout=60)
    assert session.run(["echo", "alive"], timeout=60).stdout == "alive\n"


def test_failure_names_command_code_and_last_lines(session):
    script = "echo out; seq 1 50 >&2; echo 'no such thing' >&2; exit 7"
    with pytest.raises(errors.CommandFailed) as caught:
        session.run(["bash", "-c", script], timeout=60)
    assert caught.value.fields["rc"] == 7
    assert "50 | no such thing" in str(caught.value)
    assert "44" not in caught.value.fields["tail"]


def test_failure_without_error_output_shows_the_output(session):
    with pytest.raises(errors.CommandFailed, match="what it said"):
        session.run(["bash", "-c", "echo what it said; exit 1"], timeout=60)


def test_secrets_are_in_no_error_log_or_repr(session, caplog):
    caplog.set_level(logging.DEBUG)
    script = 'echo "said: $1" >&2; exit 1'
    with pytest.raises(errors.CommandFailed) as caught:
        session.run(["bash", "-c", script, "_", PASSWORD], timeout=60)
    result = session.run(["echo", PASSWORD], timeout=60)
    assert "said: ***" in str(caught.value)
    assert PASSWORD not in str(caught.value) + caplog.text + repr(result)
    assert PASSWORD in result.stdout


def test_command_over_its_limit_is_ended_on_the_host(session, sshd):
    script = "sleep 60 & echo $$ $! >pids; wait"
    with pytest.raises(errors.CommandTimeout, match="within 2 s"):
        session.run(["bash", "-c", script], timeout=2)
    pids = (sshd.home / "pids").read_text().split()
    assert all(ends(pid) for pid in pids)
    assert session.run(["echo", "alive"], timeout=60).stdout == "alive\n"


def test_command_that_ignores_term_is_killed(session, sshd, monkeypatch):
    monkeypatch.setattr(ssh_session, "_KILL_AFTER", 0.3)
    script = "echo $$ >pid; trap '' TERM; while :; do sleep 0.1; done"
    with pytest.raises(errors.CommandTimeout):
        session.run(["bash", "-c", script], timeout=2)
    assert ends((sshd.home / "pid").read_text().strip())


def test_own_exit_code_124_is_not_taken_for_a_timeout(session):
    assert session.run(["bash", "-c", "exit 124"], timeout=60, check=False).rc == 124


def test_daemon_that_keeps_the_streams_does_not_hold_the_call(session, sshd):
    script = "sleep 60 & echo $! >pid; echo started"
    assert session.run(["bash", "-c", script], timeout=50).stdout == "started\n"
    assert is_alive((sshd.home / "pid").read_text().strip())


def test_dropped_session_is_a_connection_error(session, sshd):
    threading.Timer(0.3, sshd.drop).start()
    with pytest.raises(errors.ConnectionLost, match="sleep 30"):
        session.run(["sleep", "30"], timeout=60)
    with pytest.raises(errors.ConnectionLost):
        session.run(["true"], timeout=60)
    with pytest.raises(errors.ConnectionLost):
        session.get("/etc/hostname")
    with pytest.raises(errors.ConnectionLost, match="sleep 31"):
        session.start(["sleep", "31"])


def test_host_that_never_answers_breaks_the_session_at_the_limit(
    session, sshd, monkeypatch
):
    monkeypatch.setattr(ssh_session, "_KILL_AFTER", 0)
    monkeypatch.setattr(ssh_session, "_GRACE", 0.1)
    sshd.deaf = True
    with pytest.raises(errors.ConnectionLost, match="no answer within"):
        session.run(["true"], timeout=0.2)


# --- sudo ----------------------------------------------------------------------------


def test_silent_sudo_is_preferred_and_asked_once(sudo, session, sshd):
    (sshd.home / "nopasswd").touch()
    for word in ("one", "two"):
        assert session.run(["echo", word], timeout=60, sudo=True).stdout == f"{word}\n"
    calls = (sshd.home / "sudo.log").read_text().splitlines()
    assert [call.split()[-1] for call in calls[1:]] == ["one", "two"]
    for call in calls[1:]:
        assert call.startswith("-n -- env PATH=/usr/local/sbin:")


def test_sudo_with_password_reads_it_first_and_leaves_the_input(sudo, session, sshd):
    (sshd.home / "password").write_text(PASSWORD)
    result = session.run(["cat"], stdin="the input\n", timeout=60, sudo=True)
    assert result.stdout == "the input\n"
    log = (sshd.home / "sudo.log").read_text()
    assert PASSWORD not in log
    # It would log an error on the host, and mail it to its administrator.
    assert "-n " not in log


def test_refused_sudo_says_what_to_configure(sudo, session, sshd):
    (sshd.home / "password").write_text("another")
    with pytest.raises(errors.CommandFailed, match="Sorry, try again") as caught:
        session.run(["cat"], stdin="input", timeout=60, sudo=True)
    assert "Let user ansible run every command with sudo" in str(caught.value)


@pytest.mark.parametrize("as_root", [False, True], ids=["own", "root"])
def test_commands_do_not_depend_on_the_locale_of_the_login(
    sudo, log_in, sshd, decimal_comma, as_root
):
    sshd.variables = decimal_comma
    (sshd.home / "nopasswd").touch()
    session = log_in()
    told = session.run(["stat", "-c", "%.3Y", "."], timeout=60, sudo=as_root).stdout
    assert float(told) > 0
    channel = session.start(["locale"])
    wait_for_output = Backoff(10)
    while not channel.exit_status_ready() and not wait_for_output.spent():
        wait_for_output.pause()
    assert b"LC_ALL=C\n" in channel.recv(4096)


def test_root_needs_no_sudo(log_in, sshd):
    session = log_in(endpoint=sshd.endpoint(user="root"))
    result = session.run(["bash", "-c", "echo $PATH"], timeout=60, sudo=True)
    assert result.stdout.startswith("/usr/local/sbin:/usr/local/bin:")


# --- files ---------------------------------------------------------------------------


def test_connection_that_drops_during_a_transfer_is_named(session, sshd, monkeypatch):
    def dropped(*_):
        sshd.drop()
        return paramiko.sftp.SFTP_FAILURE

    monkeypatch.setattr(LocalFiles, "open", dropped)
    with pytest.raises(errors.ConnectionLost) as caught:
        session.get(str(sshd.home / "file"))
    assert "file`: the host closed the connection." in str(caught.value)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_put_writes_content_and_mode_and_leaves_no_temporary(session, tmp_path):
    target = tmp_path / "file"
    assert session.put(str(target), "content\n", 0o640)
    assert (target.read_text(), mode(target)) == ("content\n", 0o640)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["file"]


@pytest.mark.parametrize(
    ("before", "before_mode", "changed"),
    [
        pytest.param("same", 0o600, False, id="same"),
        pytest.param("same", 0o644, True, id="other-mode"),
        pytest.param("SAME", 0o600, True, id="other-content"),
        pytest.param("shorter", 0o600, True, id="other-size"),
    ],
)
def test_put_changes_only_what_differs(before, before_mode, changed, session, tmp_path):
    target = tmp_path / "file"
    target.write_text(before)
    target.chmod(before_mode)
    number = target.stat().st_ino
    assert session.put(str(target), "same") is changed
    assert (target.read_text(), mode(target)) == ("same", 0o600)
    assert changed or target.stat().st_ino == number
    assert session.put(str(target), "same") is False


def test_put_replaces_a_link_and_not_what_it_points_to(session, tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("precious")
    link.symlink_to(victim)
    session.put(str(link), "new")
    assert victim.read_text() == "precious"
    assert not link.is_symlink()
    assert link.read_text() == "new"


def test_content_is_never_readable_by_others(session, tmp_path, monkeypatch):
    seen = []
    real = os.chmod

    def watched(path, value):
        seen.append((os.path.getsize(path), value))
        real(path, value)

    monkeypatch.setattr(os, "chmod", watched)
    session.put(str(tmp_path / "secret"), "password")
    assert seen == [(0, 0o600)]


def test_a_file_that_cannot_be_written_is_named(session, tmp_path):
    path, why = f"{tmp_path}/nowhere/file", "nowhere/file could not be written"
    with pytest.raises(errors.RemoteError, match=why):
        session.put(path, "x")
    with pytest.raises(errors.RemoteError, match=why):
        session.copy(b"x", path)


def test_get_returns_bytes_or_none(session, tmp_path):
    (tmp_path / "file").write_bytes(b"\xff\x00")
    assert session.get(str(tmp_path / "file")) == b"\xff\x00"
    assert session.get(str(tmp_path / "absent")) is None


def test_get_of_what_cannot_be_read_is_an_error_and_not_none(session, tmp_path):
    with pytest.raises(errors.RemoteError, match="could not be read"):
        session.get(str(tmp_path))


def test_scp_copies_content_and_mode(session, tmp_path):
    target = tmp_path / "a script's name.sh"
    session.copy(b"#!/bin/sh\n", str(target), 0o700)
    assert (target.read_bytes(), mode(target)) == (b"#!/bin/sh\n", 0o700)


def test_scratch_directory_is_private_and_gone_after(session):
    with session.scratch() as path:
        session.copy(b"x", f"{path}/script", 0o700)
        assert mode(Path(path)) == 0o700
    assert not os.path.exists(path)


def test_scratch_directory_of_a_process_that_was_killed_is_gone_a_day_later(session):
    with session.scratch() as path:
        # Not of this project, yesterday's, and today's.
        other, old, new = (Path(f"{path}{end}") for end in ("", ".old", ".new"))
        other = other.with_name(f"other-{other.name}")
        try:
            for directory, hours in ((other, 25), (old, 25), (new, 23)):
                directory.mkdir()
                (directory / "script").write_text("")
                then = time.time() - hours * 3600
                os.utime(directory, (then, then))
            with session.scratch():
                left = [one for one in (other, old, new) if one.exists()]
            assert left == [other, new]
        finally:
            for directory in (other, old, new):
                shutil.rmtree(directory, ignore_errors=True)
