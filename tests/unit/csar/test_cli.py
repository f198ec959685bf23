"""``tacker-k8s-mgmt csar``: exit codes and what is said."""

import pytest

from tacker_k8s_mgmt.cli import main


def test_a_built_package_passes_its_check(tmp_path, capsys):
    package = tmp_path / "simple.zip"
    assert main(["csar", "build", "simple", "-o", str(package)]) == 0
    assert main(["csar", "check", str(package)]) == 0
    built, checked = capsys.readouterr().out.splitlines()
    assert built.startswith(f"{package}: 12 files, SHA-256 ")
    assert checked == f"{package}: no problems (flavours: simple)"


def test_without_output_the_package_is_named_after_the_flavour(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["csar", "build", "simple"]) == 0
    assert (tmp_path / "simple.zip").is_file()


def test_names_of_a_site_are_taken_by_vdu(tmp_path, capsys):
    package = str(tmp_path / "simple.zip")
    options = ["--image", "jammy", "--image", "nosuch=focal", "--flavor", "big"]
    assert main(["csar", "build", "simple", "-o", package, *options]) == 1
    assert "there is no VDU nosuch" in capsys.readouterr().out


def test_an_existing_file_is_replaced_only_by_force(tmp_path, capsys):
    package = tmp_path / "simple.zip"
    package.write_text("mine")
    command = ["csar", "build", "simple", "-o", str(package)]
    assert main(command) == 2
    assert package.read_text() == "mine"
    assert "--force replaces it" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    assert package.read_bytes().startswith(b"PK")


def test_problems_are_listed_with_exit_code_1(tmp_path, capsys):
    package = tmp_path / "text.zip"
    package.write_text("not a zip")
    assert main(["csar", "check", str(package)]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{package}: 1 problem(s)"
    assert "cannot be read as a zip" in second


USAGE = {
    "an unknown flavour": (["build", "huge"], "no flavour huge"),
    "a missing directory": (["build", "simple", "-o", "no/x.zip"], "no directory no"),
    "missing types": (["build", "simple", "--types", "no"], "no directory no"),
    "a missing package": (["check", "no.zip"], "no file no.zip"),
}


@pytest.mark.parametrize(("arguments", "words"), USAGE.values(), ids=USAGE.keys())
def test_a_wrong_command_line_is_exit_code_2(
    tmp_path, monkeypatch, capsys, arguments, words
):
    monkeypatch.chdir(tmp_path)
    assert main(["csar", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_id_that_is_none_is_refused():
    with pytest.raises(SystemExit) as caught:
        main(["csar", "build", "simple", "--vnfd-id", "one"])
    assert caught.value.code == 2
