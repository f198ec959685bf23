# SPDX-License-Identifier: Apache-2.0
"""YAML of others is read, or refused before it does harm."""

import contextlib
import subprocess
import sys
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.model.yaml_text import parse_yaml, yaml_documents
from tests.helpers import hostile

# The first has no line; tags say nothing to Kubernetes' tools.
READ_OTHERWISE = ("nested deeply", "objects of Python")
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
READ = """
import resource, sys, yaml
from tacker_k8s_mgmt.model import yaml_text
gigabyte = 1 << 30
resource.setrlimit(resource.RLIMIT_AS, (gigabyte, gigabyte))
try:
    list(yaml_text.yaml_documents(sys.stdin.read()))
except yaml.YAMLError as error:
    print(error)
"""


@pytest.mark.parametrize("text", hostile.YAML.values(), ids=hostile.YAML.keys())
def test_what_would_harm_is_refused_in_time_and_memory(text):
    # In a process of its own, which is what such a text ends.
    done = subprocess.run(
        [sys.executable, "-c", READ],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert any(
        reason in done.stdout
        for reason in (
            "is nested too deeply",
            "has aliases that stand for too much",
            "has an alias of what it is in",
            "could not determine a constructor for the tag",
        )
    ), done.stdout


def test_the_error_has_a_line_and_none_of_the_text():
    with pytest.raises(yaml.YAMLError) as caught:
        parse_yaml(f"secret: s3cret-p4ss\n{hostile.ITSELF}")
    assert "line 2" in str(caught.value)
    assert "s3cret-p4ss" not in str(caught.value)


def test_usual_aliases_are_values():
    text = "a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: &y 2}\nd: *y\n"
    assert parse_yaml(text) == yaml.safe_load(text)
    labels = "&labels {app: web}"
    many = f"labels: {labels}\nitems:\n" + "- {metadata: {labels: *labels}}\n" * 5000
    assert len(parse_yaml(many)["items"]) == 5000


def test_each_document_counts_by_itself():
    text = "--- &a [1]\n--- &a [2, 3]\n---\n"
    assert list(yaml_documents(text)) == [[1], [2, 3], None]
    assert parse_yaml("") is None


@pytest.mark.parametrize(
    "text",
    [one for name, one in hostile.YAML.items() if name not in READ_OTHERWISE],
    ids=[name for name in hostile.YAML if name not in READ_OTHERWISE],
)
def test_a_manifest_is_refused_with_its_line(text):
    with pytest.raises(manifests.Unusable, match=r"is no YAML \(line \d+\)"):
        manifests.parse(OBJECT + text)


_SIXTY = ":".join(["1"] * 200_000)
_NO_VALUES = {
    "an integer in base 60": _SIXTY,
    "a float in base 60": f"{_SIXTY}.5",
    "a float in base 60 of a tag": f"!!float '{_SIXTY}.5'",
    "an integer of 5000 digits": "1" * 5000,
    "an integer of 70 digits": "0x" + "f" * 70,
    "no date": "2024-99-99",
    "no date of a tag": "!!timestamp a",
    "no data": "!!binary \u00e9",
    "no number": "!!int ''",
    "no truth": "!!bool maybe",
    "no key": "{[a]: b}",
    "no pairs": "!!pairs [a]",
    "no set": "!!set [a]",
    "many values": "[" + "a," * 600_000 + "]",
    "many mappings": "- {a: b}\n" * 200_000,
}


@pytest.mark.parametrize("text", _NO_VALUES.values(), ids=_NO_VALUES.keys())
def test_what_has_no_value_is_refused_in_a_moment(text):
    began = time.process_time()
    with pytest.raises(yaml.YAMLError) as caught:
        parse_yaml(f"a: {text}" if text[0] != "-" else text)
    assert time.process_time() - began < 10
    assert len(str(caught.value)) < 1000
    with pytest.raises(yaml.YAMLError):
        list(yaml_documents(f"a: {text}" if text[0] != "-" else text))


_MARKS = "!tims0123456789:._-+eExabinflorydg{}[]'\"<>=&*, \n"


@given(st.text(alphabet=_MARKS, max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(yaml.YAMLError):
        parse_yaml(text)


@pytest.mark.parametrize("number", ["12:30:45", "1.5", "0x7f", "1_000", "-7", "1e3"])
def test_usual_numbers_are_those_of_yaml(number):
    assert parse_yaml(number) == yaml.safe_load(number)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("[" * 700 + "]" * 700, "is no YAML"),
        ('{"a": ' * 300 + "1" + "}" * 300, "is no YAML"),
        (f"[{'[],' * 600_000}[]]", "is no YAML"),
    ],
    ids=["lists in lists", "objects in objects", "many values"],
)
def test_a_manifest_in_json_has_the_limits_of_yaml(spec, why):
    head = '{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": '
    assert manifests.parse(f"{head}[[]]}}")
    with pytest.raises(manifests.Unusable, match=why):
        manifests.parse(f"{head}{spec}}}")
