# SPDX-License-Identifier: Apache-2.0
"""Programs of the system that the lab needs, and the Debian packages that have them.

What counts is whether the program is there, so on other systems the user learns which
programs to get. Services that come with a package are neither started nor enabled:
the lab runs its own.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import LabError, command
from lab.settings import PATH, SYSTEM_PYTHON

APT_LIMIT = 1200
UPDATE_LIMIT = 300
OLDEST_PYTHON = (3, 11)
POLICY = Path("/usr/sbin/policy-rc.d")
LISTS = Path("/var/lib/apt/lists")
#: Modules of the system's Python.
MODULES = "/usr/lib/python3/dist-packages"
RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"


@dataclass(frozen=True)
class Tool:
    """A program, and where it comes from.

    :ivar program: a name in PATH, or the absolute path of any file.
    :ivar units: systemd units that the package would enable.
    """

    program: str
    package: str
    purpose: str
    units: tuple[str, ...] = ()


TOOLS = (
    Tool("mariadbd", "mariadb-server-core", "databases"),
    Tool("mariadb-install-db", "mariadb-server-core", "databases"),
    Tool(
        "my_print_defaults", "mariadb-client-core", "databases, for mariadb-install-db"
    ),
    Tool(
        RABBITMQ,
        "rabbitmq-server",
        "messages between Tacker's and Heat's processes",
        ("rabbitmq-server.service", "epmd.service", "epmd.socket"),
    ),
    Tool("haproxy", "haproxy", "load balancers of clusters", ("haproxy.service",)),
    Tool("nft", "nftables", "UDP of load balancers", ("nftables.service",)),
    Tool("conntrack", "conntrack", "UDP of load balancers"),
    Tool("sshd", "openssh-server", "logins to hosts", ("ssh.service", "ssh.socket")),
    Tool("ssh-keygen", "openssh-client", "hosts' keys"),
    Tool("sshpass", "sshpass", "Ansible's logins with a password"),
    Tool("sudo", "sudo", "root's rights on hosts"),
    Tool("openssl", "openssl", "clusters' certificates"),
    Tool("ip", "iproute2", "networks"),
    Tool("ps", "procps", "what services take"),
    Tool("ping", "iputils-ping", "looking at networks"),
    Tool(f"{MODULES}/jwt", "python3-jwt", "tokens of clusters"),
    Tool(f"{MODULES}/cryptography", "python3-cryptography", "tokens of clusters"),
    Tool(f"{MODULES}/jsonpatch.py", "python3-jsonpatch", "patches of clusters"),
    Tool("unshare", "util-linux", "namespaces"),
    Tool("nsenter", "util-linux", "namespaces"),
)
#: For the real lab: what downloads files and images from the internet.
CURL = Tool("curl", "curl", "downloads of files")
SKOPEO = Tool("skopeo", "skopeo", "downloads of images")
#: For the real lab without Go: what serves images.
REGISTRY = Tool(
    "docker-registry", "docker-registry", "images", ("docker-registry.service",)
)
MMDEBSTRAP = Tool("mmdebstrap", "mmdebstrap", "programs and hosts of Debian releases")
#: For the documentation: what shows its pages to their check.
CHROMIUM = Tool("chromium", "chromium", "a look at the documentation's pages")
TEST_TOOLS = (
    MMDEBSTRAP,
    Tool("shellcheck", "shellcheck", "checks of shell scripts"),
    Tool("locale-gen", "locales", "logins with another locale"),
    Tool("promtool", "prometheus", "rules of alerts", ("prometheus.service",)),
    Tool(
        "prometheus-alertmanager",
        "prometheus-alertmanager",
        "alerts for Tacker",
        ("prometheus-alertmanager.service",),
    ),
    Tool("zsh", "zsh", "completion of commands"),
    *(CURL, SKOPEO),
)
#: For the real lab: what programs need to be built that are written in C.
BUILD_TOOLS = (
    Tool("gcc", "gcc", "runc, flannel and pause"),
    Tool("pkg-config", "pkg-config", "runc"),
    Tool("/usr/include/seccomp.h", "libseccomp-dev", "runc"),
)
VENV = Tool("python3 -m venv", "python3-venv", "Python environments")


def missing(tools: Sequence[Tool], path: str = PATH) -> list[Tool]:
    """The tools whose program is not there."""
    search = f"{os.environ.get('PATH', '')}{os.pathsep}{path}"
    return [
        tool
        for tool in tools
        if not shutil.which(tool.program, path=search)
        and not (tool.program.startswith("/") and Path(tool.program).exists())
    ]


def lacks_venv() -> bool:
    """Whether the system's Python cannot make environments.

    :raises LabError: there is no such Python, or it is too old.
    """
    if not Path(SYSTEM_PYTHON).exists():
        raise LabError(f"The lab needs {SYSTEM_PYTHON}: install python3", 2)
    program = "import sys; print(*sys.version_info[:2]); import ensurepip, venv"
    probe = subprocess.run(
        [SYSTEM_PYTHON, "-c", program], capture_output=True, text=True, timeout=60
    )
    major, minor = probe.stdout.split()
    check_version((int(major), int(minor)))
    return probe.returncode != 0


def check_version(version: tuple[int, int]) -> None:
    """Refuse a Python that cannot run the lab's OpenStack.

    :raises LabError: with the systems whose Python can.
    """
    if version < OLDEST_PYTHON:
        oldest, found = (".".join(map(str, v)) for v in (OLDEST_PYTHON, version))
        raise LabError(
            f"The lab's OpenStack needs Python {oldest} or newer, this is {found}:"
            " use Debian 12 or Ubuntu 24.04, or newer ones",
            2,
        )


def explain(tools: Sequence[Tool]) -> str:
    """What is missing and how to install it, for a user that has to do it."""
    lines = [
        f"  {Path(t.program).name:<20} {t.purpose} (Debian: {t.package})" for t in tools
    ]
    names = " ".join(sorted({tool.package for tool in tools}))
    return (
        "The lab needs programs that are not on this system:\n"
        + "\n".join(lines)
        + f"\nOn Debian and Ubuntu: sudo apt-get install {names}"
    )


def install(tools: Sequence[Tool], log: Path) -> None:
    """Install the packages of the tools with apt.

    :param log: takes apt's output.
    :raises LabError: not a Debian system or not root (exit code 2), or apt failed.
    """
    if not tools:
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise LabError(explain(tools), 2)
    names = sorted({tool.package for tool in tools})
    with services_held_back(POLICY):
        if not any(LISTS.glob("*_Packages*")):
            _apt(["update", "-q"], log, UPDATE_LIMIT)
        try:
            _apt(_install_words(names), log, APT_LIMIT)
        except LabError:
            # The lists may be older than what the mirror still has.
            _apt(["update", "-q"], log, UPDATE_LIMIT)
            _apt(_install_words(names), log, APT_LIMIT)
    _disable([unit for tool in tools for unit in tool.units])


def _install_words(names: Sequence[str]) -> list[str]:
    return ["install", "-q", "-y", "--no-install-recommends", *names]


def _apt(arguments: Sequence[str], log: Path, limit: float) -> None:
    argv = ["apt-get", "-o", "DPkg::Lock::Timeout=120", *arguments]
    command.run(argv, limit=limit, log=log, env=command.quiet_environment())


def unpack(names: Sequence[str], directory: Path, limit: float) -> Path:
    """Download packages and unpack them without installing them.

    :returns: the directory with their files.
    :raises LabError: apt does not have one.
    """
    # apt's own user fetches the files.
    directory.chmod(0o777)
    env, root = command.quiet_environment(), directory / "root"
    argv = ["apt-get", "download", "-q", *names]
    command.run(argv, limit=limit, cwd=directory, env=env)
    for package in sorted(directory.glob("*.deb")):
        command.run(["dpkg-deb", "-x", str(package), str(root)], limit=limit)
    return root


@contextmanager
def services_held_back(policy: Path) -> Iterator[None]:
    """Keep packages from starting their services while they are installed."""
    if policy.exists():
        yield
        return
    policy.write_text(
        "#!/bin/sh\n# Made for an installation; removed after it.\nexit 101\n"
    )
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink(missing_ok=True)


def _disable(units: Sequence[str]) -> None:
    """Services of new packages shall not start at the machine's next boot either."""
    if units and Path("/run/systemd/system").is_dir():
        # A unit that this system does not have is no reason to fail.
        subprocess.run(
            ["systemctl", "disable", "--quiet", *units],
            capture_output=True,
            timeout=60,
            check=False,
        )
