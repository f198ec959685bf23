# SPDX-License-Identifier: Apache-2.0
"""Every file that a command reads may have anything in it, or be none."""

import json
import random

import pytest

from tacker_k8s_mgmt.tools.cli import main
from tests.helpers.hostile import DEEP_JSON
from tests.unit.tools.cli import journals
from tests.unit.tools.cli.bodies import simple
from tests.unit.tools.cli.command_line import COMMANDS, parsed

#: Words of arguments that name a file which is read.
READ = ("FILE", "CSAR", "PACKAGE.zip", "REQUEST.json", "INSTANTIATE.json")
WRITTEN = ("output", "html")
BASE = {
    "csar build": ("simple", "-o", "out.zip", "--force"),
    "csar check": ("x.zip",),
    "csar cnf": ("-o", "out.zip", "--force"),
    "inventory preview": ("request.json",),
    "params check": ("request.json",),
    "preflight": ("request.json", "--state-path", ".", "--connect-timeout", "0.1"),
    "request init": ("--offline", "-y", "-o", "-"),
    "runs pages": ("pages", "--force"),
    "app show": (journals.VNF, "web"),
    "tenant access": (journals.VNF, "blue"),
}
SEED = random.Random(26)  # noqa: S311
CONTENTS = {
    "nothing": b"",
    "random bytes": SEED.randbytes(3000),
    "Latin-1": b'{"caf\xe9": 1}',
    "deep": DEEP_JSON.encode(),
    "a long number": b'{"additionalParams": ' + b"9" * 5000 + b"}",
    "a large number": b'{"additionalParams": {"a": 1e999}}',
    "no number": b'{"additionalParams": {"a": NaN}}',
    "NUL": b'{"a\x00": "\x00"}',
    "a surrogate": rb'{"a\ud800": "\udfff", "flavourId": "\ud800"}',
    **{
        f"only {text[:9]}": text.encode()
        for text in ("null", "7", "true", '"text"', "[]", "[[]]", "[null]", "{}")
    },
}


def arguments():
    """Each argument of each command that names a file to be read."""
    for words in COMMANDS:
        # They import Tacker first, which takes seconds.
        if words[0] in ("app", "cluster", "tenant"):
            continue
        base = BASE.get(" ".join(words), (journals.VNF,) if words[0] != "runs" else ())
        command, _ = parsed([*words, *base])
        for action in command.get_parser("")._actions:
            is_read = action.metavar in READ and action.dest not in WRITTEN
            if is_read:
                yield words, base, action


PLACES = [
    pytest.param(words, base, action, id=f"{' '.join(words)} {action.dest}")
    for words, base, action in arguments()
]


def line(words, base, action, path):
    if action.option_strings:
        return [*words, *base, action.option_strings[-1], path]
    return [*words, path, *base[1:]]


def ended(words):
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.json").write_text(json.dumps(simple()))
    (tmp_path / "x.zip").write_bytes(b"")
    for name in ("OS_CLOUD", "OS_AUTH_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_files_were_found():
    assert len(PLACES) >= 12


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize(("words", "base", "action"), PLACES)
def test_any_content_ends_in_a_line(place, capsys, words, base, action, content):
    (place / "hostile").write_bytes(content)
    code = ended(line(words, base, action, "hostile"))
    said = capsys.readouterr()
    assert code in (0, 1, 2), said
    assert "Traceback" not in said.out + said.err
    assert "Error: " not in said.err.replace("error: ", ""), said.err


UNREADABLE = {
    "absent": lambda path: None,
    "a directory": lambda path: path.mkdir(),
    "a loop of links": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("make", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize(("words", "base", "action"), PLACES)
def test_what_cannot_be_read_is_exit_code_2(place, capsys, words, base, action, make):
    make(place / "unreadable")
    assert ended(line(words, base, action, "unreadable")) == 2
    said = capsys.readouterr()
    assert "unreadable" in said.err
    assert "Traceback" not in said.err
