# SPDX-License-Identifier: Apache-2.0
"""Questions on the terminal, each with its default and what to choose from."""

import sys

from tacker_k8s_mgmt.cloud.questions import Question


def on_terminal(question: Question) -> str:
    """The answer to a question; nothing but Enter takes the default.

    A number stands for one of the choices. At the end of the input the defaults are
    taken, too.
    """
    lines = [f"{question.text[0].upper()}{question.text[1:]}"]
    lines += [f"  {n}  {text}" for n, text in enumerate(question.choices, 1)]
    default = f"[{question.default}]" if question.default else ""
    # Prompts are no output: that may be the request.
    print(*lines, sep="\n", file=sys.stderr)
    while True:
        print(f"{default}> ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline().strip()
        if answer.isdecimal() and 0 < int(answer) <= len(question.choices):
            answer = question.choices[int(answer) - 1]
        why = question.problem(answer)
        if not why:
            return answer or question.default
        print(why, file=sys.stderr)


def default(question: Question) -> str:
    """The default of a question, which is not asked."""
    return question.default
