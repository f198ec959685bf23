# SPDX-License-Identifier: Apache-2.0
"""What a lab with a mirror serves, and where."""

from lab.services import config, control, mirror


def a_mirror(directory, name, content):
    for part in ("files", "images"):
        (directory / part / name).mkdir(parents=True)
        (directory / part / name / "data").write_text(content)
    (directory / "checksums.yaml").write_text("a: b\n")
    return directory


def test_mirrors_are_served_as_one(lab, tmp_path):
    one = a_mirror(tmp_path / "one", "v1", "one")
    two = a_mirror(tmp_path / "two", "v2", "two")
    mirror.link(lab, [one, two])
    served = mirror.root(lab)
    assert (served / "files/v1/data").read_text() == "one"
    assert (served / "images/v2/data").read_text() == "two"
    assert not (served / "checksums.yaml").exists()


def test_the_same_tag_is_the_later_mirrors(lab, tmp_path):
    mirrors = [a_mirror(tmp_path / name, "tag", name) for name in ("one", "two")]
    mirror.link(lab, mirrors)
    assert (mirror.root(lab) / "images/tag/data").read_text() == "two"


def test_a_file_that_is_spoiled_in_the_lab_is_not_in_its_mirror(lab, tmp_path):
    one = a_mirror(tmp_path / "one", "v1", "good")
    mirror.link(lab, [one])
    served = mirror.root(lab) / "files/v1/data"
    served.unlink()
    served.write_text("bad")
    assert (one / "files/v1/data").read_text() == "good"
    mirror.link(lab, [one])
    assert served.read_text() == "good"


def test_mirrors_given_by_a_relative_path_are_served(lab, tmp_path, monkeypatch):
    a_mirror(tmp_path / "one", "v1", "one")
    monkeypatch.chdir(tmp_path)
    mirror.link(lab, [(tmp_path / "one").relative_to(tmp_path)])
    assert (mirror.root(lab) / "files/v1/data").read_text() == "one"


def test_only_a_lab_with_a_mirror_has_its_services(lab, tmp_path):
    services = control.Control(lab, None)._permanent
    assert set(control.MIRROR).isdisjoint(services())
    mirror.link(lab, [a_mirror(tmp_path / "one", "v1", "one")])
    assert set(services()) == {*control.SERVICES, *control.MIRROR}


def test_the_registry_serves_the_images_and_takes_none(lab):
    named = config.values(lab)
    template = (config.TEMPLATES / "registry.yml").read_text()
    lines = [line.strip() for line in config.render(template, named).splitlines()]
    assert f"rootdirectory: {mirror.root(lab)}/images" in lines
    assert "addr: 10.99.0.1:5001" in lines
    assert lines[lines.index("readonly:") + 1] == "enabled: true"
