"""The survey of an Ansible server, and the file with such servers' host keys."""

import sys
import threading

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys

HOST = "ansible-server"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "known_hosts"


@pytest.fixture
def key_file(path):
    return server.KeyFile(str(path))


def learn(key_file, host, key="KEY"):
    keys = key_file.load()
    assert keys.trust(host, 22, "ssh-ed25519", key)
    key_file.add(keys)


def test_key_is_stored_once_in_a_file_of_our_own(key_file, path):
    learn(key_file, HOST)
    learn(key_file, HOST)
    assert path.read_text() == f"{HOST} ssh-ed25519 KEY\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_name_that_ends_another_one_is_stored_too(key_file, path):
    learn(key_file, HOST)
    learn(key_file, "server")
    assert path.read_text().splitlines() == [
        f"{HOST} ssh-ed25519 KEY",
        "server ssh-ed25519 KEY",
    ]


def test_last_line_that_an_editor_left_open_stays_whole(key_file, path):
    learn(key_file, HOST)
    path.write_text(path.read_text().rstrip("\n"))
    learn(key_file, HOST)
    learn(key_file, "192.0.2.7")
    assert path.read_text().splitlines() == [
        f"{HOST} ssh-ed25519 KEY",
        "192.0.2.7 ssh-ed25519 KEY",
    ]


def test_hooks_side_by_side_lose_no_key(key_file, path):
    hosts = [f"192.0.2.{number}" for number in range(8)]
    threads = [threading.Thread(target=learn, args=(key_file, host)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line.split()[0] for line in path.read_text().splitlines()) == hosts


def test_reading_only_makes_no_file_and_adds_no_key(key_file, path):
    reader = server.ReadOnlyKeyFile(str(path))
    assert reader.load().text() == ""
    assert not path.parent.exists()
    learn(key_file, HOST)
    before = path.read_bytes()
    keys = reader.load()
    assert keys.trust(HOST, 22, "ssh-ed25519", "KEY")
    with pytest.raises(errors.UnknownHostError, match=str(path)):
        keys.trust("192.0.2.7", 22, "ssh-ed25519", "KEY")
    reader.add(HostKeys("192.0.2.7 ssh-ed25519 KEY"))
    assert path.read_bytes() == before


def test_survey_finds_ansible_whatever_the_logins_locale(session, sshd, tmp_path):
    sshd.program(
        "ansible-playbook",
        'case "${LC_ALL:-}" in *UTF-8) echo "ansible-playbook [core 2.18.3]" ;; '
        "*) echo 'ERROR: Ansible requires the locale encoding to be UTF-8' >&2; exit 1;"
        " esac\n",
    )
    found = server.survey(session, str(tmp_path), None)
    assert found.ansible_version == "2.18.3"
    assert found.checkout.version == ""


@pytest.mark.parametrize(
    ("release", "options", "found"),
    [
        ("__version__ = '2.17.9'", "", "2.17.9"),
        # Who cannot say it is not asked, but the program.
        ("", "", "2.16.1"),
        ("__version__ = '2.17.9'", " -I", "2.16.1"),
    ],
)
def test_survey_asks_the_python_that_has_ansible(
    session, tmp_path, release, options, found
):
    library = tmp_path / "lib" / "ansible"
    library.mkdir(parents=True)
    (library / "__init__.py").touch()
    (library / "release.py").write_text(release)
    python, program = (tmp_path / "bin" / n for n in ("python", "ansible-playbook"))
    python.parent.mkdir()
    path = f"PYTHONPATH={library.parent}"
    python.write_text(f'#!/bin/sh\n{path} exec {sys.executable} "$@"\n')
    program.write_text(
        f"#!{python}{options}\nprint('ansible-playbook [core 2.16.1]')\n"
    )
    for file in (python, program):
        file.chmod(0o755)
    asked = server.survey(session, str(tmp_path), str(tmp_path))
    assert asked.ansible_version == found


@pytest.fixture
def venv(tmp_path):
    """A virtual environment in which an Ansible without anything else is installed."""
    library = tmp_path / "venv" / "lib" / "ansible"
    library.mkdir(parents=True)
    (library / "__init__.py").touch()
    (library / "release.py").write_text("__version__ = '2.18.3'")
    (library / "constants.py").write_text(
        f"import os\nCOLLECTIONS_PATHS = ['{tmp_path}/collections', "
        "os.environ.get('ANSIBLE_CONFIG', '') + '.collections']\n"
    )
    python, program = (
        tmp_path / "venv" / "bin" / name for name in ("python", "ansible-playbook")
    )
    python.parent.mkdir()
    path = f"PYTHONPATH={library.parent}"
    # Without the packages of the tests' own environment.
    python.write_text(f'#!/bin/sh\n{path} exec {sys.executable} -S "$@"\n')
    program.write_text(f"#!{python}\n")
    for file in (python, program):
        file.chmod(0o755)
    return tmp_path / "venv"


def test_survey_says_what_is_missing_beside_ansible(session, tmp_path, venv):
    root = tmp_path / "kubespray"
    root.mkdir()

    def missing():
        return server.survey(session, str(root), str(venv)).missing

    assert missing() == {
        *("netaddr", "ansible.utils", "ansible.posix", "community.general")
    }
    (venv / "lib" / "netaddr").mkdir()
    (venv / "lib" / "netaddr" / "__init__.py").touch()
    # As pip installs them, as ansible-galaxy does, and where ansible.cfg says.
    for place, name in (
        (venv / "lib", "ansible/utils"),
        (tmp_path / "collections", "ansible/posix"),
        (root / "ansible.cfg.collections", "community/general"),
    ):
        (place / "ansible_collections" / name).mkdir(parents=True)
    assert missing() == {"community.general"}
    (root / "ansible.cfg").touch()
    assert missing() == frozenset()


def test_survey_finds_what_the_checkout_can_install(session, tmp_path):
    texts = {
        "galaxy.yml": "version: 2.27.1\n",
        "roles/kubernetes/preinstall/tasks/0040-verify-settings.yml": (
            "    that: kube_network_plugin in ['calico', 'weave']\n"
        ),
        "roles/kubespray-defaults/defaults/main/checksums.yml": (
            "crictl_checksums:\n  amd64:\n    v1.99.0: 00\n"
            "kubelet_checksums:\n  arm:\n    v1.98.0: 0\n  amd64:\n    v1.31.9: 00\n"
            "kubectl_checksums:\n  amd64:\n    v1.97.0: 00\n"
        ),
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    offer = server.survey(session, str(tmp_path), None).checkout.offer
    assert offer.kube_versions == ("1.31.9",)
    assert offer.network_plugins == {"calico", "weave"}
