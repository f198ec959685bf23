# SPDX-License-Identifier: Apache-2.0
"""Work on a stranger's package in a process without network and files of others.

tosca-parser and heat-translator ask the servers that a VNFD names, read the files that
it names, wherever they are, and follow references without an end; compiling a file of
Python may crash. Python reports what leaves the process before it happens (audit
events), and a child process can be ended.
"""

import contextlib
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import tacker_k8s_mgmt

_LIMIT = 180.0  # seconds
_MEMORY = 4 * 2**30  # bytes
_LARGEST = 16 * 2**20  # bytes of the result, which the parent has to hold
_FORBIDDEN = (
    *("socket.", "urllib.", "http.", "ftplib.", "subprocess.", "webbrowser."),
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"),
)

_STARTS = ("subprocess.Popen", "os.posix_spawn")
# Events of what changes files; all their arguments that are text are paths.
_CHANGES = (
    *("os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename"),
    *("os.rmdir", "os.symlink", "os.truncate", "os.utime"),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

T = TypeVar("T")


class Failed(Exception):
    """The work came to no end; the text says why."""


def run(work: Callable[[], T], root: Path, package: Path) -> T:
    """The result of *work*, which may read files of the package and of Python only.

    It may change files below *root* only.

    :param root: directory of the unpacked package; temporary files go there, too.
    :param package: the package itself.
    :raises Failed: it took too long or too much memory, crashed, raised what it
        should not, or has too large a result.
    """
    _import_all()
    # With "fork" the child need not import the parsers once more, which takes seconds.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sender, (root, package), work))
    child.start()
    sender.close()
    try:
        if not receiver.poll(_LIMIT):
            raise Failed(f"the check was ended after {_LIMIT:g} s")
        is_result, value = pickle.loads(receiver.recv_bytes())  # noqa: S301
    except EOFError:
        child.join()
        raise Failed(f"the check crashed ({child.exitcode})") from None
    finally:
        child.kill()
        child.join()
        receiver.close()
    if not is_result:
        raise Failed(str(value))
    return cast(T, value)


def _child(
    sender: Connection, places: tuple[Path, Path], work: Callable[[], object]
) -> NoReturn:
    # It ends without its parent, too, which may be killed meanwhile.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT + 1)
    try:
        _shut(*places)
        answer: tuple[bool, Any] = (True, work())
    except BaseException as error:
        answer = (False, f"{type(error).__name__}: {error}"[:1000])
    try:
        data = pickle.dumps(answer)
        if len(data) > _LARGEST:
            data = pickle.dumps((False, f"its result has more than {_LARGEST} bytes"))
        sender.send_bytes(data)
    finally:
        # No cleanup of what belongs to the parent.
        os._exit(0)


def _shut(root: Path, package: Path) -> None:
    """Leave this process the package, and what Python has of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tempfile.tempdir = str(root)
    # The working directory is the package from now on, which has no modules for us.
    sys.path[:] = filter(os.path.isabs, sys.path)
    sys.dont_write_bytecode = True
    # shutil.rmtree opens names relative to a directory, which the event does not have.
    os.chdir(root)
    with contextlib.suppress(ImportError):
        from toscaparser.utils.urlutils import UrlUtils

        # A reference to a server stands for itself; nobody asks it.
        UrlUtils.url_accessible = staticmethod(lambda url: True)
    readable = _real(str(root), str(package), os.devnull, *_of_python())
    writable = _real(str(root), os.devnull)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # The patterns of a package are compared in processes of their own.
        starts_python = event in _STARTS and arguments[0] == sys.executable
        if event.startswith(_FORBIDDEN) and not starts_python:
            raise PermissionError(f"a check of a package does no {event}")
        if event == "open":
            paths, writes = arguments[:1], arguments[2] & _WRITING
        elif event in _CHANGES:
            paths, writes = arguments, True
        else:
            return
        for path in paths:
            if not _is_below(path, writable if writes else readable):
                raise PermissionError(f"{path} is outside of the package")

    sys.addaudithook(hook)


def _of_python() -> Iterable[str]:
    """Where modules, and the files beside them, may be."""
    ours = str(Path(tacker_k8s_mgmt.__file__).parent.parent)
    return (sys.prefix, sys.base_prefix, *sys.path, ours)


def _real(*paths: str) -> list[str]:
    return [os.path.realpath(path) for path in paths]


def _is_below(path: Any, directories: Iterable[str]) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return True  # opened already, or no path
    real = os.path.realpath(os.fsdecode(path))
    return any(real == one or real.startswith(f"{one}{os.sep}") for one in directories)


def _import_all() -> None:
    with contextlib.suppress(ImportError):
        import translator.hot.tosca_translator  # noqa: F401
