# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt complete``, as the shells take it."""

import subprocess

import pytest

from tacker_k8s_mgmt.tools.cli import main

# Of the package bash-completion.
_WORDS = """
_get_comp_words_by_ref() {
  words=("${COMP_WORDS[@]}"); cur=${COMP_WORDS[COMP_CWORD]}
  prev=${COMP_WORDS[COMP_CWORD-1]}
}
"""
# Of zsh's completion, which needs a terminal.
_ZSH = """
compdef() { :; }
_files() { print FILES; }
compadd() { shift; print -l -- "$@"; }
"""


def in_bash(script, typed):
    words = " ".join(f"'{word}'" for word in typed)
    program = (
        f"{_WORDS}{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}\n"
        "_tacker_k8s_mgmt; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    return run(["bash", "-c", program])


def in_zsh(script, typed):
    words = " ".join(f"'{word}'" for word in typed)
    program = (
        f"{_ZSH}{script}\nwords=({words}); CURRENT={len(typed)}; "
        f"PREFIX='{typed[-1]}'\n_tacker_k8s_mgmt"
    )
    return run(["zsh", "-f", "-c", program])


def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd="/var")
    return {word for word in done.stdout.split() if word.strip()}


SHELLS = {"bash": in_bash, "zsh": in_zsh}

TYPED = {
    "a group": (["tacker-k8s-mgmt", ""], {"cluster", "runs", "preflight", "help"}),
    "a verb": (["tacker-k8s-mgmt", "runs", ""], {"list", "show", "follow"}),
    "an option": (["tacker-k8s-mgmt", "runs", "show", "--"], {"--html", "--json"}),
    "of one word": (["tacker-k8s-mgmt", "preflight", "--p"], {"--package"}),
    "after an option": (
        ["tacker-k8s-mgmt", "runs", "show", "--force", "--"],
        {"--html"},
    ),
}


@pytest.mark.parametrize("typed", TYPED)
@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_options_are_completed(capsys, shell, typed):
    assert main(["complete", "--shell", shell]) == 0
    words, wanted = TYPED[typed]
    assert wanted <= SHELLS[shell](capsys.readouterr().out, words)


@pytest.mark.parametrize("shell", SHELLS)
def test_arguments_are_completed_as_files(capsys, shell):
    assert main(["complete", "--shell", shell]) == 0
    words = ["tacker-k8s-mgmt", "params", "check", ""]
    offered = SHELLS[shell](capsys.readouterr().out, words)
    assert offered & {"FILES", "lib"}
    assert "--stored" not in offered
