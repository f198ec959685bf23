# SPDX-License-Identifier: Apache-2.0
"""Python code of others, read and never run."""

import ast

_TRIES = 5


def parse(source: str | bytes) -> ast.Module | None:
    """The tree of a module; None for what is no Python or too deep.

    Before Python 3.11.5 a thread that reads code disturbs another one that does, for
    instance to print a traceback (cpython issue 106905).
    """
    for _ in range(_TRIES):
        try:
            return ast.parse(source)
        except SystemError:
            continue
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            break
    return None
