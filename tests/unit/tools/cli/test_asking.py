# SPDX-License-Identifier: Apache-2.0
"""Questions on the terminal."""

import io
import sys

import pytest

from tacker_k8s_mgmt.tools.cli.base import UsageError
from tacker_k8s_mgmt.tools.cli.commands import request
from tacker_k8s_mgmt.tools.cloud.interview import Question

QUESTION = Question("network", "network of the VMs", "inner", ("outer", "inner"))


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("\n", "inner"),
        ("1\n", "outer"),
        (" outer \n", "outer"),
        ("another\n", "another"),
        ("3\n", "3"),
        ("0\n", "0"),
        ("9" * 5000 + "\n", "9" * 5000),
        ("\u0661\n", "\u0661"),
        ("outer", "outer"),
    ],
)
def test_answers(monkeypatch, capsys, typed, answer):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert request.on_terminal(QUESTION) == answer
    captured = capsys.readouterr()
    assert captured.out == ""
    wanted = "Network of the VMs\n  1  outer\n  2  inner\n[inner]> "
    assert captured.err == wanted


def test_an_answer_that_cannot_be_taken_is_asked_for_again(monkeypatch, capsys):
    question = Question("x", "x", problem=lambda answer: "No." * (answer == "bad"))
    monkeypatch.setattr(sys, "stdin", io.StringIO("bad\ngood\n"))
    assert request.on_terminal(question) == "good"
    assert capsys.readouterr().err == "X\n(fill in later)> No.\n(fill in later)> "


@pytest.mark.parametrize("typed", ["", "bad\n"])
def test_the_end_of_the_input_is_no_answer(monkeypatch, capsys, typed):
    question = Question("x", "x", "default", problem=lambda answer: answer and "No.")
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    with pytest.raises(UsageError, match=r"The input ended at .* --x\. Nothing was"):
        request.on_terminal(question)


def test_an_answer_in_latin_1_is_asked_for_again(monkeypatch, capsys):
    typed = io.TextIOWrapper(
        io.BytesIO(b"blau\xe9\nblue\n"), "utf-8", "surrogateescape"
    )
    monkeypatch.setattr(sys, "stdin", typed)
    assert request.on_terminal(QUESTION) == "blue"
    assert "> It is not a text in UTF-8.\n" in capsys.readouterr().err


def test_nothing_is_asked_where_defaults_are_wanted():
    assert request.default(QUESTION) == "inner"
