# SPDX-License-Identifier: Apache-2.0
"""Warnings of programs are found in what they print."""

import pytest

from tests.helpers.tool_warnings import warnings_in

WARNINGS = [
    "Warning: policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+",
    "Warning: resource deployments/api is missing the annotation",
    "W1126 18:32:45.123456   13287 warnings.go:70] policy/v1beta1 is deprecated",
    "WARNING: Kubernetes configuration file is group-readable. This is insecure.",
    'time=2026-11-26T18:32:45Z level=WARN msg="unable to find exact version"',
    'level=WARN msg="unable to find exact version"',
    "ts=2026-11-26T18:32:45Z caller=main.go:12 level=warn msg=old",
    "[WARNING]: Could not match supplied host pattern, ignoring: calico_rr",
    "[DEPRECATION WARNING]: INJECT_FACTS_AS_VARS default is deprecated.",
    "[WARNING]  (155) : config : 'option forwardfor' ignored for frontend",
    "sudo: unable to resolve host worker-1: Name or service not known",
    "/etc/sudoers.d/zz:1:23: unknown defaults entry",
]
OTHERS = [
    'Error from server (NotFound): nodes "w1" not found',
    "Warning: deleting Pods that declare no controller: blue/elsewhere",
    "LAST SEEN   TYPE      REASON\n5s          Warning   FailedMount",
    "sudo: a password is required",
    "W1123 16:55:45.808983   13287 upgradeconfiguration.go:42] of kubeadm",
]


@pytest.mark.parametrize("line", WARNINGS)
def test_a_warning_is_found_unless_it_is_expected(line: str) -> None:
    output = f"first\n{line}\nlast\n"
    assert warnings_in(output) == [line]
    assert warnings_in(output, "another", line[5:30]) == []
    assert warnings_in(output, "another") == [line]


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_warning(text: str) -> None:
    assert warnings_in(text) == []
