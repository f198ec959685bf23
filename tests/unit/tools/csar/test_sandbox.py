# SPDX-License-Identifier: Apache-2.0
"""A check of a stranger's package: no network, no other files, and always an end."""

import http.server
import importlib
import multiprocessing
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from tacker_k8s_mgmt.tools.csar import sandbox
from tests.unit.tools.csar.conftest import ENTRY


@pytest.fixture
def asked():
    """A server that nobody should ask: its URL, and what it was asked for."""
    paths = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    thread.join()
    server.server_close()


def with_import(parts, entry):
    """The entry file with one import more, as its first."""
    text = parts[ENTRY].decode()
    return text.replace("imports:\n", f"imports:\n  - {entry}\n", 1).encode()


@pytest.mark.parametrize("form", ["{}/a.yaml", "{{file: '{}/a.yaml'}}"])
def test_no_server_is_asked_for_an_import(problems_of, parts, asked, form):
    url, paths = asked
    problems = problems_of({ENTRY: with_import(parts, form.format(url))})
    assert any(url in text for text in problems)
    assert paths == []


def test_no_server_is_asked_for_a_repository(problems_of, parts, asked):
    url, paths = asked
    text = with_import(parts, "{file: a.yaml, repository: far}").decode()
    text = text.replace("imports:\n", f"repositories: {{far: '{url}'}}\nimports:\n", 1)
    assert problems_of({ENTRY: text.encode()})
    assert paths == []


def test_no_server_is_asked_for_an_implementation(problems_of, parts, asked):
    url, paths = asked
    flavours = [n for n in parts if b"mgmt-drivers-kubespray" in parts[n]]
    (name,) = [n for n in flavours if n.startswith("Definitions/")]
    text = parts[name].decode()
    changed = text.replace("file: Scripts/", f"file: {url}/Scripts/")
    assert changed != text
    problems = problems_of({name: changed.encode()})
    assert not any("cannot be accessed" in text for text in problems)
    assert paths == []


@pytest.mark.parametrize(
    "path",
    [
        "/proc/kmsg",
        "/proc/self/environ",
        "/etc/passwd",
        "../../../../../../../../proc/self/environ",
        "file:///etc/passwd",
    ],
)
def test_no_file_outside_of_the_package_is_read(problems_of, parts, path):
    began = time.monotonic()
    problems = problems_of({ENTRY: with_import(parts, path)})
    assert any(path in text for text in problems)
    assert "root:" not in "".join(problems)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "content",
    [
        b"x = " + b"-" * 1_000_000 + b"1",
        b"x = " + b"a." * 1_000_000 + b"a",
        b"x = " + b"(" * 100_000 + b")" * 100_000,
        b"\0",
        "x = '\ud800'".encode(errors="surrogatepass"),
    ],
    ids=["signs", "attributes", "brackets", "nul", "surrogate"],
)
def test_python_that_does_not_compile_is_a_finding(problems_of, content):
    assert problems_of({"Scripts/x.py": content})


@pytest.mark.parametrize(
    "content",
    [
        b"a: &a [*a]\n",
        b"topology_template: &a {node_templates: {x: *a}}\n",
        b"imports: [kubernetes_top.vnfd.yaml]\n",
        b"[" * 50_000,
        b"topology_template: " + b"{a: " * 2_000 + b"1" + b"}" * 2_000,
    ],
    ids=["itself", "template", "cycle", "brackets", "deep"],
)
@pytest.mark.parametrize("name", ["Definitions/more.yaml", "Files/more.yaml"])
def test_files_without_an_end_are_a_finding(problems_of, parts, content, name):
    path = name.removeprefix("Definitions/")
    path = path if path != name else f"../{name}"
    problems = problems_of({ENTRY: with_import(parts, path), name: content})
    assert problems
    assert all(len(text) < 5000 for text in problems)


def answer(work, tmp_path):
    (tmp_path / "package.zip").touch()
    return sandbox.run(work, tmp_path, tmp_path / "package.zip")


def test_what_may_be_done(tmp_path):
    (tmp_path / "x").write_text("x")
    assert answer(lambda: (tmp_path / "x").read_text(), tmp_path) == "x"
    import json.tool

    source = Path(json.tool.__file__).parent / "tool.py"
    assert answer(source.read_text, tmp_path)
    command = [sys.executable, "-c", "print(1)"]
    assert answer(lambda: subprocess.check_output(command), tmp_path) == b"1\n"


def _connect():
    socket.create_connection(("127.0.0.1", 1), timeout=1)


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (lambda: Path("/etc/passwd").read_text(), "/etc/passwd is outside"),
        (lambda: os.open("/proc/self/environ", os.O_RDONLY), "is outside"),
        (_connect, "socket"),
        (lambda: socket.getaddrinfo("localhost", 1), "socket"),
        (lambda: urllib.request.urlopen("http://127.0.0.1:1/"), "urllib"),
        (lambda: subprocess.run(["true"]), "subprocess"),
        (lambda: os.posix_spawn("/bin/true", ["true"], {}), "os.posix_spawn"),
        (lambda: Path(sys.prefix, "x").write_text("x"), "is outside"),
        (lambda: os.open("package.zip", os.O_RDWR), "package.zip is outside"),
        (lambda: Path("../x").mkdir(), "is outside"),
        (lambda: Path("x").rename("../x"), "is outside"),
        (lambda: os.symlink("/etc", "x"), "is outside"),
        (lambda: os.remove("../x"), "is outside"),
        (lambda: os.rmdir("../x"), "is outside"),
        (lambda: os.chmod("../package.zip", 0), "is outside"),
        (lambda: os.chown("../package.zip", -1, -1), "is outside"),
        (lambda: os.link("../package.zip", "x"), "is outside"),
        (lambda: os.truncate("../package.zip", 0), "is outside"),
        (lambda: os.utime("../package.zip"), "is outside"),
        (lambda: os.open("package.zip", os.O_WRONLY), "package.zip is outside"),
        (lambda: os.open("package.zip", os.O_CREAT), "package.zip is outside"),
        (lambda: os.open("package.zip", os.O_TRUNC), "package.zip is outside"),
        (lambda: os.open("package.zip", os.O_APPEND), "package.zip is outside"),
        (lambda: os.open("../root-of-another/x", os.O_RDONLY), "x is outside"),
        (lambda: ["x" * 1000 + str(n) for n in range(100_000)], "16777216 bytes"),
        (os.abort, "crashed"),
        # Which would take nothing, but for the limit: nobody writes there.
        (lambda: len(bytearray(5 * 2**30)), "MemoryError"),
        (lambda: (_ for _ in ()).throw(RecursionError("deep")), "RecursionError"),
        (lambda: sys.exit(3), "SystemExit"),
    ],
)
def test_what_may_not(tmp_path, work, why):
    root = tmp_path / "root"
    root.mkdir()
    (root / "package.zip").symlink_to("../package.zip")
    with pytest.raises(sandbox.Failed, match=why):
        sandbox.run(work, root, tmp_path / "package.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


@pytest.mark.parametrize(
    "event",
    [
        *("socket.connect", "urllib.Request", "http.client.connect", "ftplib.connect"),
        *("webbrowser.open", "subprocess.Popen", "os.system", "os.exec", "os.spawn"),
        *("os.posix_spawn", "os.fork", "os.forkpty"),
    ],
)
def test_what_leaves_the_process_may_not(tmp_path, event):
    # As Python reports it, and nothing more.
    with pytest.raises(sandbox.Failed, match=f"does no {event}"):
        answer(lambda: sys.audit(event, "/bin/true", (), None), tmp_path)


def test_temporary_files_go_into_the_package_and_there_are_no_others(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert answer(tempfile.mkdtemp, tmp_path).startswith(str(tmp_path))
    assert answer(lambda: sys.dont_write_bytecode, tmp_path)
    core = answer(lambda: resource.getrlimit(resource.RLIMIT_CORE), tmp_path)
    assert core == (0, 0)


def test_what_went_wrong_is_short(tmp_path):
    def fail():
        raise ValueError("x" * 100_000)

    with pytest.raises(sandbox.Failed) as caught:
        answer(fail, tmp_path)
    assert len(str(caught.value)) < 1100


def test_modules_of_the_package_are_not_imported(tmp_path, monkeypatch):
    # As "python -c" has it: the working directory.
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    (tmp_path / "of_a_stranger.py").touch()
    with pytest.raises(sandbox.Failed, match="No module named 'of_a_stranger'"):
        answer(lambda: importlib.import_module("of_a_stranger"), tmp_path)


def test_it_ends_without_its_parent_too(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "_LIMIT", 0.5)
    context = multiprocessing.get_context("fork")
    _receiver, sender = context.Pipe(duplex=False)
    # The parent may ignore the signal.
    former = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    child = context.Process(
        target=sandbox._child, args=(sender, (tmp_path, tmp_path), signal.pause)
    )
    try:
        child.start()
        child.join(60)
    finally:
        signal.signal(signal.SIGALRM, former)
        child.kill()
    assert child.exitcode == -signal.SIGALRM


def test_directories_of_the_package_may_be_removed(tmp_path, monkeypatch):
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir("/")
    answer(lambda: shutil.rmtree(tmp_path / "a"), tmp_path)
    assert not (tmp_path / "a").exists()


def test_it_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "_LIMIT", 0.5)
    with pytest.raises(sandbox.Failed, match="ended after 0"):
        answer(lambda: time.sleep(60), tmp_path)

    def sleep_on():
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(60)

    started = time.monotonic()
    with pytest.raises(sandbox.Failed, match="ended after 0"):
        answer(sleep_on, tmp_path)
    assert time.monotonic() - started < 50
    # The parent is as it was.
    assert Path("/proc/self/status").read_text()
