# SPDX-License-Identifier: Apache-2.0
"""Rows of the report about a cloud."""

from collections.abc import Callable, Iterable

from tacker_k8s_mgmt.errors import CloudError
from tacker_k8s_mgmt.status.check import Check


def row(
    name: str, where: str, ask: Callable[[], Iterable[str]], subject: str = ""
) -> Check:
    """A row with findings.

    :param subject: what they are about, where several rows have the same name.
    """
    try:
        texts = tuple(f"{subject}: {text}" if subject else text for text in ask())
        return Check(name, where, texts)
    except CloudError as error:
        return Check(name, where, (str(error),))
