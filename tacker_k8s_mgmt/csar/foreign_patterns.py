# SPDX-License-Identifier: Apache-2.0
"""Regular expressions of packages, which may take for ever or all memory.

Both the expression and the text are of others, and Python's ``re`` has no time limit.
Neither a limit of their lengths nor a look at the expression would be safe, so a child
process, which can be ended, compares them.
"""

import json
import subprocess
import sys

_LIMIT = 5.0  # seconds
# Python itself ends with 1 after an error, such as that of the memory's limit.
_FITS, _DIFFERS, _INVALID = 0, 11, 12
_MEMORY = 512 * 2**20  # bytes
_CHILD = f"""
import json, re, resource, signal, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
pattern, text, seconds = json.load(sys.stdin)
# It ends without its parent, too, which may be killed meanwhile.
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.setitimer(signal.ITIMER_REAL, seconds)
try:
    compiled = re.compile(pattern)
except (re.error, OverflowError, RecursionError):
    sys.exit({_INVALID})
sys.exit({_FITS} if compiled.fullmatch(text) else {_DIFFERS})
"""
#: The answer about one that took too long, or too much memory.
TOO_MUCH = "takes too long to compare with"


def problem(pattern: str, text: str) -> str:
    """Why a text does not match a pattern whole, as a verb; "" if it does.

    A pattern that is no regular expression is no problem of the text.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input=json.dumps([pattern, text, _LIMIT + 1]).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TOO_MUCH
    verbs = {_FITS: "", _DIFFERS: "does not match", _INVALID: ""}
    return verbs.get(done.returncode, TOO_MUCH)
