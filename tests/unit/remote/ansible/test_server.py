# SPDX-License-Identifier: Apache-2.0
"""The survey of an Ansible server."""

import shutil
import sys

import pytest

from tacker_k8s_mgmt.remote.ansible import server


def test_survey_finds_ansible_whatever_the_logins_locale(session, sshd, tmp_path):
    sshd.program(
        "ansible-playbook",
        'case "${LC_ALL:-}" in *UTF-8) echo "ansible-playbook [core 2.18.3]" ;; '
        "*) echo 'ERROR: Ansible requires the locale encoding to be UTF-8' >&2; exit 1;"
        " esac\n",
    )
    found = server.survey_server(session, str(tmp_path), None)
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
    asked = server.survey_server(session, str(tmp_path), str(tmp_path))
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
        "class config:\n"
        "    get_config_value_and_origin = lambda name: ('', 'default')\n"
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
        return server.survey_server(session, str(root), str(venv)).missing

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


@pytest.mark.skipif(
    not shutil.which("ansible-playbook"), reason="no ansible-playbook in PATH"
)
@pytest.mark.parametrize(
    ("configuration", "strategy"),
    [("", ""), ("strategy = free", "free"), ("strategy_plugins = /opt/x", "linear")],
)
def test_survey_finds_the_configured_strategy(
    session, tmp_path, configuration, strategy
):
    (tmp_path / "ansible.cfg").write_text(f"[defaults]\n{configuration}\n")
    assert server.survey_server(session, str(tmp_path), None).strategy == strategy


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
    offer = server.survey_server(session, str(tmp_path), None).checkout.offer
    assert offer.kube_versions == ("1.31.9",)
    assert offer.network_plugins == {"calico", "weave"}
