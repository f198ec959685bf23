# SPDX-License-Identifier: Apache-2.0
"""The documentation shows existing commands, valid JSON and no real site."""

import ipaddress
import json
import re
import textwrap
from pathlib import Path

import pytest

from tests.unit.tools.cli.command_line import COMMANDS, commands_in, parsed
from tests.unit.tools.cli.journals import VNF

ROOT = Path(__file__).resolve().parents[4]
PAGES = [ROOT / "README.rst", *sorted((ROOT / "doc" / "source").glob("*.rst"))]
ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")


def each_page(test):
    return pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)(test)


@each_page
def test_every_command_is_one_that_the_command_line_takes(page):
    for words in commands_in(page.read_text().replace("VNF_INSTANCE_ID", VNF)):
        if {"--help", "--version"}.isdisjoint(words):
            assert parsed(words)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_in_the_reference(words):
    text = (ROOT / "doc" / "source" / "cli.rst").read_text()
    shown = [tuple(found[: len(words)]) for found in commands_in(text)]
    assert words in shown


@each_page
def test_json_is_json(page):
    source = page.read_text()
    blocks = re.findall(
        r"^( *)\.\. code-block:: json\n\n((?:\1 +.*\n|\n)+)", source, re.M
    )
    assert len(blocks) == source.count("code-block:: json")
    for _, block in blocks:
        text = textwrap.dedent(block).strip()
        # An attribute may be shown without the object around it.
        assert json.loads("{" + text + "}" if text.startswith('"') else text)


@each_page
def test_addresses_are_private_or_reserved_and_urls_hold_no_password(page):
    text = page.read_text()
    for address in ADDRESS.findall(text):
        assert ipaddress.ip_address(address).is_private, address
    assert not re.search(r"://[^/\s:`]+:[^/\s@`]+@(?!\S*\.example\b)", text)
