# SPDX-License-Identifier: Apache-2.0
"""Patterns that search texts of others need no more than a moment for long ones."""

import subprocess
import sys

import pytest

CALLS = {
    "logins in URLs": (
        "from tacker_k8s_mgmt.text import shows_secret, without_login",
        "without_login(text), shows_secret(text)",
        "://",
    ),
    "credentials in variables": (
        "from tacker_k8s_mgmt.kubespray import variables",
        "variables._has_credential(text)",
        "://",
    ),
    "words of a page": (
        "from tacker_k8s_mgmt.tools.render import html",
        "html._whole(text)",
        "aaa",
    ),
    "checks of an API server": (
        "from tacker_k8s_mgmt.remote.kubernetes import api",
        "api._FAILED_CHECK.findall(text)",
        "[-]",
    ),
    **{
        f"a checkout of kubespray: {part!r}": (
            "from tacker_k8s_mgmt.kubespray.checkout import Checkout",
            "Checkout.from_texts(text, text, text, text)",
            part,
        )
        for part in (
            *("\n", " ", "\n ", "9", "version: 9\n", "kube_network_plugin in ["),
            *("  amd64:\n    ", "  removed_vars:\n    - a\n", "    1.2.3: x\n"),
        )
    },
    "what steers a terminal": (
        "from tacker_k8s_mgmt.text import in_line, printable",
        "printable(text), in_line(text)",
        "\x1b[\n",
    ),
    "certificates": (
        "from tacker_k8s_mgmt.request import fields",
        "fields._CERTIFICATE_PEM.fullmatch(text)",
        "-----BEGIN CERTIFICATE-----\na\n",
    ),
    "quantities": (
        "from tacker_k8s_mgmt.request import tenants",
        "tenants._WORD.fullmatch(text + '!')",
        "a-*",
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_patterns_take_no_more_time_than_the_text_is_long(call):
    module, search, part = call
    # A million characters: what takes the square of that does not end in an hour.
    code = f"{module}\ntext = {part!r} * {1_000_000 // len(part)}\n{search}\n"
    argv = [sys.executable, "-c", code]
    subprocess.run(argv, timeout=120, check=True, capture_output=True)
