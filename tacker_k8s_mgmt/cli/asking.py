# SPDX-License-Identifier: Apache-2.0
"""Questions on the terminal, each with its default and what to choose from."""

import sys

from tacker_k8s_mgmt.cli.common import UsageError, complain, is_text
from tacker_k8s_mgmt.cloud.questions import Question

_NO_TEXT = "It is no text in UTF-8."


def on_terminal(question: Question) -> str:
    """The answer to a question; nothing but Enter takes the default.

    A number stands for one of the choices.

    :raises UsageError: the input has ended, as Ctrl-D ends it.
    """
    lines = [f"{question.text[0].upper()}{question.text[1:]}"]
    lines += [f"  {n}  {text}" for n, text in enumerate(question.choices, 1)]
    default = f"[{question.default}]" if question.default else ""
    numbered = {str(n): text for n, text in enumerate(question.choices, 1)}
    # Prompts are no output: that may be the request.
    complain("\n".join(lines))
    while True:
        complain(f"{default}> ", end="")
        line = sys.stdin.readline()
        if not line:
            complain("")
            raise UsageError(
                f"The input ended at the question for --{question.option}. Nothing was "
                "written; --yes takes the defaults."
            )
        answer = line.strip()
        answer = numbered.get(answer, answer)
        why = question.problem(answer) if is_text(answer) else _NO_TEXT
        if not why:
            return answer or question.default
        complain(why)


def default(question: Question) -> str:
    """The default of a question, which is not asked."""
    return question.default
