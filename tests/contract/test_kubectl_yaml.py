# SPDX-License-Identifier: Apache-2.0
"""Manifests are for us what they are for the real kubectl."""

import json
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacker_k8s_mgmt.model import manifests
from tests.helpers.kubeapi import KUBECTL
from tests.helpers.kubectl_server import needs_kubectl
from tests.helpers.kubernetes_yaml import BIG, REFUSED, SCALARS, STRUCTURES

pytestmark = needs_kubectl

HEAD = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"


def kubectl(text, where):
    """What kubectl makes of a manifest without asking a cluster; None: it refuses."""
    words = ("label", "--local", "--output=json", "--filename=-", "read=y")
    done = subprocess.run(
        [KUBECTL or "kubectl", *words],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"HOME": str(where), "KUBECONFIG": str(where / "none")},
    )
    if done.returncode:
        assert "error parsing STDIN" in done.stderr, done.stderr
        return None
    return json.loads(done.stdout)["data"]


def ours(text):
    try:
        (read,) = manifests.parse(text)
    except manifests.Unusable:
        return None
    return json.loads(json.dumps(read["data"]))


def typed(value):
    """A value that tells true from 1, and 1.0 not from 1, as JSON does."""
    match value:
        case bool() | None:
            return repr(value)
        case dict():
            return {key: typed(inner) for key, inner in value.items()}
        case list():
            return [typed(inner) for inner in value]
        case int() | float():
            return float(value)
    return value


@pytest.mark.parametrize("text", [*STRUCTURES, *REFUSED])
def test_structures_and_refusals(text, tmp_path):
    text = f"{HEAD}data: {text}\n"
    assert typed(ours(text)) == typed(kubectl(text, tmp_path))


@pytest.mark.parametrize("table", [SCALARS, BIG], ids=["scalars", "big numbers"])
def test_the_table_says_what_kubectl_reads(table, tmp_path):
    text = HEAD + "data:\n" + "".join(f"- {scalar}\n" for scalar in table)
    read = kubectl(text, tmp_path)
    assert typed(read) == typed(list(table.values()))


# Letters of numbers, words and times, most of them such as PyYAML reads otherwise.
LETTERS = st.text("0011789.:_-+eExobBOyYnNTZ~=<aF", min_size=1, max_size=9)


@given(st.lists(LETTERS, min_size=20, max_size=60))
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_scalar_is_the_same_for_both(tmp_path, scalars):
    # Colons and dashes at an end make other nodes, and a lone tilde a null.
    plain = [s for s in scalars if not s.startswith(("- ", "-:")) and s[-1] not in ":"]
    plain = [s for s in plain if s not in ("-", "--", "---") and s[0] not in "="]
    text = HEAD + "data:\n- x\n" + "".join(f"- {scalar}\n" for scalar in plain)
    assert typed(ours(text)) == typed(kubectl(text, tmp_path))
