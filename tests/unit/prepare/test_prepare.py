# SPDX-License-Identifier: Apache-2.0
"""The script that prepares an Ansible server: what it makes, and makes once."""

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tacker_k8s_mgmt.kubespray import checkout, releases, strategies
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.ssh import login
from tests.documents import account
from tests.helpers.samples import parsed
from tests.helpers.sshd import Sshd
from tests.unit.prepare.sandbox import (
    ANSIBLES,
    LIMITS,
    SCRIPT,
    USER,
    Sandbox,
    git,
    make_wheel,
    write,
)

PINNED = max(strategies.MITOGEN)


def test_the_first_call_prints_its_steps_and_what_to_write_into_requests(first):
    directory, *said = first
    opt = f"{directory}/opt"
    assert said == [
        f"clone kubespray v2.31.0 into {opt}/kubespray-2.31.0 ...",
        "install ansible-core >=2.18.0,<2.19.0 and what else kubespray v2.31.0 wants "
        f"into {opt}/kubespray-venv-2.31.0 ...",
        f"link {opt}/kubespray to {opt}/kubespray-2.31.0 ...",
        f"link {opt}/kubespray-venv to {opt}/kubespray-venv-2.31.0 ...",
        f"ansible.kubespray_root_path: {opt}/kubespray-2.31.0 "
        f"(or {opt}/kubespray, which leads to kubespray-2.31.0)",
        f"ansible.venv_path: {opt}/kubespray-venv-2.31.0 "
        f"(or {opt}/kubespray-venv, which leads to kubespray-venv-2.31.0)",
        "changed",
    ]


def test_nothing_is_left_beside_what_was_asked_for(first):
    assert sorted(os.listdir(f"{first[0]}/opt")) == [
        "kubespray",
        "kubespray-2.31.0",
        "kubespray-venv",
        "kubespray-venv-2.31.0",
    ]
    assert not list(Path(first[0]).glob("tmp.*"))


def test_others_may_read_it(first):
    for path in Path(first[0], "opt").rglob("*"):
        if not path.is_symlink():
            assert path.stat().st_mode & 0o004, path


def test_the_drivers_own_checks_have_nothing_to_find(prepared, tmp_path):
    sshd = Sshd(tmp_path / "home")
    try:
        sshd.program("sshpass", "exit 0\n")
        with login.open_ssh(
            sshd.endpoint(), host_keys=sshd.host_keys(), redact=str, deadline=60
        ) as session:
            found = server.survey_server(
                session, str(prepared.root), str(prepared.venv)
            )
    finally:
        sshd.close()
    ansible = found.ansible_version
    assert ansible == ANSIBLES["11.0.0"]
    assert found.missing == frozenset()
    asked = found.checkout, ansible, found.has_sshpass, parsed(), found.missing
    assert checkout.findings(*asked) == ()


def test_the_second_call_changes_nothing(prepared):
    before = prepared.everything()
    assert prepared.do()[-1] == "unchanged"
    assert prepared.everything() == before


def test_the_second_call_needs_no_source(prepared, tmp_path):
    (tmp_path / "none").mkdir()
    said = prepared.do("--git-url", "/nonexistent", "--wheels", str(tmp_path / "none"))
    assert said[-1] == "unchanged"


class TestLooking:
    @pytest.mark.parametrize("option", ["--check", "--dry-run"])
    def test_a_server_with_nothing_is_left_alone(self, fresh, option):
        fresh.remove("sshpass", "git")
        result = fresh.run(option)
        assert result.returncode == (1 if option == "--check" else 0)
        assert result.stderr == ""
        word = "missing: " if option == "--check" else "would "
        lines = result.stdout.splitlines()
        assert len(lines) == 5
        assert all(line.startswith(word) for line in lines)
        assert lines[0].endswith("the package(s) sshpass git")
        assert not (fresh.directory / "opt").exists()

    def test_nothing_is_missing(self, prepared):
        before = prepared.everything()
        assert prepared.do("--check") == ["nothing is missing"]
        assert prepared.do("--dry-run") == ["nothing is to be done"]
        assert prepared.everything() == before

    def test_a_broken_environment_is_missing(self, prepared):
        (Path(f"{prepared.venv}-2.31.0") / "bin" / "ansible-playbook").unlink()
        result = prepared.run("--check")
        assert result.returncode == 1
        assert result.stdout == (
            f"missing: ansible-core >=2.18.0,<2.19.0 in {prepared.venv}-2.31.0\n"
        )


class TestReleases:
    @pytest.fixture
    def both(self, prepared):
        """v2.30.0 was prepared after v2.31.0."""
        prepared.do("--release", "v2.30.0")
        return prepared

    def test_they_are_beside_each_other_and_the_links_lead_to_the_last(self, both):
        for link, name in ((both.root, "kubespray"), (both.venv, "kubespray-venv")):
            assert os.readlink(link) == f"{name}-2.30.0"
            assert (link.parent / f"{name}-2.31.0").is_dir()
        playbook = both.venv / "bin" / "ansible-playbook"
        said = subprocess.run([playbook], capture_output=True, text=True, check=True)
        assert said.stdout == "ansible-playbook [core 2.17.5]\n"

        before = both.everything()
        assert both.do("--release", "v2.31.0")[-1] == "changed"
        assert os.readlink(both.root) == "kubespray-2.31.0"
        changed = set(both.everything().items()) - set(before.items())
        assert {name for name, _ in changed} == {str(both.root), str(both.venv)}

    def test_the_links_stay_where_they_are_if_asked_to(self, prepared, fresh):
        said = prepared.do("--release", "v2.30.0", "--no-switch")
        assert said[-1] == "changed"
        assert os.readlink(prepared.root) == "kubespray-2.31.0"
        assert Path(f"{prepared.root}-2.30.0").is_dir()
        assert prepared.do("--release", "v2.30.0", "--no-switch")[-1] == "unchanged"

    @pytest.mark.parametrize("release", ["2.31.0", "v2.31", "v3.0.0", "master", ""])
    def test_what_is_no_tag_of_a_release_is_refused(self, fresh, release):
        assert "--release" in fresh.refused("--release", release)

    def test_a_tag_that_is_not_there(self, fresh):
        assert "git could not clone v2.99.0" in fresh.refused("--release", "v2.99.0")

    def test_it_takes_all_that_the_driver_knows_and_newer_ones(self, fresh):
        fresh.command("git", "exit 1")
        known = releases.RELEASES
        oldest, newest = min(known), max(known)
        for release in (*known, (newest[0], newest[1] + 1)):
            tag = f"{network_plugins.tag(release)}.9"
            assert f"git could not clone {tag}" in fresh.refused("--release", tag)
        too_old = network_plugins.tag((oldest[0], oldest[1] - 1))
        refusal = fresh.refused("--release", f"{too_old}.0")
        assert f"from {network_plugins.tag(oldest)}.0 on" in refusal

    def test_there_is_no_default(self, fresh):
        result = fresh.run(has_release=False)
        said = "give the release of kubespray, such as --release v2.31.0\n"
        assert (result.returncode, result.stderr) == (1, said)
        assert not (fresh.directory / "opt").exists()

    @pytest.mark.parametrize(
        ("core", "pythons"),
        [
            ("2.15.5", "3.9 to 3.11"),
            ("2.17.3", "3.10 to 3.12"),
            ("2.19.0", "3.11 to 3.13"),
            ("2.20.0", "3.12 to 3.14"),
        ],
    )
    def test_the_checkout_decides_about_the_python(self, fresh, core, pythons):
        checkout_of = Path(f"{fresh.root}-2.99.0")
        write(checkout_of / "galaxy.yml", "version: 2.99.0\n")
        limits = LIMITS.format(least=core, below="3.0.0")
        write(checkout_of / "playbooks" / "ansible_version.yml", limits)
        fresh.python("python3", 8)
        result = fresh.run("--release", "v2.99.0", "--check")
        missing = f"Python {pythons} with venv, which ansible-core {core} wants"
        assert f"missing: {missing}\n" in result.stdout

    def test_a_tag_that_holds_another_release_is_not_taken(self, fresh):
        said = fresh.refused("--release", "v2.29.0")
        assert "what was fetched is kubespray 2.29.1 and not v2.29.0" in said
        assert not list((fresh.directory / "opt").iterdir())


class TestCheckout:
    def test_a_repository_that_is_not_there(self, fresh):
        said = fresh.refused("--git-url", f"file://{fresh.directory}/none")
        assert "git could not clone v2.31.0 from file://" in said
        assert "does not appear to be a git repository" in said
        assert "give --archive" in said
        assert not list((fresh.directory / "opt").iterdir())

    def test_an_archive_takes_no_network_and_no_git(self, fresh, sources):
        archive = fresh.directory / "kubespray.tar.gz"
        words = ("--format=tar.gz", "--prefix=kubespray-2.31.0/", "-o", str(archive))
        git(sources / "origin", "archive", *words, "v2.31.0")
        fresh.remove("git")
        assert fresh.do("--archive", "kubespray.tar.gz")[-1] == "changed"
        assert (fresh.root / "playbooks" / "ansible_version.yml").exists()

    def test_an_archive_of_something_else(self, fresh):
        write(fresh.directory / "x" / "galaxy.yml", "version: 2.27.0\n")
        with tarfile.open(fresh.directory / "x.tar.gz", "w:gz") as archive:
            archive.add(fresh.directory / "x", "x")
        said = fresh.refused("--archive", "x.tar.gz")
        assert "is kubespray 2.27.0 and not v2.31.0: give the right --archive" in said
        (fresh.directory / "x.tar.gz").write_text("no archive")
        said = fresh.refused("--archive", "x.tar.gz")
        assert "tar could not unpack x.tar.gz: " in said
        assert not list((fresh.directory / "opt").iterdir())

    def test_what_lies_in_its_place_is_never_replaced(self, fresh):
        write(Path(f"{fresh.root}-2.31.0") / "precious", "mine")
        said = fresh.refused()
        assert "kubespray-2.31.0 is there and is not kubespray v2.31.0: move" in said
        assert (Path(f"{fresh.root}-2.31.0") / "precious").read_text() == "mine"

    @pytest.mark.parametrize("name", ["root", "venv"])
    def test_a_directory_in_place_of_a_link_is_reported_first(self, fresh, name):
        path = getattr(fresh, name)
        write(path / "precious", "mine")
        said = fresh.refused()
        assert f"{path} is there and is no link: move it away, or give" in said
        assert f"another --{name}" in said
        assert [one.name for one in (fresh.directory / "opt").iterdir()] == [path.name]

    def test_what_a_killed_call_left_is_removed(self, fresh):
        write(Path(f"{fresh.root}-2.31.0.new.abc123") / "checkout" / "x", "")
        fresh.refused("--git-url", "file:///nonexistent")
        assert not list((fresh.directory / "opt").iterdir())


class TestEnvironment:
    def test_the_next_call_goes_on_where_one_failed(self, fresh):
        empty = fresh.directory / "empty"
        empty.mkdir()
        said = fresh.refused("--wheels", str(empty))
        assert "pip could not install" in said
        assert "ansible==11.0.0" in said
        assert not fresh.root.exists()
        before = (Path(f"{fresh.root}-2.31.0") / "galaxy.yml").stat()
        assert fresh.do()[-1] == "changed"
        after = (Path(f"{fresh.root}-2.31.0") / "galaxy.yml").stat()
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)

    def test_requirements_of_the_checkout_that_changed_are_installed(
        self, prepared, tmp_path
    ):
        wheels = tmp_path / "wheels"
        wheels.mkdir()
        make_wheel(wheels, "11.1.0", "2.18.9")
        write(prepared.root / "requirements.txt", "ansible==11.1.0\n")
        assert prepared.run("--check").returncode == 1
        assert prepared.do("--wheels", str(wheels))[-1] == "changed"
        assert prepared.do()[-1] == "unchanged"

    def test_an_ansible_that_does_not_suit_is_not_called_good(self, fresh):
        said = fresh.refused("--release", "v2.28.1")
        assert (
            "ansible-core 2.18.3 was installed, which is not >=2.16.4,<2.17.0" in said
        )
        assert not fresh.root.exists()

    def test_an_environment_of_another_user_is_never_replaced(self, prepared):
        path = Path(f"{prepared.venv}-2.31.0")
        (path / ".kubespray-requirements.txt").unlink()
        said = prepared.refused()
        assert "this script has not made it: move it away" in said
        assert (path / "bin").is_dir()

    def test_the_url_of_an_index_is_not_shown(self, fresh):
        url = "http://me:s3cret@127.0.0.1:9/simple"
        environment = {"PIP_RETRIES": "0", "PIP_TIMEOUT": "1"}
        said = fresh.refused("--index-url", url, **environment)
        assert "pip could not install" in said
        assert "s3cret" not in said


class TestMitogen:
    @pytest.fixture
    def wheels(self, fresh, tmp_path):
        wheels = tmp_path / "wheels"
        shutil.copytree(fresh.wheels, wheels)
        for version in ("0.3.40", "99.0"):
            make_wheel(wheels, version, "", name="mitogen")
        return str(wheels)

    def test_the_pinned_one_is_installed_if_asked_for(self, fresh, wheels):
        environment = Path(f"{fresh.venv}-2.31.0")
        fresh.do("--wheels", wheels)
        assert not list(environment.glob("lib/*/site-packages/mitogen*"))
        said = fresh.refused_check("--mitogen", "--wheels", wheels)
        assert said == [f"missing: mitogen {PINNED} in {environment}"]
        said = fresh.do("--mitogen", "--wheels", wheels)
        assert f"install mitogen {PINNED} into {environment} ..." in said
        (found,) = environment.glob("lib/*/site-packages/mitogen-*.dist-info")
        assert found.name == f"mitogen-{PINNED}.dist-info"
        assert fresh.do("--mitogen", "--wheels", wheels)[-1] == "unchanged"

    def test_without_a_source_it_is_not_installed(self, fresh, wheels):
        (Path(wheels) / f"mitogen-{PINNED}-py3-none-any.whl").unlink()
        said = fresh.refused("--mitogen", "--wheels", wheels)
        assert f"pip could not install mitogen {PINNED}" in said

    def test_it_is_the_one_that_the_driver_knows(self):
        text = SCRIPT.read_text()
        assert f"readonly MITOGEN={PINNED} " in text
        cores = re.search(r"MITOGEN_CORES='(.*)'", text)[1]
        known = {
            f"2.{minor}.1" for minor in range(30) if re.match(cores, f"2.{minor}.1")
        }
        assert known == {f"{a}.{b}.1" for a, b in strategies.MITOGEN[PINNED]}


class TestPython:
    def test_the_first_that_suits_is_taken(self, fresh):
        fresh.python("python3", 9)
        fresh.python("python3.12", 12)
        fresh.command("python3.13", "exit 127")
        assert fresh.do()[-1] == "changed"

    @pytest.mark.parametrize(
        ("release", "minors"),
        [
            ("v2.28.1", "10 to 3.12"),
            ("v2.30.0", "10 to 3.12"),
            ("v2.31.0", "11 to 3.13"),
        ],
    )
    def test_without_a_suitable_python_it_says_which_are(self, fresh, release, minors):
        for minor in (9, 14):
            fresh.python("python3", minor)
            said = fresh.refused("--release", release)
            assert f"this distribution has no Python 3.{minors} with venv" in said
            assert "name one with --python, or choose another --release" in said
            found = fresh.run("--release", release, "--check").stdout
            assert f"missing: Python 3.{minors} with venv, which" in found

    def test_one_that_is_given_must_suit(self, fresh):
        fresh.python("other", 9)
        said = fresh.refused("--python", "commands/other")
        assert "commands/other is not Python 3.11 to 3.13 with venv" in said


needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="packages can only be installed by root"
)


class TestPackages:
    @needs_root
    def test_what_is_absent_is_installed_by_apt(self, prepared):
        prepared.remove("ssh", "sshpass")
        log = prepared.directory / "apt.log"
        commands = prepared.directory / "commands"
        prepared.command(
            "apt-get",
            f"""
            echo "$DEBIAN_FRONTEND $*" >>{log}
            case "$*" in *install*)
                for one in ssh sshpass; do ln -s /bin/true {commands}/$one; done
            esac""",
        )
        assert prepared.do()[-1] == "changed"
        update, install = log.read_text().splitlines()
        assert update.startswith("noninteractive ")
        assert " update " in update
        assert set(install.split()) >= {"install", "-y", "openssh-client", "sshpass"}
        assert "git" not in install.split()
        assert prepared.do()[-1] == "unchanged"

    @needs_root
    def test_and_by_dnf(self, prepared):
        prepared.remove("ssh", "sshpass")
        log = prepared.directory / "dnf.log"
        prepared.command("dnf", f'echo "$*" >>{log}')
        said = prepared.refused()
        assert "openssh-clients" in log.read_text()
        assert "still absent after the installation" in said

    @needs_root
    def test_python_comes_from_the_distribution_where_it_has_one(self, fresh):
        fresh.python("python3", 10)
        log = fresh.directory / "apt.log"
        fresh.python("packaged", 11)
        packaged = fresh.directory / "commands" / "packaged"
        fresh.command(
            "apt-get",
            f"""
            echo "$*" >>{log}
            case "$*" in *install*)
                /bin/cp -p {packaged} {packaged.with_name("python3.11")}
            esac""",
        )
        fresh.command("apt-cache", '[ "$2" = python3.11-venv ]')
        fresh.remove("sshpass")
        fresh.command("sshpass", "exit 0")
        assert fresh.do()[-1] == "changed"
        assert log.read_text().splitlines()[-1].endswith("python3.11-venv")

    @needs_root
    def test_another_apt_is_waited_for(self, prepared):
        prepared.remove("sshpass")
        counter = prepared.directory / "tries"
        prepared.command(
            "apt-get",
            f"""
            echo x >>{counter}
            echo "E: Could not get lock /var/lib/dpkg/lock-frontend" >&2
            exit 100""",
        )
        said = prepared.refused(PREPARE_PACKAGE_SECONDS="2")
        assert "apt-get update failed for 2 s: E: Could not get lock" in said
        assert len(counter.read_text().splitlines()) > 3

    @needs_root
    def test_a_name_server_that_is_away_is_the_reason(self, prepared):
        prepared.remove("sshpass")
        prepared.command(
            "apt-get",
            """
            said="Failed to fetch http://deb  Temporary failure resolving 'deb'"
            case "$*" in
                *Error-Mode=any*) echo "E: $said" >&2; exit 100 ;;
                *update*) echo "W: $said" >&2; exit 0 ;;
                *) echo "E: Unable to locate package sshpass" >&2; exit 100 ;;
            esac""",
        )
        said = prepared.refused()
        assert "apt-get update failed for 0 s: E: Failed to fetch" in said
        assert "Temporary failure resolving 'deb'" in said

    @needs_root
    def test_a_package_that_does_not_exist_is_the_reason(self, prepared):
        prepared.remove("sshpass")
        prepared.command(
            "apt-get",
            """
            case "$*" in *install*)
                echo "E: Unable to locate package sshpass" >&2; exit 100
            esac""",
        )
        said = prepared.refused(PREPARE_PACKAGE_SECONDS="60")
        assert "apt-get failed: E: Unable to locate package sshpass" in said

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may install packages")
    def test_it_takes_root(self, prepared):
        prepared.remove("sshpass")
        prepared.command("apt-get", "exit 0")
        assert "run this script as root or with sudo" in prepared.refused()

    def test_a_distribution_that_is_not_known(self, prepared):
        prepared.remove("sshpass")
        said = prepared.refused()
        assert "install sshpass: neither apt-get nor dnf is there" in said


class TestCommandLine:
    WRONG = {
        "an option that is none": (("--relase", "x"), "'--relase' is no option"),
        "no value": (("--release",), "--release is no option, or needs a value"),
        "a relative path": (("--root", "opt/x"), "is not an absolute path"),
        "a path with blanks": (("--venv", "/opt/my venv"), "is not an absolute path"),
        "a path with dots": (("--venv", "/opt/../x"), "is not an absolute path"),
        "the root of all": (("--root", "/"), "is not an absolute path"),
        "a user that is none": (("--user", "a b"), "is not the name of a user"),
        "no archive": (("--archive", "none/at/all"), "is not a file that can be read"),
        "no wheels": (("--wheels", "none/at/all"), "is not a directory"),
        "two sources": (("--wheels", "/", "--index-url", "http://x"), "give one of"),
        "two modes": (("--check", "--dry-run"), "give one of --check and --dry-run"),
    }

    @pytest.mark.parametrize(("options", "said"), WRONG.values(), ids=WRONG.keys())
    def test_what_is_wrong_is_one_line(self, fresh, options, said):
        assert said in fresh.refused(*options)
        assert not (fresh.directory / "opt").exists()

    def test_the_same_path_twice(self, fresh):
        assert "must be different" in fresh.refused("--venv", str(fresh.root))

    def test_help_lists_every_option(self, fresh):
        said = "\n".join(
            subprocess.run(
                ["bash", str(SCRIPT), "--help"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()
        )
        for option in (
            *("--release", "--root", "--venv", "--user", "--no-switch", "--git-url"),
            *("--archive", "--index-url", "--wheels", "--python", "--mitogen"),
            *("--check", "--dry-run"),
        ):
            assert f"\n  {option} " in said
        assert "set -E" not in said

    def test_two_calls_do_not_work_at_once(self, prepared):
        held = subprocess.Popen(
            ["flock", str(prepared.root.parent), "sleep", "60"], start_new_session=True
        )
        try:
            wait = f"until ! flock -n {prepared.root.parent} true; do sleep 0.02; done"
            subprocess.run(["bash", "-c", wait], check=True, timeout=60)
            said = prepared.refused(PREPARE_LOCK_SECONDS="0")
        finally:
            os.killpg(held.pid, 9)
            held.wait()
        assert "another call of this script is still running" in said


def test_the_owner_is_the_user(prepared: Sandbox) -> None:
    for name in ("kubespray-2.31.0", "kubespray-venv-2.31.0"):
        assert (prepared.root.parent / name).owner() == USER


@needs_root
def test_files_of_another_user_get_the_users_ownership(prepared):
    os.chown(f"{prepared.root}-2.31.0", 65534, 65534)
    assert prepared.run("--check").returncode == 1
    assert prepared.do()[-1] == "changed"
    assert Path(f"{prepared.root}-2.31.0").owner() == USER


@needs_root
def test_root_runs_nothing_that_the_user_could_have_put_there(fresh, tmp_path):
    log = tmp_path / "runuser.log"
    fresh.command("getent", f"echo nobody:x:65534:65534::{tmp_path}:/bin/sh")
    fresh.command(
        "runuser",
        f"""
        echo "$*" >>{log}
        shift 3
        export AS_USER=1
        exec "$@"
        """,
    )
    fresh.command("git", f'[ -n "$AS_USER" ] && exec {shutil.which("git")} "$@"')
    said = fresh.do("--user", "nobody")
    assert said[-1] == "changed"
    calls = log.read_text().splitlines()
    assert all(call.startswith(f"-u nobody -- env HOME={tmp_path} ") for call in calls)
    for program in ("git ", "-m venv ", "-m pip ", "bin/ansible-playbook --version"):
        assert any(program in one for one in calls), program
    for path in (tmp_path / "opt").iterdir():
        assert path.is_symlink() or path.owner() == "nobody"
    assert fresh.do("--user", "nobody")[-1] == "unchanged"


def test_what_the_guide_prints_can_be_done_one_after_the_other(fresh, sources):
    archive = fresh.directory / "v2.31.0.tar.gz"
    words = ("--format=tar.gz", "--prefix=kubespray-2.31.0/", "-o", str(archive))
    git(sources / "origin", "archive", *words, "v2.31.0")
    (fresh.directory / "wheels").symlink_to(sources / "wheels")
    printed = account.matching(("./prepare_ansible_server.sh *",))
    said = [
        # The sandbox has one user.
        fresh.do(*one.text.replace("--user ansible", f"--user {USER}").split()[1:])
        for one in printed
    ]
    # The second call adds mitogen. The fourth finds the release and leaves the links,
    # the fifth turns them. The last one is that of another guide, on a server that has
    # everything.
    assert [lines[-1] for lines in said] == [
        *("changed", "changed", "changed", "unchanged", "changed", "unchanged"),
    ]
