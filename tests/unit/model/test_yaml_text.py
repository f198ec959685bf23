# SPDX-License-Identifier: Apache-2.0
"""YAML of others is read, or refused before it does harm."""

import subprocess
import sys

import pytest
import yaml

from tacker_k8s_mgmt.model import manifest_objects, yaml_text
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
    list(yaml_text.documents(sys.stdin.read()))
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
        yaml_text.document(f"secret: s3cret-p4ss\n{hostile.ITSELF}")
    assert "line 2" in str(caught.value)
    assert "s3cret-p4ss" not in str(caught.value)


def test_usual_aliases_are_values():
    text = "a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: &y 2}\nd: *y\n"
    assert yaml_text.document(text) == yaml.safe_load(text)
    labels = "&labels {app: web}"
    many = f"labels: {labels}\nitems:\n" + "- {metadata: {labels: *labels}}\n" * 5000
    assert len(yaml_text.document(many)["items"]) == 5000


def test_each_document_counts_by_itself():
    text = "--- &a [1]\n--- &a [2, 3]\n---\n"
    assert list(yaml_text.documents(text)) == [[1], [2, 3], None]
    assert yaml_text.document("") is None


@pytest.mark.parametrize(
    "text",
    [one for name, one in hostile.YAML.items() if name not in READ_OTHERWISE],
    ids=[name for name in hostile.YAML if name not in READ_OTHERWISE],
)
def test_a_manifest_is_refused_with_its_line(text):
    with pytest.raises(manifest_objects.Unusable, match=r"is no YAML \(line \d+\)"):
        manifest_objects.parse(OBJECT + text)
