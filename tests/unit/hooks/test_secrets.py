"""What is told of the way that secrets by reference take."""

import logging
import types

import pytest
from keystoneauth1 import session

from tacker_k8s_mgmt.hooks.secrets import Secrets
from tacker_k8s_mgmt.request.secret_references import Reference

URL = "https://192.0.2.1:9311/v1/secrets/{0}{0}-1111-1111-1111-{0}{0}{0}"


class Session(session.Session):
    """One whose Barbican has every secret."""

    def request(self, url, method, **_):
        return types.SimpleNamespace(status_code=200, content=b"pa55")


@pytest.mark.parametrize(
    ("verify", "warnings"), [(False, 1), (True, 0), ("/etc/ssl/ca.pem", 0)]
)
def test_who_does_not_verify_certificates_is_warned_once(verify, warnings, caplog):
    options = types.SimpleNamespace(secret_directory="", secret_timeout=30.0)
    secrets = Secrets(lambda: (Session(verify=verify), ""), options, "")
    with caplog.at_level(logging.WARNING):
        for number in ("1111", "2222"):
            assert secrets(Reference("secret_ref", URL.format(number))) == "pa55"
    told = [one for one in caplog.messages if "heat_verify_cert" in one]
    assert len(told) == warnings
