# SPDX-License-Identifier: Apache-2.0
"""What the Ansible server reaches before there are VMs: their gateway, and mirrors."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import redaction, urls
from tacker_k8s_mgmt.remote.ssh.channel import Result
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.registries import Registry, hosts_entries

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
        return redaction.without_login(self.url)


def targets(params: InstallParams) -> Iterator[Target]:
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
        host = urls.host_of(url)
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


def mirror(session: Session, params: InstallParams, target: Target) -> str | None:
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


def _config(params: InstallParams, target: Target) -> Iterator[str]:
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
    parts = urls.parts(target.url)
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
