# SPDX-License-Identifier: Apache-2.0
"""Version numbers, as far as they are compared here."""

import re

#: A minor release, such as (2, 31).
Minor = tuple[int, int]


def numbers(version: str) -> tuple[int, ...]:
    """The leading number of each part: 2.18.0rc1 is (2, 18, 0), v1.31.9 (1, 31, 9)."""
    return tuple(int(part) for part in re.findall(r"(?:^v?|\.)(\d{1,9})", version))


def minor(version: str) -> Minor:
    """The first two numbers, 0 for each that is missing."""
    first, second, *_ = (*numbers(version), 0, 0)
    return first, second


def tag(release: Minor) -> str:
    """A minor release as in git tags: v2.31."""
    return f"v{release[0]}.{release[1]}"
