"""Whatever a request holds: a model or one whole ParamError, and no secret in it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.request import key_aliases, params
from tacker_k8s_mgmt.request.params import InstallParams
from tests.unit.cluster.samples import KEY, REMOVED, changed, request
from tests.unit.cluster.test_params import MISSING
from tests.unit.cluster.test_params_values import WRONG

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
OPTION_SECRETS = {
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
LISTED_SECRETS = {
    "cluster.registries": {"prefix": "r", "username": "u"},
    "private_registry_connection_info": {
        "connection_type": 1,
        "server": "s",
        "username": "u",
    },
}


def attributes(model=InstallParams, place=""):
    for name, nested in key_aliases.border_names(model).items():
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


def outcome(read, *given) -> tuple[InstallParams | None, tuple[str, ...]]:
    """The model, or the problems, with everything that the error carries."""
    try:
        return read(*given), ()
    except ParamError as error:
        carried = (str(error), repr(error.fields), repr(error.__context__))
        return None, (*error.problems, *carried)


@given(values)
def test_any_value_at_all_is_read_or_refused(value):
    made, problems = outcome(params.parse, request(value))
    assert made is None
    assert bool(problems) == (value is not None)


def with_option(name, secret):
    """Changes that make a valid structure with this secret in it."""
    structure, _, attribute = name.rpartition(".")
    return {structure: {**OPTION_SECRETS[name], attribute: secret}}


# Made once, not anew for each example.
several_secrets = st.lists(st.sampled_from(SECRETS), max_size=4, unique=True)
two_options = st.lists(st.sampled_from(sorted(OPTION_SECRETS)), max_size=2, unique=True)
two_lists = st.lists(st.sampled_from(sorted(LISTED_SECRETS)), max_size=2)
several_names = st.lists(names, max_size=4, unique=True)
values_or_none = values | st.just(REMOVED)
additions = st.dictionaries(texts, values, max_size=2)
KEPT = (*SECRETS, *OPTION_SECRETS, *LISTED_SECRETS, "cluster.offline.files_repo")


@st.composite
def bodies(draw):
    """The simple request, with some attributes replaced, removed and added."""
    changes = {name: draw(passwords) for name in PASSWORDS}
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


@MANY
@given(bodies())
def test_no_secret_is_in_a_problem_a_warning_or_the_models_text(body):
    made, problems = outcome(params.parse, request(body))
    assert made or problems
    assert MARKER not in f"{made!r} {made} {problems}"


@MANY
@given(bodies(), bodies())
def test_nor_when_a_later_request_changes_them(stored, change):
    made, problems = outcome(params.merged, request(stored), request(change))
    assert made or problems
    assert MARKER not in f"{made!r} {made} {problems}"


@given(passwords, st.sampled_from(PASSWORDS))
def test_every_password_is_among_the_secrets(password, name):
    made, problems = outcome(params.parse, request(changed({name: password})))
    if made:
        assert password in made.secrets()
    else:
        assert problems[0] == f"{name}: must not contain control characters"


@given(passwords, st.sampled_from(sorted(OPTION_SECRETS)))
def test_every_secret_of_an_option_is_among_them_too(secret, name):
    made, problems = outcome(params.parse, request(changed(with_option(name, secret))))
    if made:
        assert secret in made.secrets()
        assert MARKER not in repr(made)
    else:
        assert problems[0].startswith(f"{name}: must ")


@given(passwords, st.sampled_from(sorted(LISTED_SECRETS)))
def test_and_every_secret_of_a_registry(secret, name):
    item = {**LISTED_SECRETS[name], "password": secret}
    made, problems = outcome(params.parse, request(changed({name: [item]})))
    if made:
        assert secret in made.secrets()
        assert MARKER not in repr(made)
    else:
        assert problems[0].startswith(f"{name}.0.password: must ")


@given(st.sampled_from(KEYS), st.binary(min_size=40, max_size=400))
def test_every_line_of_a_key_is_among_the_secrets(name, content):
    lines = [content.hex()[place : place + 64] for place in range(0, 400, 64)]
    body = "\n".join(line for line in lines if line)
    text = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    made, _ = outcome(params.parse, request(changed({name: text})))
    shown = redaction.Redactor(made.secrets())(f"before {text} after")
    assert not [line for line in body.splitlines() if len(line) > 3 and line in shown]


# One cause, one problem: these do not touch each other.
CAUSES = {
    name: (value, f"{name}: {expected}")
    for name, value, expected in WRONG
    if "." in name and expected and "is deleted with" not in expected
} | {
    name: (REMOVED, f"{name}: is missing")
    for name in MISSING
    if name.partition(".")[2] in ("ssh_cp_name", "script_path", "ssh_username")
}


@MANY
@given(st.lists(st.sampled_from(sorted(CAUSES)), min_size=1, unique=True))
def test_every_problem_is_reported_whatever_else_is_wrong(chosen):
    body = changed({name: CAUSES[name][0] for name in chosen})
    _, (*found, _, _, _) = outcome(params.parse, request(body))
    expected = [CAUSES[name][1] for name in chosen]
    assert len(found) == len(expected)
    for text in expected:
        assert [problem for problem in found if problem.startswith(text)], text


@pytest.mark.parametrize("name", sorted(attributes()))
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(f"{MARKER}\0!", id="text"),
        pytest.param([MARKER], id="list"),
        pytest.param(json.loads("[" * 500 + "]" * 500), id="deep"),
    ],
)
def test_a_password_in_the_wrong_place_is_refused_and_not_shown(name, value):
    made, problems = outcome(params.parse, request(changed({name: value})))
    assert made is None
    # Of a list, it is the item that is wrong.
    starts = (f"{name}: ", f"{name}.0: ")
    assert any(problem.startswith(starts) for problem in problems)
    assert MARKER not in "".join(problems)
