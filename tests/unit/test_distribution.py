# SPDX-License-Identifier: Apache-2.0
"""The source distribution: whoever unpacks it has what is in a checkout."""

import shutil
import subprocess
import sys

import pytest

from tests import __main__ as all_checks
from tests import tree
from tests.helpers import licence

MADE = ("PKG-INFO", "setup.cfg", "tacker_k8s_mgmt.egg-info")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Where the source distribution of this tree was unpacked."""
    directory = tmp_path_factory.mktemp("distribution")
    copy, out = directory / "copy", directory / "out"
    for name in tree.files():
        place = copy / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree.ROOT / name, place)
    argv = [sys.executable, "setup.py", "-q", "sdist"]
    subprocess.run(argv, cwd=copy, check=True, capture_output=True)
    (archive,) = (copy / "dist").iterdir()
    shutil.unpack_archive(archive, out)
    (top,) = out.iterdir()
    return top


def test_it_has_every_file_of_the_project_and_no_other(unpacked):
    found = {
        str(path.relative_to(unpacked))
        for path in unpacked.rglob("*")
        if path.is_file() and path.relative_to(unpacked).parts[0] not in MADE
    }
    assert found == {name for name in tree.files() if name not in MADE}


def test_what_is_installed_has_the_data_of_every_package(tmp_path):
    argv = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path)]
    argv += ["build_py", "-d", str(tmp_path)]
    subprocess.run(argv, cwd=tree.ROOT, check=True, capture_output=True)
    own = [name for name in tree.files() if name.startswith("tacker_k8s_mgmt/")]
    assert "tacker_k8s_mgmt/tools/csar/request_schemas.json" in own
    assert [name for name in own if not (tmp_path / name).is_file()] == []


def test_programs_can_be_run_in_it(unpacked):
    for name in tree.files():
        if name not in MADE:
            mode = (tree.ROOT / name).stat().st_mode
            assert bool((unpacked / name).stat().st_mode & 0o100) is bool(mode & 0o100)


def test_without_git_the_same_files_are_found(unpacked):
    (unpacked / "tests" / "__pycache__").mkdir(exist_ok=True)
    (unpacked / "tests" / "__pycache__" / "one.pyc").touch()
    assert set(tree.files(unpacked)) == {*tree.files(), *MADE[:2]}


def test_without_git_every_shell_script_is_checked(unpacked, monkeypatch):
    there = all_checks.scripts()
    assert "scripts/install_external_lb.sh" in there
    monkeypatch.setattr(all_checks, "ROOT", unpacked)
    assert all_checks.scripts() == there


def test_no_link_leads_to_a_directory():
    """Of two ways to a directory setuptools packs whichever it meets first."""
    tops = {name.split("/")[0] for name in tree.files() if "/" in name}
    paths = [path for top in tops for path in (tree.ROOT / top).rglob("*")]
    assert "kubeapi" in {path.name for path in paths}
    assert [path for path in paths if path.is_symlink() and path.is_dir()] == []


def test_each_source_file_names_the_licence():
    """Write it into the first line, or below that of the interpreter."""
    missing = [n for n in tree.files() if licence.is_missing(tree.ROOT / n, n)]
    assert missing == [], f"{licence.MARK} is not in the first two lines of these"


def test_a_file_without_the_licence_is_noticed(tmp_path):
    mark = f"# {licence.MARK}\n"
    texts = {
        "a.py": "import os\n",
        "b.py": mark,
        "c.py": "",
        "d": "#!/bin/sh\n:\n",
        "e": f"#!/bin/sh\n{mark}:\n",
        "f.py": f"import os\n\n{mark}",
        "g.txt": "text\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = {name for name in texts if licence.is_missing(tmp_path / name, name)}
    assert found == {"a.py", "d", "f.py"}
