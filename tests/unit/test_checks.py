"""How ``make test`` runs its checks."""

import os
import subprocess
import sys

import pytest

from tests import __main__ as all_checks


@pytest.mark.parametrize("own", [True, False])
def test_byte_code_is_kept_but_not_in_somebody_elses_tree(monkeypatch, own):
    owner = all_checks.ROOT.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner if own else owner + 1)
    given = all_checks.byte_code("/scratch")
    assert given["PYTHONDONTWRITEBYTECODE"] == ""
    assert given["PYTHONPYCACHEPREFIX"] == ("" if own else "/scratch/bytecode")


@pytest.mark.parametrize("own", [True, False])
def test_the_lab_leaves_none_in_somebody_elses_tree(tmp_path, own):
    user = (all_checks.ROOT / "lab").stat().st_uid + (not own)
    program = f"import os, sys; os.geteuid = lambda: {user}; import lab; "
    program += "print(sys.dont_write_bytecode, os.getenv('PYTHONDONTWRITEBYTECODE'))"
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    # This test leaves none either, whoever runs it.
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=all_checks.ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == (["False", "None"] if own else ["True", "1"])
