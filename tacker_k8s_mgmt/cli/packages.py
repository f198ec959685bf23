# SPDX-License-Identifier: Apache-2.0
"""What the commands that read VNF packages share."""

from collections.abc import Sequence

from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar import vnfd


def need_parsers() -> None:
    """Check that packages can be read.

    :raises UsageError: the parsers are not installed.
    """
    if missing := vnfd.missing_parsers():
        raise UsageError(
            f"packages are read with {' and '.join(missing)}, not installed here: "
            "pip install 'tacker-k8s-mgmt[csar]', or '.[csar]' in a source tree"
        )


def print_problems(subject: str, problems: Sequence[str]) -> None:
    """Print what is wrong with a package, numbered."""
    common.show(f"{subject}: {len(problems)} problem(s)")
    for number, problem in enumerate(problems, 1):
        common.show(f"{number:>3}. {problem}")
