# SPDX-License-Identifier: Apache-2.0
"""The release notes: in reno's form, and true of what they are released with."""

import re

import pytest
import yaml

from tests.tree import ROOT

NOTES = sorted((ROOT / "releasenotes" / "notes").iterdir())
PROJECT = (ROOT / "pyproject.toml").read_text()
VERSION = re.search(r'^version = "(.*)"$', PROJECT, re.M)[1]
SECTIONS = {"prelude", "features", "issues", "deprecations", "security", "other"}
# Nobody has had what these change.
AFTER_THE_FIRST = {"upgrade", "fixes", "critical"}


@pytest.mark.parametrize("path", NOTES, ids=lambda path: path.stem)
def test_each_note_has_texts_in_known_sections(path):
    note = yaml.safe_load(path.read_text())
    known = SECTIONS if VERSION == "0.1.0" else SECTIONS | AFTER_THE_FIRST
    assert note
    assert set(note) <= known
    for section, texts in note.items():
        for text in [texts] if section == "prelude" else texts:
            assert isinstance(text, str)
            assert text.strip()
