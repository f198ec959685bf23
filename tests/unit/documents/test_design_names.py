# SPDX-License-Identifier: Apache-2.0
"""The page on the design names what is in the code."""

import re

from tests.helpers.design import BLOCK, EXAMPLES, PAGE, defined, words

_LITERAL = re.compile(r"(?<!`)``([^`\n]+)``(?!`)")
_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(\(.*\))?")
_ENDS = ("json", "jsonl", "py", "rst", "sh", "state", "yaml", "yml", "cfg", "conf")
#: Names of others.
OTHERS = {
    *("pyproject.toml", "read_limits", "TestTable", "KUBESPRAY_ROOTS"),
    *("Ansible_host", "ansible.posix.jsonl"),
    "userScriptErrHandlingData",
}


def unknown(page: str) -> set[str]:
    """The names in code font that nothing has."""
    found = set()
    for literal in _LITERAL.findall(BLOCK.sub("", page)):
        match = _NAME.fullmatch(literal)
        if not match or literal in OTHERS:
            continue
        parts = match[1].split(".")
        if parts[-1] in _ENDS:
            continue
        ours = match[2] or len(parts) > 1 or re.match("_|[A-Z][a-z]", literal)
        known = defined() if ours else defined() | words()
        if not set(parts) <= known | EXAMPLES:
            found.add(literal)
    return found


def test_every_name_is_in_the_code() -> None:
    page = PAGE.read_text()
    assert unknown(page) == set()
    assert [name for name in sorted(OTHERS | EXAMPLES) if name not in page] == []


def test_a_name_that_is_not_in_the_code_is_noticed() -> None:
    assert unknown("``Becomes``, ``_no_such()`` and ``Hook.no_such``; ``Step``") == {
        *("Becomes", "_no_such()", "Hook.no_such")
    }
