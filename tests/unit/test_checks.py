"""How ``make test`` runs its checks."""

import os

import pytest

from tests import __main__ as all_checks


@pytest.mark.parametrize("own", [True, False])
def test_byte_code_is_kept_but_not_in_somebody_elses_tree(monkeypatch, own):
    owner = all_checks.ROOT.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner if own else owner + 1)
    given = all_checks.byte_code("/scratch")
    assert given["PYTHONDONTWRITEBYTECODE"] == ""
    assert given["PYTHONPYCACHEPREFIX"] == ("" if own else "/scratch/bytecode")
