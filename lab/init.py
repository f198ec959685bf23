# SPDX-License-Identifier: Apache-2.0
"""Process 1 of a lab: holds its namespaces and reaps its orphans.

Started by namespace.py in new namespaces; everything of the lab runs below it, so the
kernel takes the whole lab away when this process is killed. A program of its own, which
imports nothing of the project.

Argument: the file that takes its process number and its start time.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

NAME = "lab"

# A private /run hides the machine's services and takes the lab's sockets.
COMMANDS = (
    ("mount", "-t", "proc", "-o", "nosuid,nodev,noexec", "proc", "/proc"),
    ("mount", "-t", "tmpfs", "-o", "mode=0755", "lab-run", "/run"),
    ("mkdir", "-m", "0755", "/run/lab", "/run/lock"),
    ("mkdir", "-m", "1777", "/run/lab/tmp"),
    ("ip", "link", "set", "lo", "up"),
)


def write_record(record: Path) -> None:
    """Write how the machine knows this process; /proc is still the machine's."""
    number = os.readlink("/proc/self")
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    temporary = record.with_suffix(".new")
    temporary.write_text(f"{number} {started}")
    temporary.replace(record)


def set_up() -> None:
    """Make the namespaces a place to live in."""
    # In a chroot / is no mount point, and there is nothing to make private.
    subprocess.run(["mount", "--make-rprivate", "/"], stderr=subprocess.DEVNULL)
    for argv in COMMANDS:
        subprocess.run(argv, check=True)
    socket.sethostname(NAME)
    names = Path("/run/lab/hosts")
    names.write_text(f"127.0.0.1 localhost {NAME}\n")
    if Path("/etc/hosts").exists():
        subprocess.run(["mount", "--bind", names, "/etc/hosts"], check=True)


def reap(*_: object) -> None:
    """Take leave of every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main() -> None:
    """Set up, print READY, stay."""
    os.chdir("/")
    os.umask(0o022)
    write_record(Path(sys.argv[1]))
    set_up()
    print("READY", flush=True)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    signal.signal(signal.SIGCHLD, reap)
    reap()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
