# SPDX-License-Identifier: Apache-2.0
"""``runs pages``: an index and the pages that it links to."""

import re

import pytest

from tacker_k8s_mgmt.tools.cli import main
from tests.unit.tools.cli.journals import OTHER, VNF, completed, failed


@pytest.fixture
def state_path(tmp_path):
    path = tmp_path / "state"
    completed(path)
    failed(path, "heal_end", vnf_id=OTHER)
    return path


def pages(state_path, directory, *options):
    place = ["--state-path", str(state_path), str(directory)]
    return main(["runs", "pages", *place, *options])


def test_every_link_leads_to_a_place_in_a_page(state_path, tmp_path, capsys):
    directory = tmp_path / "made" / "pages"
    assert pages(state_path, directory) == 0
    assert capsys.readouterr().out == f"{directory}/index.html: 2 VNF instance(s)\n"
    texts = {path.name: path.read_text() for path in directory.iterdir()}
    assert set(texts) == {"index.html", f"{VNF}.html", f"{OTHER}.html"}
    links = set()
    for name, text in texts.items():
        for link in re.findall(r'href="([^"]*)"', text):
            page, _, anchor = link.partition("#")
            links.add(page)
            assert f'id="{anchor}"' in texts[page or name] if anchor else page in texts
    assert links >= set(texts)


def test_they_are_for_their_owner_and_replaced_only_by_force(
    state_path, tmp_path, capsys
):
    directory = tmp_path / "pages"
    assert pages(state_path, directory) == 0
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert pages(state_path, directory) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert pages(state_path, directory, "--force") == 0


def test_without_journals_nothing_is_made(tmp_path, capsys):
    assert pages(tmp_path / "state", tmp_path / "pages") == 1
    assert "No operation is recorded" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()


def test_a_directory_that_cannot_be_made_is_one_line(state_path, tmp_path, capsys):
    (tmp_path / "pages").write_text("")
    assert pages(state_path, tmp_path / "pages") == 2
    assert "pages cannot be created: Not a directory" in capsys.readouterr().err
