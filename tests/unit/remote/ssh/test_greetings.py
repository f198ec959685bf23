# SPDX-License-Identifier: Apache-2.0
"""What a host says before it is asked: banners, messages of the day, noise."""

import contextlib
import logging
import socket
import struct
import threading
import time

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ansible.playbook_runner import RunDirectories
from tests.helpers.hostile import ESCAPES, STEERING

VERSION = b"SSH-2.0-OpenSSH_9.2\r\n"
NOISE = {
    "lines without an end": ([f"{ESCAPES}\r\n".encode()], True),
    "a line without an end": ([b"a" * 4096], True),
    "a version with escapes": ([f"SSH-2.0-{ESCAPES}\r\n".encode()], False),
    "an old version": ([b"SSH-1.0-\x1b[2J\r\n"], False),
    "a packet of four gigabytes": ([VERSION, struct.pack(">I", 0xFFFFFFF0)], False),
    "a packet without an end": ([VERSION, struct.pack(">I", 0x7FFFFFF0)], True),
    "nothing": ([], False),
}


def serve(listener, chunks, is_endless):
    """Send them, the last one again and again, until the client has gone."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(
                target=send, args=(connection, chunks, is_endless), daemon=True
            ).start()


def send(connection, chunks, is_endless):
    with connection, contextlib.suppress(OSError):
        for chunk in chunks:
            connection.sendall(chunk)
        while is_endless:
            connection.sendall(chunks[-1])
        connection.recv(1 << 16)
        time.sleep(5)


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_noise_is_no_ssh_and_ends_at_the_limit(sshd, log_in, noise):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, *noise), daemon=True).start()
        port = listener.getsockname()[1]
        endpoint = sshd.endpoint(port=port)
        began = time.monotonic()
        with pytest.raises(errors.ConnectError) as caught:
            log_in(endpoint=endpoint, deadline=2, connect_timeout=1)
        assert time.monotonic() - began < 30
    assert not STEERING & set(str(caught.value))
    assert len(str(caught.value)) < 1000


def test_a_banner_is_neither_logged_nor_read_as_output(sshd, log_in, caplog):
    caplog.set_level(logging.DEBUG)
    sshd.banner = f"{ESCAPES} authorised users only\n" * 500
    assert log_in().run(["echo", "out"], timeout=60).stdout == "out\n"
    assert "authorised users only" not in "".join(
        record.getMessage()
        for record in caplog.records
        if not record.name.startswith("tests.")
    )


def test_what_a_login_prints_before_each_answer_is_named(sshd, session):
    sshd.greeting = f"{ESCAPES} Welcome to Ubuntu\n".encode()
    with pytest.raises(errors.RemoteError) as caught:
        RunDirectories(str(sshd.home), "/kubespray").look(session)
    assert "could not be read from this answer" in str(caught.value)
    assert "Welcome to Ubuntu" in str(caught.value)
    assert not STEERING & set(str(caught.value))


def test_megabytes_before_an_answer_are_one_short_error(sshd, session):
    sshd.greeting = b"Welcome\n" * (1 << 18)
    with pytest.raises(errors.RemoteError) as caught:
        RunDirectories(str(sshd.home), "/kubespray").look(session)
    assert len(str(caught.value)) < 2000
