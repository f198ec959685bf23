# SPDX-License-Identifier: Apache-2.0
"""The warning about secrets by reference that are read without verification."""

import logging
import types

import pytest
from keystoneauth1 import session

from tacker_k8s_mgmt.hooks.secret_sources import Secrets
from tacker_k8s_mgmt.request.secrets import Reference

URL = "https://192.0.2.1:9311/v1/secrets/{0}{0}-1111-1111-1111-{0}{0}{0}"


class Session(session.Session):
    """A session whose Barbican has every secret."""

    def request(self, url, method, *_, **__):
        return types.SimpleNamespace(status_code=200, content=b"pa55")


@pytest.mark.parametrize(
    ("verify", "warnings"), [(False, 1), (True, 0), ("/etc/ssl/ca.pem", 0)]
)
def test_unverified_certificates_are_warned_of_once(verify, warnings, caplog):
    options = types.SimpleNamespace(secret_directory="", secret_timeout=30.0)
    secrets = Secrets(lambda: (Session(verify=verify), ""), options, "")
    with caplog.at_level(logging.WARNING):
        for number in ("1111", "2222"):
            assert secrets(Reference("secret_ref", URL.format(number))) == "pa55"
    logged = [text for text in caplog.messages if "heat_verify_cert" in text]
    assert len(logged) == warnings
