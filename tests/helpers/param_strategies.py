# SPDX-License-Identifier: Apache-2.0
"""Parameters that hypothesis generates."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.structure import Structure, border_names
from tests.helpers.samples import KEY, REMOVED, changed

MARKER = "Pa55-w0rd-"
MANY = settings(max_examples=1000)
# The attributes whose value is a secret in every request.
PASSWORDS = (
    "ansible.password",
    "master_node.password",
    "worker_node.password",
    "external_lb_param.ssh_password",
)
KEYS = tuple(name.replace("password", "private_key") for name in PASSWORDS)
SECRETS = (*PASSWORDS, *KEYS, *(f"{name}_passphrase" for name in KEYS))
# The options that hold a secret, and what has to stand beside it for the model to hold.
OPTION_SECRETS: Mapping[str, Mapping[str, Any]] = {
    "cluster.openstack.password": {
        "auth_url": "https://cloud:5000/v3",
        "region": "one",
        "username": "tacker",
        "project_id": "p",
        "domain_id": "d",
    },
    "cluster.openstack.application_credential_secret": {
        "auth_url": "https://cloud:5000/v3",
        "region": "one",
        "application_credential_id": "a",
        "application_credential_name": "b",
    },
    "cluster.storage.ceph_rbd.admin_key": {"monitors": ["m"], "user_key": "other-key"},
    "cluster.storage.ceph_rbd.user_key": {"monitors": ["m"], "admin_key": "other-key"},
    "cluster.storage.cephfs.admin_key": {"monitors": ["m"]},
}
LISTED_SECRETS: Mapping[str, Mapping[str, Any]] = {
    "cluster.registries": {"prefix": "r", "username": "u"},
    "private_registry_connection_info": {
        "connection_type": 1,
        "server": "s",
        "username": "u",
    },
}


def attributes(
    model: type[Structure] = ClusterRequest, place: str = ""
) -> Iterator[str]:
    for name, nested in border_names(model).items():
        yield f"{place}{name}"
        if nested:
            yield from attributes(nested, f"{place}{name}.")


ODD_TEXTS = ["", " ", "/", "..", "./x", "0.0.0.0", "10.0.0.0/8", "::/0", "fd00::1"]
ODDER_TEXTS = ["\0", "http://u:p@h:x", "http://[", "{{ x }}", "x" * 300, "\ud800"]
texts = st.text(max_size=12) | st.sampled_from([*ODD_TEXTS, *ODDER_TEXTS])
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)
names = st.sampled_from(sorted(attributes()))
passwords = texts.map(lambda text: MARKER + text)
private_keys = passwords.map(lambda text: KEY.replace("secret1", text)) | passwords


def outcome(
    read: Callable[..., ClusterRequest | None], *given: Any
) -> tuple[ClusterRequest | None, tuple[str, ...]]:
    """The model, or the problems, with everything that the error carries."""
    try:
        return read(*given), ()
    except ParamError as error:
        carried = (str(error), repr(error.fields), repr(error.__context__))
        return None, (*error.problems, *carried)


def with_option(name: str, secret: Any) -> dict[str, Any]:
    """Changes that make a valid structure with this secret in it."""
    structure, _, attribute = name.rpartition(".")
    return {structure: {**OPTION_SECRETS[name], attribute: secret}}


# Made once, not for each example.
several_secrets = st.lists(st.sampled_from(SECRETS), max_size=4, unique=True)
two_options = st.lists(st.sampled_from(sorted(OPTION_SECRETS)), max_size=2, unique=True)
two_lists = st.lists(st.sampled_from(sorted(LISTED_SECRETS)), max_size=2)
several_names = st.lists(names, max_size=4, unique=True)
values_or_none = values | st.just(REMOVED)
additions = st.dictionaries(texts, values, max_size=2)
KEPT = (*SECRETS, *OPTION_SECRETS, *LISTED_SECRETS, "cluster.offline.files_repo")


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """The simple request, with some attributes replaced, removed and added."""
    changes: dict[str, Any] = {name: draw(passwords) for name in PASSWORDS}
    for name in draw(several_secrets):
        changes[name] = draw(private_keys if name in KEYS else passwords)
    for name in draw(two_options):
        changes |= with_option(name, draw(passwords))
    for name in draw(two_lists):
        changes[name] = [{**LISTED_SECRETS[name], "password": draw(passwords)}]
    changes["cluster.offline.files_repo"] = f"https://u:{draw(passwords)}@files"
    for name in draw(several_names):
        if not any(secret.startswith(name) for secret in KEPT):
            changes[name] = draw(values_or_none)
    body = changed(changes)
    body.setdefault("proxy", {"http_proxy": f"http://user:{draw(passwords)}@proxy"})
    body.setdefault("kubespray_vars", {"registry_password": draw(passwords)})
    body.update(draw(additions))
    return body
