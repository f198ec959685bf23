"""Version numbers, as far as they have to be compared here."""

import re


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of each part: 2.18.0rc1 is (2, 18, 0), v1.31.9 (1, 31, 9)."""
    return tuple(int(part) for part in re.findall(r"(?:^v?|\.)(\d+)", version))


def minor(version: str) -> tuple[int, int]:
    """The first two numbers, 0 for each that is not there."""
    first, second, *_ = (*numbers(version), 0, 0)
    return first, second
