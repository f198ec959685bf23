# SPDX-License-Identifier: Apache-2.0
"""URLs of others, taken apart."""

from urllib.parse import SplitResult, urlsplit

from tacker_k8s_mgmt.model import redaction


def parts(url: str, *, any_port: bool = False) -> SplitResult:
    """The parts of a URL.

    :param any_port: whether its port may be no number, and so may not be read.
    :raises ValueError: the text is no URL. The error does not quote it, as Python's
        does, with the login.
    """
    if not url.isprintable():
        # Python drops some of these without a word.
        raise ValueError("must be a URL without control characters")
    try:
        split = urlsplit(url)
        if not any_port:
            _ = split.port
    except ValueError:
        raise ValueError("must be a URL, with a number as its port") from None
    return split


def shown(url: str) -> str:
    """The URL without its query, which may hold a token under any name."""
    start, sign, _ = url.partition("?")
    return f"{start}{sign}{redaction.STARS}" if sign else url


def host_of(url: str) -> str:
    """The host of a URL; "" for a text that has none."""
    try:
        return parts(url, any_port=True).hostname or ""
    except ValueError:
        return ""
