"""Waiting for an HTTPS address of the Kubernetes API, for the modules here."""

import ssl
import time
import urllib.error
import urllib.request
from typing import Any

_PAUSE = 0.2  # seconds
_ONE_TRY = 3.0

OPTIONS: dict[str, dict[str, Any]] = {
    "url": {"type": "str", "required": True},
    "ca": {"type": "path", "required": True},
    "client": {"type": "path"},
    "seconds": {"type": "float", "default": 60},
    "what": {"type": "str", "default": "the API server"},
}
"""What the modules take: the address, the PEM file of the CA that its certificate must
come from, one with a client certificate and key, how long to wait, and what to call it.
"""


def _problem(wanted: dict[str, Any]) -> str:
    """Why the address does not answer as it should; "" if it does."""
    context = ssl.create_default_context(cafile=wanted["ca"])
    if wanted["client"]:
        context.load_cert_chain(wanted["client"])
    direct = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with direct.open(wanted["url"], timeout=_ONE_TRY):
            return ""
    except urllib.error.HTTPError as error:
        return f"HTTP status {error.code}"
    except urllib.error.URLError as error:
        return str(error.reason)
    except OSError as error:
        return str(error)


def wait(wanted: dict[str, Any]) -> str:
    """Wait for a good answer.

    :param wanted: values for :data:`OPTIONS`.
    :returns: "" once it came, and the message when the time is over.
    """
    deadline = time.monotonic() + wanted["seconds"]
    while problem := _problem(wanted):
        if time.monotonic() > deadline:
            return (
                f"No good answer from {wanted['what']} at {wanted['url']} "
                f"within {wanted['seconds']:g} s: {problem}"
            )
        time.sleep(_PAUSE)
    return ""
