# SPDX-License-Identifier: Apache-2.0
"""The Ansible server before a cluster: its software, its readiness, what it reaches.

Its keys, kubespray and the cluster's directory are checked. What it has to reach before
there are VMs is their gateway, and mirrors.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import checkout, strategies
from tacker_k8s_mgmt.kubespray.checkout import Checkout
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.remote.ansible.cluster_directory import (
    ClusterDirectory,
    cluster_above,
)
from tacker_k8s_mgmt.remote.ssh import reachability
from tacker_k8s_mgmt.remote.ssh.channel import Result
from tacker_k8s_mgmt.remote.ssh.login import Credentials
from tacker_k8s_mgmt.remote.ssh.session import Session, free
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.registries import Registry, hosts_entries
from tacker_k8s_mgmt.text import without_login

_SECONDS = 60.0
# Runs Python code in Ansible's own interpreter, found in the first line of the program:
# `ansible-playbook --version` takes eight times as long.
_ANSIBLE_QUERY = """
program=$(command -v "$1") && read -r line <"$program"
root=$2
shift 2
[ -e "$root/ansible.cfg" ] && export ANSIBLE_CONFIG=$root/ansible.cfg
case $line in
"#!"*" "*) ;;
"#!"*python*) "${line#??}" -c "$@" && exit ;;
esac 2>/dev/null
exec "$program" --version
"""
# Not with Ansible's own lookup, which would import each collection.
_REPORT = """
import importlib.util, os, sys
from importlib import metadata
from ansible.release import __version__
print('ansible', __version__)
try:
    print('mitogen', metadata.version('mitogen'))
except metadata.PackageNotFoundError:
    pass
from ansible import constants
for option in 'DEFAULT_STRATEGY', 'DEFAULT_STRATEGY_PLUGIN_PATH':
    if constants.config.get_config_value_and_origin(option)[1] != 'default':
        print('strategy', constants.DEFAULT_STRATEGY)
roots = [*constants.COLLECTIONS_PATHS, *sys.path]
for name in sys.argv[1:]:
    *namespace, last = name.split('.')
    place = ('ansible_collections', *namespace, last)
    there = (
        any(os.path.isdir(os.path.join(root, *place)) for root in roots)
        if namespace
        else importlib.util.find_spec(name)
    )
    if not there:
        print('missing', name)
"""


@dataclass(frozen=True)
class Survey:
    """The installed software, for the preflight checks.

    :param missing: what kubespray needs besides Ansible and Ansible's Python lacks;
        empty if that could not be determined.
    :param mitogen: its version in Ansible's Python; "" without it.
    :param strategy: that of Ansible's configuration; "" for Ansible's default.
    """

    checkout: Checkout
    ansible_version: str | None
    has_sshpass: bool
    missing: frozenset[str] = frozenset()
    mitogen: str = ""
    strategy: str = ""


def survey_server(session: Session, kubespray_root: str, venv: str | None) -> Survey:
    """Inspect the server; changes nothing.

    :param venv: the virtual environment with Ansible; None to search PATH.
    :raises RemoteError: the session broke.
    """
    with ThreadPoolExecutor(1) as pool:
        ansible = pool.submit(_query_ansible, session, kubespray_root, venv)
        found = survey_checkout(session, kubespray_root)
        sshpass = session.run(
            ["sh", "-c", "command -v sshpass"], timeout=_SECONDS, check=False
        )
    return Survey(
        checkout=found,
        ansible_version=checkout.ansible_version_from(ansible.result()),
        has_sshpass=sshpass.rc == 0,
        missing=checkout.missing_from(ansible.result()),
        mitogen=checkout.reported(ansible.result(), "mitogen"),
        strategy=checkout.reported(ansible.result(), "strategy"),
    )


def survey_checkout(session: Session, kubespray_root: str) -> Checkout:
    """Read what a kubespray states of itself.

    :raises RemoteError: the session broke.
    """
    galaxy = session.get(f"{kubespray_root}/{checkout.GALAXY_FILE}")
    limits = session.get(f"{kubespray_root}/{checkout.ANSIBLE_VERSION_FILE}")
    checks = _output(session, "cat", kubespray_root, checkout.CHECK_FILES)
    # From the section's name to the next top-level key.
    section = f"/^{checkout.CHECKSUM_SECTION}:/,/^[a-z]/p"
    files = checkout.CHECKSUM_FILES
    sums = _output(session, "sed", kubespray_root, files, "-n", section)
    return Checkout.from_texts(_text(galaxy), _text(limits), checks, sums)


def _query_ansible(session: Session, kubespray_root: str, venv: str | None) -> str:
    program = f"{venv}/bin/ansible-playbook" if venv else "ansible-playbook"
    # Ansible requires a UTF-8 locale (see run_files/run.sh).
    query = ["sh", "-c", _ANSIBLE_QUERY, "sh", program, kubespray_root]
    argv = ["env", "LC_ALL=C.UTF-8", *query, _REPORT, *checkout.BESIDE_ANSIBLE]
    return session.run(argv, timeout=_SECONDS, check=False).stdout


def _output(
    session: Session, program: str, root: str, files: Sequence[str], *options: str
) -> str:
    """Return a program's output for those files of a checkout that exist."""
    argv = [program, *options, "--", *(f"{root}/{name}" for name in files)]
    return session.run(argv, timeout=_SECONDS, check=False).stdout


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


# For a cluster's directory: logs and events of its last runs, and facts of its nodes.
_MEBIBYTES, _FILES = 100, 500
_LIMIT = 30.0  # seconds
# logind.conf(5). Without a session id, logind does not know of the login.
_ENDED_BY_LOGIND = r"""
[ -n "${XDG_SESSION_ID:-}" ] || exit 1
manager="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
setting() { busctl get-property $manager "$1"; }
user=\"$(id -un)\"
[ "$(setting KillUserProcesses)" = "b true" ] || exit 1
case $(setting KillExcludeUsers) in *"$user"*) exit 1 ;; esac
case $(setting KillOnlyUsers) in "as 0" | *"$user"*) ;; *) exit 1 ;; esac
"""


@dataclass(frozen=True)
class Readiness:
    """Findings, one sentence each, with the fix.

    :param keys: private keys that cannot be used.
    :param connection: why the server cannot be reached; the rest is then unknown.
    :param installed: kubespray, Ansible, sshpass, the connection to the bastion, and
        whether playbooks outlive an SSH connection.
    :param directory: the cluster's directory, and its disk space.
    :param strategy: that of playbook runs, in words; no finding.
    """

    keys: tuple[str, ...] = ()
    connection: tuple[str, ...] = ()
    installed: tuple[str, ...] = ()
    directory: tuple[str, ...] = ()
    strategy: str = ""

    @property
    def findings(self) -> tuple[str, ...]:
        return (*self.keys, *self.connection, *self.installed, *self.directory)


def check_server(
    params: ClusterRequest,
    logins: Credentials,
    connect: Callable[[], Session],
    owner_id: str,
) -> Readiness:
    """Check private keys and server; changes nothing.

    :param connect: returns a session with the server.
    :param owner_id: the VNF instance that may own the directory already.
    """
    ansible = params.ansible
    keys = logins.findings()
    try:
        survey = survey_server(connect(), ansible.kubespray_root, ansible.venv)
        foreign = ClusterDirectory(connect(), ansible.directory, owner_id).obstacle()
        directory = (foreign, _space(params, connect()))
        others = [_way(params, connect()), _ended(params, connect())]
        others += _inside(params, connect())
    except errors.PrivateKeyError:
        return Readiness(keys)
    except errors.BastionError as error:
        return Readiness(keys, connection=(f"bastion: {error}",))
    except errors.RemoteError as error:
        return Readiness(keys, connection=(f"ansible: {error}",))
    installed = checkout.findings(
        survey.checkout,
        survey.ansible_version,
        survey.has_sshpass,
        params,
        survey.missing,
    )
    return Readiness(
        keys,
        installed=(*installed, *filter(None, others)),
        directory=tuple(filter(None, directory)),
        strategy=strategies.chosen(
            *(ansible.strategy, survey.ansible_version),
            *(survey.mitogen, survey.strategy),
        ),
    )


def _space(params: ClusterRequest, session: Session) -> str:
    """Return why the disk space for the cluster's directory is too small, or ""."""
    directory = params.ansible.directory
    space = free(session, directory)
    if space is None or space.suffices(_MEBIBYTES, _FILES):
        return ""
    return (
        f"ansible.transferring_inventory_path: {directory} needs {_MEBIBYTES} MiB and "
        f"{_FILES} inodes, and on {session.host} there are {space}; make room there"
    )


def _inside(params: ClusterRequest, session: Session) -> Iterator[str]:
    """Yield a finding for each installation that is deleted with another cluster."""
    ansible = params.ansible
    installed = {
        "kubespray_root_path": ansible.kubespray_root,
        "venv_path": ansible.venv,
    }
    for name, path in installed.items():
        if path and (above := cluster_above(session, path)):
            yield (
                f"ansible.{name}: {path} on {session.host} is inside {above}, the "
                "directory of a cluster, and would be deleted with it; install it "
                "elsewhere"
            )


def _ended(params: ClusterRequest, session: Session) -> str:
    """Return why a playbook would end with the connection that started it, or "".

    Neither ``setsid`` nor, without lingering, a scope of the user's service manager
    prevents it. No finding if logind cannot be queried.
    """
    argv = ["sh", "-c", _ENDED_BY_LOGIND]
    if session.run(argv, timeout=_LIMIT, check=False).rc != 0:
        return ""
    return (
        f"on {session.host}, systemd-logind ends what user {params.ansible.username} "
        "leaves running, so playbooks would end with the SSH connection "
        "(KillUserProcesses=yes): name the user in KillExcludeUsers= in "
        "/etc/systemd/logind.conf, and restart systemd-logind"
    )


def _way(params: ClusterRequest, session: Session) -> str:
    """Return why playbooks cannot reach the bastion that they need, or ""."""
    bastion = params.bastion
    if bastion is None or not bastion.carries_playbooks:
        return ""
    why = reachability.port_problem(session, bastion.host, bastion.port)
    hint = "If the Ansible server reaches the nodes itself, take playbooks out of "
    return f"bastion: {why} {hint}bastion.used_for" if why else ""


_LOOK = 20.0  # seconds
_ANSWER = 15  # seconds for a server on the other side of a proxy, too
_NO_PROGRAM = 127
_PROXY_WANTS_LOGIN = 407
# An API of version 2 answers so, with and without a login.
_REGISTRY_ANSWERS = (200, 401, 403)


@dataclass(frozen=True)
class Target:
    """A server of the request.

    :param url: may hold a login.
    :param is_registry: whether it has to be a registry of images.
    :param verifies: whether its certificate is verified. It is not where the CA's is on
        the nodes alone.
    :param known_as: names that only the nodes know, each with its address.
    """

    url: str
    is_registry: bool = False
    verifies: bool = True
    known_as: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """The URL without the login."""
        return without_login(self.url)


def targets(params: ClusterRequest) -> Iterator[Target]:
    """The mirrors and registries that a request names."""
    variables, offline = params.kubespray_vars, params.cluster.offline
    files = offline.files_repo.get_secret_value() if offline.files_repo else ""
    if files := files or str(variables.get("files_repo", "")):
        yield Target(files)
    registries = [
        *params.cluster.registries,
        *(one.as_registry() for one in params.private_registries),
    ]
    host = offline.registry_host or str(variables.get("registry_host", ""))
    if host and all(registry.prefix != host.split("/")[0] for registry in registries):
        yield Target(f"https://{host.split('/')[0]}/v2/", is_registry=True)
    known_as = tuple(_names(hosts_entries(params.private_registries)))
    for registry in registries:
        yield from _of_registry(registry, known_as)


def _names(entries: Iterable[str]) -> Iterator[tuple[str, str]]:
    for address, *names in map(str.split, entries):
        yield from ((name, address) for name in names)


def _of_registry(
    registry: Registry, known_as: Iterable[tuple[str, str]]
) -> Iterator[Target]:
    verifies = not (registry.skip_tls_verify or registry.ca_file)
    for url in registry.hosts:
        host = untrusted.url_host(url)
        names = tuple(known for known in known_as if known[0].lower() == host)
        yield Target(f"{url.rstrip('/')}/v2/", True, verifies, names)


def gateway(session: Session, address: str) -> tuple[str, str]:
    """Look for the way to a network's gateway.

    :returns: why there is none, or ""; and a remark, or "": not every gateway answers.
    :raises RemoteError: the session broke.
    """
    argv = ["ip", "route", "get", address]
    route = session.run(argv, timeout=_LOOK, check=False)
    if route.rc == _NO_PROGRAM:
        return "", f"{session.host} has no program ip, so its routes are not known"
    if route.rc != 0:
        return (
            f"{session.host} has no route to {address}: add one, or a port of the "
            "Ansible server on that network"
        ), ""
    argv = ["ping", "-c", "1", "-W", "3", address]
    if session.run(argv, timeout=_LOOK, check=False).rc in (0, _NO_PROGRAM):
        return "", ""
    return "", (
        f"{address} does not answer {session.host}'s ping, as some gateways do; if no "
        "firewall drops it, the Ansible server will not reach the VMs"
    )


def mirror(session: Session, params: ClusterRequest, target: Target) -> str | None:
    """Ask a mirror or registry for an answer; return why there is none, or "".

    The proxy is that of the nodes. Credentials are in curl's standard input only.

    :returns: None if the server has no curl.
    :raises RemoteError: the session broke.
    """
    try:
        config = "".join(f"{line}\n" for line in _config(params, target))
    except ValueError as error:
        return f"it {error}"
    argv = ["curl", "--config", "-"]
    try:
        result = session.run(argv, stdin=config, timeout=_ANSWER * 2.0, check=False)
    except errors.CommandTimeout:
        return _unreachable(session, target, f"no answer within {_ANSWER} s")
    if result.rc == _NO_PROGRAM:
        return None
    return _why(session, target, result)


def _config(params: ClusterRequest, target: Target) -> Iterator[str]:
    """Lines of a curl configuration."""
    yield "silent"
    yield "show-error"
    yield "globoff"
    # Those of Ansible's get_url, but no file of the server's own.
    yield 'proto = "=http,https,ftp,ftps"'
    yield f"url = {_quoted(target.url)}"
    yield 'output = "/dev/null"'
    yield 'write-out = "%{http_code}"'
    yield f"max-time = {_ANSWER}"
    if not target.verifies:
        yield "insecure"
    parts = untrusted.url_parts(target.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    for name, address in target.known_as:
        host = f"[{address}]" if ":" in address else address
        yield f"resolve = {_quoted(f'{name}:{port}:{host}')}"
    proxy = params.proxy
    secure = target.url.lower().startswith("https:")
    chosen = proxy and (proxy.https_proxy if secure else proxy.http_proxy)
    if proxy and chosen:
        yield f"proxy = {_quoted(chosen.get_secret_value())}"
        around = [*proxy.no_proxy, *([str(proxy.node_cidr)] if proxy.node_cidr else [])]
        yield f"noproxy = {_quoted(','.join(around))}"
    else:
        # Not that of the Ansible server's own environment.
        yield 'noproxy = "*"'


def _quoted(text: str) -> str:
    """Text as curl reads it between quotes, which is as JSON has it."""
    return json.dumps(text, ensure_ascii=False)


def _why(session: Session, target: Target, result: Result) -> str:
    code = result.stdout.strip()[-3:] if result.rc == 0 else ""
    status = int(code) if code.isascii() and code.isdecimal() else 0
    if result.rc != 0:
        reason = result.stderr.strip().partition(") ")[2] or f"curl ended: {result.rc}"
        return _unreachable(session, target, reason)
    if status == _PROXY_WANTS_LOGIN or status >= 500:
        return _unreachable(session, target, f"HTTP {status}")
    if target.is_registry and status not in _REGISTRY_ANSWERS:
        return (
            f"{target.shown} is no registry of images (HTTP {status}): name another "
            "host or port"
        )
    return ""


def _unreachable(session: Session, target: Target, reason: str) -> str:
    return (
        f"{session.host} gets no answer from {target.shown}: {session.redact(reason)}. "
        "Correct the address or the proxy, or let firewalls pass it"
    )
