# SPDX-License-Identifier: Apache-2.0
import ast
from pathlib import Path

import pytest

import tacker_k8s_mgmt
from tacker_k8s_mgmt.model import untrusted
from tests.helpers import source

BAD = [
    "https://u:s3cret@h\u2100/",
    "https://u:s3cret@[h/",
    "https://u:p@h:s3cret",
    "https://h/\x1b[2Js3cret",
    "https://h/\0s3cret",
    "https://h\ns3cret/",
    "https://h/\ud800s3cret",
]


@pytest.mark.parametrize("url", BAD)
def test_an_error_does_not_quote_the_url(url):
    with pytest.raises(ValueError, match="must be a URL") as caught:
        untrusted.url_parts(url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert untrusted.url_host(url) in ("", "h")


def test_the_port_may_be_read():
    assert untrusted.url_parts("https://[fd00::1]:6443/x").port == 6443
    assert untrusted.url_parts("https://h:x", any_port=True).hostname == "h"


def test_no_other_module_takes_urls_apart_with_pythons_errors():
    root = Path(tacker_k8s_mgmt.__file__).parent
    users = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for node in ast.walk(source.module(path))
        if isinstance(node, ast.Name | ast.Attribute | ast.alias)
        and {getattr(node, a, "") for a in ("id", "attr", "name")}
        & {"urlsplit", "urlparse"}
    }
    assert users == {"model/untrusted.py"}
