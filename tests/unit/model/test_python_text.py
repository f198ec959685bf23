# SPDX-License-Identifier: Apache-2.0
"""Python code of others."""

import ast

import pytest

from tacker_k8s_mgmt.model import untrusted


@pytest.mark.parametrize("source", ["def", "\0", "(" * 5000, b"\xff", "-" * 100_000])
def test_what_is_no_python(source):
    assert untrusted.parse_python(source) is None


def test_it_is_read_again_if_another_thread_disturbs(monkeypatch):
    disturbed = iter([SystemError, SystemError])
    read = ast.parse

    def parse(source):
        for error in disturbed:
            raise error("AST constructor recursion depth mismatch")
        return read(source)

    monkeypatch.setattr(ast, "parse", parse)
    tree = untrusted.parse_python("class A: ...")
    assert [node.name for node in tree.body] == ["A"]


def test_it_is_not_read_for_ever(monkeypatch):
    def parse(source):
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", parse)
    assert untrusted.parse_python("class A: ...") is None
