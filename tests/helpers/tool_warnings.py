# SPDX-License-Identifier: Apache-2.0
"""Warnings of the programs that tests run: each fails the test that does not name it.

What a program warns of today it refuses in a later release.
"""

import re

_WARNING = re.compile(
    r"""
    # kubectl: its own, and those of the API server. What the options of a drain and of
    # a deletion ask for is none.
    Warning:\ (?!deleting\ Pods|ignoring\ DaemonSet-managed|Immediate\ deletion) |
    WARNING:\ |  # Helm
    W\d{4}\ [\d:.]+\ +\d+\ warnings\.go |  # Helm: those of the API server
    time=\S+\ level=WARN |  # Helm 4, Alertmanager
    ts=\S+\ caller=\S+\ level=warn |  # former releases of Alertmanager
    level=WARN |  # Helm
    \[(DEPRECATION\ )?WARNING\] |  # Ansible, HAProxy
    sudo(-rs)?:\ (unable\ to\ |unknown\ |ignoring\ |.*\bwarning\b) |
    /etc/sudoers\S*:  # sudo, with a line of its settings
    """,
    re.VERBOSE,
)


def warnings_in(output: str, *expected: str) -> list[str]:
    """The lines that are warnings.

    :param expected: parts of those that the test is about.
    """
    return [
        line
        for line in output.splitlines()
        if _WARNING.match(line.strip()) and not any(one in line for one in expected)
    ]
