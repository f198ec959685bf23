# SPDX-License-Identifier: Apache-2.0
"""The Ansible server that Tacker's operator has for requests without one.

The login there is the operator's, and a request is a tenant's. So the server, every
path on it and what runs there are the operator's, too: of a request that leaves out
``ansible``, nothing may have Ansible run a program or read a file under that account.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.request.accounts import ALL_CONNECTIONS
from tacker_k8s_mgmt.request.fields import blank_is_absent
from tacker_k8s_mgmt.request.structure import Problem, WrittenRequest

ATTRIBUTE = "ansible"
#: Marks the attribute that a request may leave out where the operator has a server.
LEFT_TO_OPERATOR = "may be left to the operator"
_VARIABLES = "kubespray_vars"
_USED_FOR = ("bastion", "used_for")
# kubespray copies it from the Ansible server to a node.
_CA_FILE = ("cluster", "openstack", "ca_file")
#: Where Linux has CA certificates, which everybody may read.
CA_DIRECTORIES = (
    *("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust"),
    *("/usr/share/ca-certificates", "/usr/local/share/ca-certificates"),
)
# Neither a template nor, where a task has the variable as its condition, an expression
# that calls something.
_PLAIN = re.compile(r"[\w.:/,@=+-]*", re.ASCII)
_WHERE = "where the Ansible server is Tacker's operator's"


@dataclass(frozen=True)
class OperatorServer:
    """The operator's Ansible server, for one VNF instance.

    :param values: the attributes of ``ansible``, with the login.
    :param variables: names of the variables that ``kubespray_vars`` may have.
    :param warning: what a request without ``ansible`` should know; "" for nothing.
    """

    values: Mapping[str, Any] = field(repr=False)
    variables: Iterable[str]
    warning: str = ""


# Where tacker.conf is not read.
_UNKNOWN = OperatorServer(
    {
        "ip_address": "ansible.invalid",
        "username": "(unknown)",
        "password": "(unknown)",
        "kubespray_root_path": "/(unknown)",
        "transferring_inventory_path": "/(unknown)/(VNF instance)",
    },
    config.ANSIBLE_VARIABLES,
    "is left to Tacker's operator; the conductor's tacker.conf has to name the server, "
    "in [k8s_mgmt] ansible_host",
)

#: Returns the server; None if the operator has none.
Find = Callable[[], OperatorServer | None]


def none() -> None:
    """The operator has no such server."""


def is_left_out(written: WrittenRequest) -> bool:
    """Whether a request has no ``ansible``, or one whose attributes are all blank."""
    given = written.given(ATTRIBUTE)
    if not isinstance(given, Mapping):
        return given is None
    return all(blank_is_absent(value) is None for value in given.values())


def with_server(written: WrittenRequest, find: Find) -> WrittenRequest:
    """A request with the operator's server, if it leaves the server to the operator.

    What it must not have then becomes a problem.
    """
    own = written.given(ATTRIBUTE, "ip_address") is not None
    given = written.given(ATTRIBUTE)
    if own or not (given is None or isinstance(given, Mapping)):
        return written
    server = find()
    if server is None:
        return written
    values = {**written.values, ATTRIBUTE: dict(server.values)}
    bastion = values.get(_USED_FOR[0])
    if isinstance(bastion, Mapping) and written.given(*_USED_FOR) is None:
        # A tenant's host could answer in the place of the operator's.
        others = [name for name in ALL_CONNECTIONS if name != ATTRIBUTE]
        values[_USED_FOR[0]] = {**bastion, _USED_FOR[1]: others}
    warned = [Problem((ATTRIBUTE,), server.warning)] if server.warning else []
    return replace(
        written,
        values=values,
        problems=[*written.problems, *_problems(written, server)],
        warnings=[*written.warnings, *warned],
        found={**written.found, "operators_server": True},
    )


def refused_change(
    stored: WrittenRequest, change: WrittenRequest, find: Find
) -> Iterator[Problem]:
    """A problem if a later request takes a cluster away from the operator's server.

    :param stored: the request of the instantiation.
    :param change: the later one.
    """
    if is_left_out(stored) and not is_left_out(change) and find() is not None:
        text = (
            "cannot be changed after instantiation; the cluster's inventory lies on "
            "the Ansible server of Tacker's operator"
        )
        yield Problem((ATTRIBUTE,), text)


def _problems(written: WrittenRequest, server: OperatorServer) -> Iterator[Problem]:
    for name, value in (written.given(ATTRIBUTE) or {}).items():
        if blank_is_absent(value) is not None:
            text = (
                "is the operator's, whose Ansible server is used without "
                f"ansible.ip_address; leave out all of {ATTRIBUTE}, or give all of a "
                "server of your own"
            )
            yield Problem((ATTRIBUTE, name), text)
    used_for = written.given(*_USED_FOR)
    if isinstance(used_for, list) and ATTRIBUTE in used_for:
        text = f"must not have {ATTRIBUTE} {_WHERE}: that server is reached without a "
        yield Problem(_USED_FOR, f"{text}bastion")
    path = written.given(*_CA_FILE)
    if isinstance(path, str) and not _is_public(path):
        text = f"must be below one of {', '.join(CA_DIRECTORIES)} {_WHERE}"
        yield Problem(_CA_FILE, text)
    variables = written.get(_VARIABLES)
    for name, value in variables.items() if isinstance(variables, Mapping) else ():
        here = (_VARIABLES, str(name))
        if name not in server.variables:
            allowed = ", ".join(sorted(server.variables)) or "none"
            text = f"cannot be set {_WHERE}, who allows: {allowed}"
            yield Problem(here, text)
        elif not _is_plain(value):
            text = (
                f"{_WHERE}, its texts may have only letters, digits and "
                "_ . : / , @ = + -, so that none is a template or an expression for "
                "Ansible"
            )
            yield Problem(here, text)


def _is_public(path: str) -> bool:
    """Whether only a CA certificate can be at a path; its type refuses ``..``."""
    return any(PurePosixPath(path).is_relative_to(place) for place in CA_DIRECTORIES)


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_plain(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return not isinstance(value, str) or _PLAIN.fullmatch(value) is not None


def unknown() -> OperatorServer:
    """Stands for the operator's server where ``tacker.conf`` is not read."""
    return _UNKNOWN
