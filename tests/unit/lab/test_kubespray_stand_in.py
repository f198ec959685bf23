# SPDX-License-Identifier: Apache-2.0
"""The stand-in for kubespray: what it refuses, and the parts that need no host."""

import base64
import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jinja2
import pytest
import yaml

from lab import releases
from lab.cloud import ansible_server
from tacker_k8s_mgmt.kubespray import variables
from tacker_k8s_mgmt.model import network_plugins
from tests.helpers.playbooks import run

ROOT = Path(__file__).parents[3] / "lab/kubespray"
API_SERVER = ROOT.parent / "kubeapi"
PLAYBOOKS = (
    "cluster.yml",
    "scale.yml",
    "remove-node.yml",
    "reset.yml",
    "upgrade-cluster.yml",
    "recover-control-plane.yml",
    "playbooks/facts.yml",
)
HOSTS = {"control-plane-10-10-0-5": 5, "worker-10-10-0-7": 7}

needs_ansible = pytest.mark.skipif(
    not shutil.which("ansible-playbook"), reason="no ansible-playbook on PATH"
)


def _load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


filters = _load(ROOT / "filter_plugins/lab_filters.py")
packing = _load(ROOT / "roles/control_plane/files/pack_kubeapi.py")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.233.0.0/18", True),
        ("fd00::/112", True),
        ("10.233.0.0", False),
        ("10.233.0.1/18", False),
        ("nonsense", False),
    ],
)
def test_network_ranges(text, expected):
    assert filters.is_network(text) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("10.233.0.0/18", "10.233.64.0/18", False),
        ("10.233.0.0/18", "10.233.32.0/20", True),
        ("10.0.0.0/8", "10.233.0.0/18", True),
        ("10.233.0.0/18", "fd00::/112", False),
    ],
)
def test_overlap(one, other, expected):
    assert filters.overlaps(one, other) is expected


def test_addresses_that_are_not_the_hosts():
    def host(name, **more):
        facts = {
            "ansible_all_ipv4_addresses": ["10.0.0.1"],
            "ansible_all_ipv6_addresses": ["fd00::1"],
        }
        return {"inventory_hostname": name, **facts, **more}

    hosts = [
        host("a", ip="10.0.0.1"),
        host("b", ip="fd00::1"),
        host("c"),
        host("d", ip="10.0.0.2"),
    ]
    assert filters.strange_addresses(hosts) == ["d (10.0.0.2)"]


def test_the_archive_is_reproducible_and_runs(tmp_path):
    archive = packing.pack(API_SERVER)
    tree = ansible_server.lay_out(tmp_path, releases.OWN)
    assert archive == packing.pack(tree / "kubeapi")
    path = tmp_path / "kubeapi.pyz"
    path.write_bytes(archive)
    assert not any("pyc" in name for name in zipfile.ZipFile(path).namelist())
    done = subprocess.run(
        [sys.executable, str(path), "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "stand-in" in done.stdout


def test_the_release_is_reported_where_kubespray_says_it():
    text = (ROOT / "galaxy.yml").read_text()
    assert "name: kubespray\nversion: 2.31.0\n" in text
    versions = (ROOT / "playbooks/ansible_version.yml").read_text()
    assert "minimal_ansible_version: 2.18.0" in versions
    assert "maximal_ansible_version: 2.19.0" in versions


class Ansible:
    """Runs playbooks of the stand-in on an inventory, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.expected_warnings: list[str] = []  # parts of the lines
        self.hosts = {
            name: {"ansible_host": f"10.10.0.{n}", "ip": f"10.10.0.{n}"}
            for name, n in HOSTS.items()
        }
        self.groups = {
            "kube_control_plane": ["control-plane-10-10-0-5"],
            "etcd": ["control-plane-10-10-0-5"],
            "kube_node": ["worker-10-10-0-7"],
        }

    def _inventory(self) -> Path:
        path = self.directory / "hosts.yaml"
        groups = {
            group: {"hosts": {name: {} for name in names}}
            for group, names in self.groups.items()
        }
        groups["calico_rr"] = {"hosts": {}}
        members = ("kube_control_plane", "kube_node", "calico_rr")
        groups["k8s_cluster"] = {"children": {name: {} for name in members}}
        path.write_text(json.dumps({"all": {"hosts": self.hosts, "children": groups}}))
        return path

    def run(self, program: str, *arguments: str) -> tuple[int, str]:
        """Exit code and output, which has no other warnings."""
        expected = self.expected_warnings
        return run(ROOT, self.directory, program, *arguments, expected=expected)

    def play(self, *arguments: str, **variables) -> tuple[int, str]:
        """``ansible-playbook`` with options and playbooks, and extra variables."""
        common = ("-i", str(self._inventory()), "-e", json.dumps(variables))
        return self.run("ansible-playbook", *common, *arguments)

    def certificates(self, *wanted: dict) -> list[dict]:
        """What ``lab_certificates`` returns of each of these, one after the other.

        Arguments may have what an earlier one returned: ``made_0`` and so on.
        """
        tasks = [
            {"lab_certificates": arguments, "register": f"made_{number}"}
            for number, arguments in enumerate(wanted)
        ]
        results = [f"{{{{ made_{number} }}}}" for number in range(len(wanted))]
        show = {"name": "Show", "debug": {"msg": results}}
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [*tasks, show]}
        path = self.directory / "certificates.yml"
        path.write_text(json.dumps([play]))
        code, output = self.run(
            *("ansible-playbook", "-i", "localhost,", "-c", "local", str(path)),
            *("-e", f"ansible_python_interpreter={sys.executable}"),
        )
        assert code == 0, output
        shown = output.index("{", output.index("TASK [Show]"))
        return json.JSONDecoder().raw_decode(output, shown)[0]["msg"]


@pytest.fixture
def ansible(tmp_path):
    return Ansible(tmp_path)


@needs_ansible
def test_syntax(ansible):
    code, output = ansible.play("--syntax-check", *PLAYBOOKS)
    assert code == 0, output


@needs_ansible
def test_a_good_inventory_passes_the_checks(ansible):
    code, output = ansible.play("playbooks/boilerplate.yml")
    assert code == 0, output


@needs_ansible
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"helm_enabled": "true"}, "Not booleans"),
        ({"kube_version": "v1.35.4"}, "without a leading v"),
        ({"kube_pods_subnet": "10.233.32.0/20"}, "overlap"),
        ({"lab_fault": {"task": "Instal etcd"}}, "no phase of the stand-in"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_bad_variables_are_refused(ansible, variables, message):
    code, output = ansible.play("playbooks/boilerplate.yml", **variables)
    assert code == 2
    assert message in output


@needs_ansible
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"etcd": list(HOSTS)}, "odd number of hosts"),
        ({"kube_control_plane": list(HOSTS)}, "etcd on the control planes"),
    ],
    ids=["even etcd", "a control plane without etcd"],
)
def test_bad_groups_are_refused(ansible, groups, message):
    ansible.groups.update(groups)
    code, output = ansible.play("playbooks/boilerplate.yml")
    assert code == 2
    assert message in output


@needs_ansible
def test_removal_needs_a_name_and_a_confirmation(ansible):
    ansible.expected_warnings.append("Not waiting for response to prompt")
    code, output = ansible.play("remove-node.yml")
    assert code == 2
    assert "localhost" in output
    assert "No nodes specified for removal" in output
    code, output = ansible.play("remove-node.yml", node="worker-10-10-0-7")
    assert code == 2
    assert "Delete nodes confirmation failed" in output


@needs_ansible
def test_the_first_control_plane_cannot_be_removed(ansible):
    code, output = ansible.play(
        "remove-node.yml",
        node="control-plane-10-10-0-5",
        skip_confirmation=True,
        reset_nodes=False,
    )
    assert code == 2
    assert "cannot be removed" in " ".join(output.split())


@needs_ansible
def test_certificates_are_made_again_only_when_they_have_to(ansible, tmp_path):
    directory = tmp_path / "ssl"

    def wanted(*addresses: str) -> dict:
        certificate = {
            "name": "apiserver",
            "common_name": "kube-apiserver",
            "addresses": addresses,
        }
        return {"directory": str(directory), "certificates": [certificate]}

    first, second, third = ansible.certificates(
        wanted("10.10.0.5", "kubernetes"),
        wanted("kubernetes", "10.10.0.5"),
        wanted("kubernetes", "10.10.0.5", "10.10.0.9"),
    )
    assert first["renewed"] == ["ca", "apiserver"]
    assert second["renewed"] == []
    assert third["renewed"] == ["apiserver"]
    names = subprocess.run(
        [
            *("openssl", "x509", "-noout", "-ext", "subjectAltName"),
            *("-in", str(directory / "apiserver.crt")),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "IP Address:10.10.0.9" in names
    assert "DNS:kubernetes" in names
    assert (directory / "apiserver.key").stat().st_mode & 0o077 == 0


def test_the_archive_arrives_as_base64():
    done = subprocess.run(
        [sys.executable, str(packing.__file__), str(API_SERVER)],
        capture_output=True,
        check=True,
    )
    assert base64.b64decode(done.stdout) == packing.pack(API_SERVER)


def phase(ansible, **variables):
    """Exit code and output of a playbook that is the phase Install etcd alone."""
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"name": "Install etcd", "lab_phase": None}],
    }
    path = ansible.directory / "play.yml"
    path.write_text(json.dumps([play]))
    command = ("ansible-playbook", "-i", "localhost,", "-c", "local")
    return ansible.run(*command, "-e", json.dumps(variables), str(path))


@needs_ansible
@pytest.mark.parametrize("hang", [{"seconds": 0.1}, {"until": "{go}"}])
def test_a_phase_hangs_no_longer_than_configured(ansible, tmp_path, hang):
    go = tmp_path / "go"
    go.touch()
    wish = {key: str(value).format(go=go) for key, value in hang.items()}
    code, output = phase(ansible, lab_hang={"task": "Install etcd", **wish})
    assert code == 0, output


@needs_ansible
def test_a_phase_fails_until_it_is_mended(ansible, tmp_path):
    mended = tmp_path / "mended"
    fault = {"task": "Install etcd", "message": "no room", "until": str(mended)}
    code, output = phase(ansible, lab_fault=fault)
    assert (code, "no room" in output) == (2, True)
    mended.touch()
    code, output = phase(ansible, lab_fault=fault)
    assert code == 0, output


@needs_ansible
def test_a_second_control_plane_takes_the_ca_of_the_first(ansible, tmp_path):
    def wanted(host: str, **more) -> dict:
        member = {"name": f"member-{host}", "common_name": host}
        place = {"directory": str(tmp_path / host), "naming": "etcd"}
        return {**place, **more, "certificates": [member]}

    authority = {"ca": "{{ made_0.ca }}", "ca_key": "{{ made_0.ca_key }}"}
    _, second, third = ansible.certificates(
        wanted("one"), wanted("two", **authority), wanted("two", **authority)
    )
    assert second["renewed"] == ["ca", "ca", "member-two"]
    assert third["renewed"] == []
    files = {path.name for path in (tmp_path / "two").iterdir()} - {"member-two.cnf"}
    pairs = ("ca.pem", "ca-key.pem", "member-two.pem", "member-two-key.pem")
    assert files == set(pairs)
    verify = ["openssl", "verify", "-CAfile", tmp_path / "one/ca.pem"]
    subprocess.run([*verify, tmp_path / "two/member-two.pem"], check=True)


PLUGINS = [
    {"kube_network_plugin": plugin, **more}
    for plugin in (*network_plugins.PLUGINS, "canal")
    for more in ({}, {"cilium_deploy_additionally": True}, {"calico_datastore": "etcd"})
]


@pytest.mark.parametrize("given", [{}, *PLUGINS], ids=str)
def test_workers_get_certificates_of_etcd_as_with_kubespray(given):
    """What the product believes is held to kubespray by a contract test."""
    path = ROOT / "roles/kubespray_defaults/defaults/main.yml"
    defaults = yaml.safe_load(path.read_text())
    environment = jinja2.Environment(autoescape=False)  # noqa: S701
    environment.filters["bool"] = bool
    condition = environment.from_string(defaults["workers_need_etcd"])
    wanted = variables.give_workers_etcd(given)
    assert condition.render(defaults | given) == str(wanted)
