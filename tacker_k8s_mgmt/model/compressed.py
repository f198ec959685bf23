# SPDX-License-Identifier: Apache-2.0
"""Compressed data from elsewhere, a megabyte of which may be a gigabyte unpacked."""

import gzip
import io
import zlib


class Damaged(Exception):
    """It cannot be unpacked."""


class TooLarge(Exception):
    """It would be more than the limit when it is unpacked; the text says so."""


def unpack(data: bytes, largest: int) -> bytes:
    """The content of gzip data.

    :param largest: bytes that it may have.
    :raises Damaged: it is no gzip data, or not all of it.
    :raises TooLarge: it has more bytes.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            content = stream.read(largest + 1)
    except (OSError, EOFError, zlib.error):
        raise Damaged from None
    if len(content) > largest:
        raise TooLarge(f"more than {largest} bytes when it is unpacked")
    return content
