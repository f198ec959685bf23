# SPDX-License-Identifier: Apache-2.0
"""Where one lab is, what its services are called, and which kind of hosts it has.

Ports are fixed and passwords known: services listen on the loopback address of the
lab's own network namespace, which nothing outside it can reach, so two labs never meet.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import LabError

ROOT = Path(__file__).resolve().parent.parent
# Not the first python3 in PATH: hosts of the lab must find the same interpreter.
SYSTEM_PYTHON = "/usr/bin/python3"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

STATE = "/var/lib/tacker-k8s-lab"
CACHE = "/var/cache/tacker-k8s-lab"
USER_CACHE = ".cache/tacker-k8s-lab"

# In memory, inside the lab's mount namespace: a socket's path may have 107 characters,
# and the state directory may lie anywhere.
SOCKETS = Path("/run/lab")

ADDRESS = "127.0.0.1"
PASSWORD = "labpw"
REGION = "RegionOne"
PROJECT = "nfv"
USER = "nfv_user"
VIM = "openstack-lab"

PORTS: Mapping[str, int] = {
    "mariadb": 3306,
    "rabbitmq": 5672,
    "keystone": 5000,
    "heat": 8004,
    "barbican": 9311,
    "images": 9292,
    "compute": 8774,
    "network": 9696,
    "tacker": 9890,
}


def url(service: str) -> str:
    """Address of a service's API, without a path."""
    return f"http://{ADDRESS}:{PORTS[service]}"


IDENTITY_URL = f"{url('keystone')}/v3"


@dataclass(frozen=True)
class Settings:
    """The directories of one lab.

    :ivar state: everything that belongs to this lab; gone after ``down``.
    :ivar cache: environments, downloads and the prepared databases; shared by labs.
    """

    state: Path
    cache: Path

    @property
    def etc(self) -> Path:
        """Configuration files, written at each start."""
        return self.state / "etc"

    @property
    def data(self) -> Path:
        """What the services store."""
        return self.state / "data"

    @property
    def log(self) -> Path:
        """One file for each service."""
        return self.state / "log"

    @property
    def run(self) -> Path:
        """Records of the running processes, and the services' lock files."""
        return self.state / "run"

    @property
    def cloud(self) -> Path:
        """State of the lab's cloud: hosts and networks."""
        return self.state / "cloud"

    @property
    def init(self) -> Path:
        """Record of the process that holds the lab's namespaces."""
        return self.state / "anchor.pid"

    @property
    def journals(self) -> Path:
        """State path of the management driver, with its journals."""
        return self.data / "tacker" / "state" / "k8s_mgmt"

    @property
    def programs(self) -> Path:
        """The real kubectl, Helm and etcd, for the lab, its hosts and its users."""
        return self.cache / "bin"


def from_environment(
    state: str | None = None,
    cache: str | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    is_root: bool | None = None,
) -> Settings:
    """The settings of the lab that is meant.

    :param state: state directory; default ``$LAB_STATE``, then :data:`STATE`.
    :param cache: cache directory; default ``$LAB_CACHE``, then :data:`CACHE` for root
        and a directory below the home for others.
    """
    if is_root is None:
        is_root = os.geteuid() == 0
    default = CACHE if is_root else str(Path(environ.get("HOME", "/")) / USER_CACHE)
    return Settings(
        state=Path(state or environ.get("LAB_STATE") or STATE).absolute(),
        cache=Path(cache or environ.get("LAB_CACHE") or default).absolute(),
    )


def credentials() -> dict[str, str]:
    """``OS_*`` of the lab's user."""
    return {
        "OS_AUTH_URL": IDENTITY_URL,
        "OS_IDENTITY_API_VERSION": "3",
        "OS_USERNAME": USER,
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": PROJECT,
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": REGION,
    }


def places(settings: Settings) -> dict[str, str]:
    """``LAB_*``: where the lab is, for every program inside it."""
    return {
        "LAB_STATE": str(settings.state),
        "LAB_CACHE": str(settings.cache),
        "LAB_CLOUD_STATE": str(settings.cloud),
    }


DEFAULT_MEMORY = 3 * 2**30
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Real:
    """The hosts of a real lab.

    :ivar memory: limit of each VM in bytes.
    """

    memory: int = DEFAULT_MEMORY


def bytes_of(text: str) -> int:
    """Bytes of a size such as ``3G`` or ``1536M``.

    :raises ValueError: it is not a such size.
    """
    match = re.fullmatch(r"([1-9]\d*)([KMG]?)", text.upper())
    if not match:
        raise ValueError(f"{text} is no size such as 3G")
    return int(match[1]) * UNITS[match[2]]


def load_kind(settings: Settings) -> Real | None:
    """The real hosts of a lab; None when its hosts are ordinary."""
    try:
        values = json.loads(_kind_file(settings).read_text())
    except FileNotFoundError:
        return None
    return Real(**values)


def choose_kind(settings: Settings, *, real: bool, memory: int | None) -> Real | None:
    """The kind of a lab that is started: as wanted for a new one, else as it was made.

    :param real: have VMs boot systemd; default: as before.
    :param memory: limit of such a VM in bytes; default: as before, else
        :data:`DEFAULT_MEMORY`.
    :raises LabError: the lab has hosts of another kind.
    """
    before = load_kind(settings)
    if not settings.cloud.exists():
        if not real:
            _kind_file(settings).unlink(missing_ok=True)
            return None
        before = Real(memory or DEFAULT_MEMORY)
        _kind_file(settings).write_text(json.dumps(asdict(before)))
    wanted = before.memory if before else None
    if (real and not before) or (memory and memory != wanted):
        has = (
            f"boot systemd with {wanted} bytes of memory" if before else "are ordinary"
        )
        raise LabError(
            f"The VMs of the lab in {settings.state} {has}. For others, take it down"
            " first (python3 -m lab down) or use another --state",
            2,
        )
    return before


def _kind_file(settings: Settings) -> Path:
    return settings.state / "real.json"
