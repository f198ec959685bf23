# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes as entries of the metadata: every problem of each."""

import pytest

from tacker_k8s_mgmt.features.node_settings.settings import (
    Scope,
    combined,
    is_entry,
    parse,
)
from tacker_k8s_mgmt.model.nodes import MAINTENANCE_TAINT
from tacker_k8s_mgmt.request.reader import merged_metadata


def problems(**metadata):
    return parse(metadata)[1]


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("k8s_nodes:worker:label:disk", "ssd"),
        ("k8s_nodes:worker:label:example.com/disk", ""),
        ("k8s_nodes:control_plane:annotation:note", "any text, of any kind: ü"),
        ("k8s_nodes:aspect:gpu_worker:taint:gpu:NoSchedule", "yes"),
        ("k8s_nodes:vnfc:workerNode-1f:taint:gpu:PreferNoSchedule", ""),
        ("k8s_nodes:vnfc:1f:maintenance", "true"),
        ("k8s_nodes:worker:label:notkubernetes.io/a", "b"),
        (f"k8s_nodes:worker:label:{'a' * 63}", "b" * 63),
    ],
)
def test_what_kubernetes_takes(entry, value):
    (setting,), none = parse({entry: value})
    assert (setting.entry, setting.value, none) == (entry, value, ())


@pytest.mark.parametrize(
    ("entry", "value", "problem"),
    [
        ("k8s_nodes", {"worker": {}}, "is no setting: write k8s_nodes:SELECTOR"),
        ("k8s_nodes:worker", "x", "is no setting"),
        ("k8s_nodes:worker:label", "x", "is no setting"),
        ("k8s_nodes:master:label:a", "x", "is no setting"),
        ("k8s_nodes:vnfc::label:a", "x", "is no setting"),
        ("k8s_nodes:aspect:label:a", "x", "is no setting"),
        ("k8s_nodes:worker:one:label:a", "x", "is no setting"),
        ("k8s_nodes:worker:taint:a", "x", "is no setting"),
        ("k8s_nodes:worker:label:a", 1, "must be text, or null to remove it"),
        ("k8s_nodes:worker:label:a", {"b": "c"}, "must be text"),
        ("k8s_nodes:worker:label:-a", "x", "has no valid key"),
        ("k8s_nodes:worker:label:", "x", "has no valid key"),
        (f"k8s_nodes:worker:label:{'a' * 64}", "x", "has no valid key"),
        ("k8s_nodes:worker:annotation:A.b/c", "x", "has no valid key"),
        (f"k8s_nodes:worker:label:{'.'.join(['a' * 60] * 5)}/c", "x", "valid key"),
        ("k8s_nodes:worker:label:kubernetes.io/os", "x", "key of kubernetes.io"),
        ("k8s_nodes:worker:label:node-role.kubernetes.io/x", "", "reserved"),
        ("k8s_nodes:worker:taint:x.k8s.io/y:NoExecute", "", "reserved"),
        ("k8s_nodes:worker:label:tacker-k8s-mgmt/x", "", "this driver uses itself"),
        ("k8s_nodes:worker:taint:a:Never", "", "unknown effect; there are NoSchedule,"),
        ("k8s_nodes:worker:taint:a:NoExecute", "b c", "must be empty or have at most"),
        ("k8s_nodes:worker:label:a", "b" * 64, "must be empty or have at most 63"),
        ("k8s_nodes:worker:label:a", "b_", "with a letter or digit at both ends"),
        ("k8s_nodes:worker:maintenance", "true", "only single VNFCs"),
        ("k8s_nodes:vnfc:1:maintenance", "yes", "must be true, or null"),
    ],
)
def test_what_is_refused(entry, value, problem):
    settings, (found,) = parse({entry: value, "k8s_nodes:worker:label:ok": "x"})
    assert found.startswith(f"{entry} ")
    assert problem in found
    assert [setting.key for setting in settings] == ["ok"]


def test_every_problem_is_found_and_other_metadata_is_not_ours():
    metadata = {
        "k8s_nodes:worker:taint:-:Never": "b c",
        "k8s_nodes:worker:label:k8s.io/a": "-",
        "k8s_mgmt": {"version": 1},
        "k8s_nodes_of_others": 1,
    }
    assert len(parse(metadata)[1]) == 5
    assert [name for name in metadata if is_entry(name)] == list(metadata)[:2]


def test_the_more_specific_setting_holds():
    settings, _ = parse(
        {
            "k8s_nodes:vnfc:1:label:a": "vnfc",
            "k8s_nodes:aspect:gpu:label:a": "aspect",
            "k8s_nodes:aspect:gpu:label:b": "aspect",
            "k8s_nodes:worker:label:b": "role",
            "k8s_nodes:worker:label:c": "role",
        }
    )
    assert combined(settings).labels == {"a": "vnfc", "b": "aspect", "c": "role"}
    assert [setting.scope for setting in settings][-1] is Scope.VNFC


def test_maintenance_has_a_taint():
    settings, _ = parse({"k8s_nodes:vnfc:1:maintenance": "true"})
    wanted = combined(settings)
    assert (wanted.maintenance, dict(wanted.taints)) == (True, {MAINTENANCE_TAINT: ""})
    assert wanted.shown() == {"maintenance": "true"}


def test_a_request_adds_replaces_and_removes_entries():
    assert merged_metadata({"a": "1", "b": "2"}, {"b": "3", "a": None, "c": "4"}) == {
        "b": "3",
        "c": "4",
    }
