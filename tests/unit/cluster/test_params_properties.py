"""Whatever a request holds: a model or one ParamError, and never a password in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.cluster import params, spelling
from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.errors import ParamError
from tests.unit.cluster.samples import REMOVED, changed, request

MARKER = "Pa55-w0rd-"

# The attributes whose value is a secret in every request.
SECRETS = (
    "ansible.password",
    "master_node.password",
    "worker_node.password",
    "external_lb_param.ssh_password",
)


def attributes(model=InstallParams, place=""):
    for name, nested in spelling.border_names(model).items():
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


def outcome(body) -> tuple[InstallParams | None, tuple[str, ...]]:
    """The model, or the problems, with everything that the error carries."""
    try:
        return params.parse(request(body)), ()
    except ParamError as error:
        carried = (str(error), repr(error.fields), repr(error.__context__))
        return None, (*error.problems, *carried)


@given(values)
def test_any_value_at_all_is_read_or_refused(value):
    made, problems = outcome(value)
    assert made is None
    assert bool(problems) == (value is not None)


@st.composite
def bodies(draw):
    """The simple request, with some attributes replaced, removed and added."""
    changes = {name: draw(passwords) for name in SECRETS}
    for name in draw(st.lists(names, max_size=4, unique=True)):
        if not any(secret.startswith(name) for secret in SECRETS):
            changes[name] = draw(values | st.just(REMOVED))
    body = changed(changes)
    body.setdefault("proxy", {"http_proxy": f"http://user:{draw(passwords)}@proxy"})
    body.setdefault("kubespray_vars", {"registry_password": draw(passwords)})
    body.update(draw(st.dictionaries(texts, values, max_size=2)))
    return body


@given(bodies())
def test_no_password_is_in_a_problem_a_warning_or_the_models_text(body):
    made, problems = outcome(body)
    assert made or problems
    assert MARKER not in f"{made!r} {made} {problems}"


@given(passwords, st.sampled_from(SECRETS))
def test_every_password_is_among_the_secrets(password, name):
    made, problems = outcome(changed({name: password}))
    if made:
        assert password in made.secrets()
    else:
        assert problems[0] == f"{name}: must not contain control characters"


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
    made, problems = outcome(changed({name: value}))
    assert made is None
    assert problems[0].startswith(f"{name}: ")
    assert MARKER not in "".join(problems)
