"""The commands and their help."""

import re
import shlex

import pytest

from tacker_k8s_mgmt import cli
from tacker_k8s_mgmt.cli import main

VERBS = [(group.NAME, verb) for group in cli.groups() for verb in group.EXAMPLES]


def help_of(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main([*words, "--help"])
    assert caught.value.code == 0
    return capsys.readouterr().out


def commands_in(text):
    """The command lines of this program in a text, without what a shell does."""
    joined = text.replace("\\\n", " ")
    for line in re.findall(r"^[\s$#]*(tacker-k8s-mgmt .*)$", joined, re.MULTILINE):
        words = shlex.split(line, comments=True)[1:]
        for end in ("<", ">", "|"):
            words = [word for word in words if not word.startswith(end)]
        yield words
