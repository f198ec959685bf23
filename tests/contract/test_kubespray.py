# SPDX-License-Identifier: Apache-2.0
"""The real kubespray: is each release as the product's table says, and does it take
our inventories and variables?

``KUBESPRAY_ROOTS`` names checkouts (colon-separated), ``KUBESPRAY_VENVS`` virtual
environments with the versions of Ansible that they want; the PATH's Ansible counts too.
No host is needed: nothing here logs in anywhere.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import jinja2
import pytest
import yaml

from tacker_k8s_mgmt.kubespray import checkout, inventory, releases, runs, variables
from tacker_k8s_mgmt.kubespray.checkout import Checkout, ansible_version_from
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.network_plugins import minor, numbers
from tacker_k8s_mgmt.model.nodes import ROLES, Role
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.structure import variable_names
from tests.helpers.full_request import BALANCER, KUBERNETES, NIC_MTUS, NODES, rich
from tests.helpers.samples import parsed

ROOTS = [Path(one) for one in os.environ.get("KUBESPRAY_ROOTS", "").split(":") if one]
VENVS = [Path(one) for one in os.environ.get("KUBESPRAY_VENVS", "").split(":") if one]
PLAYBOOKS = (
    *(runs.INSTALL, runs.JOIN, runs.REMOVE, runs.FACTS),
    *(runs.UPGRADE, "reset.yml"),
)
BOILERPLATE = "playbooks/boilerplate.yml"
LIMIT = 300  # seconds
STAND_IN = Path(__file__).parents[2] / "lab" / "kubespray"
RESOLVER = (
    Path(__file__).parents[2]
    / "tacker_k8s_mgmt/remote/ansible/run_files/k8s_mgmt_resolve.py"
)
#: Only in the sample inventories and the documentation: users make others of them.
NAMES_FOR_PEOPLE = {"files_repo", "registry_host"}

pytestmark = pytest.mark.skipif(
    not ROOTS, reason="KUBESPRAY_ROOTS names no checkout of kubespray"
)


@pytest.fixture(params=ROOTS or [Path("none")], ids=lambda path: path.name)
def root(request) -> Path:
    return request.param


def text(path: Path) -> str:
    """A file's text, "" of one that is not there."""
    return path.read_text(errors="replace") if path.is_file() else ""


def all_text(root: Path, names) -> str:
    return "".join(text(root / name) for name in names)


@cache
def stated(root: Path) -> Any:
    """What the product would read of a checkout; of a known release nothing is None."""
    return Checkout.from_texts(
        text(root / checkout.GALAXY_FILE) or None,
        text(root / checkout.ANSIBLE_VERSION_FILE) or None,
        all_text(root, checkout.CHECK_FILES),
        section(all_text(root, checkout.CHECKSUM_FILES)),
    )


def section(checksums: str) -> str:
    """As the survey's sed cuts it out."""
    name = checkout.CHECKSUM_SECTION
    found = re.search(rf"^{name}:\n(.*?)^[a-z]", checksums, re.DOTALL | re.MULTILINE)
    return found[0] if found else ""


@cache
def words(root: Path) -> frozenset[str]:
    """Every word of what a checkout's roles are made of, but for its refusals."""
    refusals = {root / name for name in checkout.CHECK_FILES}
    found: set[str] = set()
    for path in (root / "roles").rglob("*"):
        if path.suffix in (".yml", ".yaml", ".j2") and path not in refusals:
            found.update(re.findall(r"\w+", path.read_text(errors="replace")))
    return frozenset(found)


#: The variables of a request with every option.
RICH = variables.build(
    parsed(rich(max(releases.RELEASES))), NODES, BALANCER, nic_mtus=NIC_MTUS
)


def jinja(template: Path, **values: Any) -> str:
    """A template as Ansible renders it, as far as it has Jinja2's own filters."""
    environment = jinja2.Environment(trim_blocks=True, autoescape=False)  # noqa: S701
    environment.filters["flatten"] = lambda lists: [
        item for one in lists for item in (one if isinstance(one, list) else [one])
    ]
    return environment.from_string(template.read_text()).render(**values)


class TestTable:
    def test_the_release_is_known_and_says_what_the_table_says(self, root):
        found = stated(root)
        assert found.release is not None
        assert found.ansible == found.release.ansible
        assert found.offer.network_plugins == network_plugins.offered(
            minor(found.version)
        )

    def test_its_playbooks_have_the_names_that_are_used(self, root):
        assert [name for name in PLAYBOOKS if not (root / name).is_file()] == []

    def test_the_plays_that_join_nodes_in_scale_are_for_workers(self, root):
        plays = yaml.safe_load(text(root / "playbooks/scale.yml"))
        joining = [
            play["hosts"]
            for play in plays
            if any(
                isinstance(role, dict) and role["role"] == "kubernetes/kubeadm"
                for role in play.get("roles", ())
            )
        ]
        groups = [spec.groups for spec in ROLES.values() if spec.joins_by_scale]
        assert [tuple(joining)] == groups

    def test_every_variable_of_an_upgrade_is_known_to_its_playbook(self, root):
        roles = (root / "roles" / "upgrade").rglob("*.yml")
        known = [text(root / "playbooks/upgrade_cluster.yml"), *map(text, roles)]
        found = set(re.findall(r"\w+", " ".join(known)))
        wanted = runs.upgrade(DrainPolicy(), (), ["worker"]).extra_vars
        assert wanted.keys() - found == set()

    def test_every_variable_of_a_removal_is_known_to_its_playbook(self, root):
        books = (root / "playbooks").glob("remove[-_]node.yml")
        roles = (root / "roles").glob("remove[-_]node/pre[-_]remove/*/main.yml")
        found = set(re.findall(r"\w+", " ".join(map(text, [*books, *roles]))))
        removal = runs.remove(["worker"], DrainPolicy(), dead=True, undrained=True)
        # The confirmation of older releases.
        assert removal.extra_vars.keys() - found <= {"delete_nodes_confirmation"}

    def test_a_checkout_states_its_kubernetes_versions_in_its_own_format(self, root):
        found = stated(root)
        known = found.offer.kube_versions
        assert KUBERNETES[minor(found.version)] in known
        assert list(known) == sorted(known, key=numbers, reverse=True)
        checksums = section(all_text(root, checkout.CHECKSUM_FILES))
        spelled = found.release.kube_version(known[0])
        assert f"    {spelled}: " in checksums

    def test_what_it_needs_beside_ansible_is_asked_for(self, root):
        assert "ipaddr" in text(root / checkout.ANSIBLE_VERSION_FILE)
        assert f"\n{checkout.PACKAGE}==" in text(root / "requirements.txt")
        used = " ".join(map(text, (root / "roles").rglob("*.yml")))
        for name in checkout.COLLECTIONS:
            assert f"{name}." in used, name
        assert "ansible.utils" in stated(root).collections

    def test_removed_variables_are_gone_and_the_others_are_still_there(self, root):
        at = minor(stated(root).version)
        there = words(root)
        lingering = {"eviction_hard_control_plane"}  # its default is still written
        for name, gone in releases.VARIABLES.items():
            if at >= gone.since and name not in lingering:
                assert name not in there, name
            elif at >= (gone.since[0], gone.since[1] - 1) and at < gone.since:
                assert name in there, name
        for start, gone in releases.FEATURES.items():
            left = [word for word in there if word.startswith(start)]
            assert bool(left) == (at < gone.since), start

    def test_what_it_refuses_itself_is_in_our_table_too(self, root):
        for name in stated(root).offer.removed_variables:
            assert releases.removal(name) is not None

    def test_every_variable_that_an_option_becomes_exists(self, root):
        at, there = minor(stated(root).version), words(root)
        missing = {
            name
            for names in (
                *variable_names(ClusterRequest).values(),
                *variable_names(ClusterRequest, defaults=True).values(),
            )
            for name in names
            if name not in there and not releases.removal(name)
        }
        if at < releases.BASE_URLS_SINCE:
            missing -= {"github_url", "dl_k8s_io_url", "storage_googleapis_url"}
            missing -= {"get_helm_url"}
        assert missing == NAMES_FOR_PEOPLE

    def test_the_rich_request_has_no_finding(self, root):
        found = stated(root)
        params = parsed(rich(minor(found.version)))
        assert checkout.findings(found, found.ansible[0], True, params) == ()

    def test_it_has_all_of_the_platform_starlingx(self, root):
        webhook = {"url": "https://10.99.0.2:8443/webhook"}
        params = parsed(
            {"profile": "starlingx", "cluster.authentication.webhook": webhook}
        )
        found = stated(root)
        assert checkout.findings(found, found.ansible[0], True, params) == ()
        built = variables.build(params, NODES, BALANCER)
        assert built.keys() - words(root) == set()


class TestControlPlanes:
    """What the heal of a control plane has been read from."""

    def test_etcd_members_are_set_by_one_variable(self, root):
        role = root / "roles" / "etcd"
        assert "ETCD_INITIAL_CLUSTER={{ etcd_peer_addresses }}" in (
            (role / "templates" / "etcd.env.j2").read_text()
        )

    def test_a_joining_member_gets_the_other_members_names(self, root):
        """That is why an extra variable, which beats it, says their own."""
        tasks = root / "roles" / "etcd" / "tasks" / "join_etcd_member.yml"
        told = tasks.read_text().split("vars:")[1]
        assert "etcd_peer_addresses:" in told
        assert '"etcd" + loop.index' in told

    def test_it_waits_until_all_members_are_healthy(self, root):
        tasks = (root / "roles" / "etcd" / "tasks" / "configure.yml").read_text()
        wait = tasks.split("Wait for etcd cluster to be healthy")[1].split("- name:")[0]
        assert "endpoint --cluster health" in wait
        assert "until: etcd_cluster_is_healthy.rc == 0" in wait

    def test_the_first_one_is_removed_when_it_is_not_the_first(self, root):
        found = [
            text(root / "docs" / one) for one in ("nodes.md", "operations/nodes.md")
        ]
        documented = next(one for one in found if one)
        assert "emoval of first" in documented
        assert "pushing your first entry to any other position" in documented


class TestCertificatesOfEtcd:
    """Those that workers get, made on the first control plane."""

    def test_workers_get_them_with_the_same_plugins(self, root):
        play = yaml.safe_load(text(root / "playbooks/install_etcd.yml"))[0]
        (conditions,) = [one["when"] for one in play["tasks"] if "group_by" in one]
        environment = jinja2.Environment(autoescape=False)  # noqa: S701
        evaluate = environment.compile_expression
        plugins = [*network_plugins.PLUGINS, "canal"]
        for plugin in plugins:
            for more in (
                {},
                {"cilium_deploy_additionally": True},
                {"calico_datastore": "etcd"},
            ):
                given = {
                    "kube_network_plugin": plugin,
                    "calico_datastore": "kdd",
                    **more,
                }
                there = {**given, "etcd_deployment_type": "host"}
                theirs = all(evaluate(one)(**there) for one in conditions)
                assert variables.give_workers_etcd(given) is bool(theirs), given

    def test_only_the_first_one_has_the_script_if_it_is_in_the_run(self, root):
        tasks = yaml.safe_load(text(root / "roles/etcd/tasks/gen_certs_script.yml"))
        (copied,) = [one for one in tasks if "make-ssl" in str(one.get("template"))]
        assert "delegate_to" not in copied
        assert "inventory_hostname == groups['etcd'][0]" in copied["when"]
        (run, *_) = [one for one in tasks if "make-ssl" in str(one.get("command"))]
        assert run["delegate_to"] == "{{ groups['etcd'][0] }}"


class TestDelegation:
    """The hosts that a run works on whatever it is limited to.

    The fake playbooks, and the laboratory's, ask the same ones.
    """

    #: Of groups, and of what the stand-ins do without: downloads through one host.
    FIRST = re.compile(
        r"\{\{ ?(groups\['(kube_control_plane|etcd)'\]( \| first|\[0\])"
        r"|first_kube_control_plane) ?\}\}"
    )
    OWN = frozenset({"localhost", "{{ inventory_hostname }}"})
    ROLES = (
        "remove[-_]node",
        "kubernetes/kubeadm",
        "kubernetes/node*",
        "network_plugin/calico",
        "etcd",
    )

    @classmethod
    def hosts(cls, root: Path) -> set[str]:
        roles = [role for name in cls.ROLES for role in (root / "roles").glob(name)]
        tasks = (path for role in roles for path in role.rglob("tasks/*.y*ml"))
        lines = " ".join(f"\n{text(path)}" for path in tasks)
        found = re.findall(r"^ *delegate_to: *(.+?) *$", lines, re.MULTILINE)
        return {one.strip("\"'") for one in found} - cls.OWN

    def test_joining_and_leaving_workers_need_the_first_of_a_group(self, root):
        hosts = self.hosts(root)
        assert any(map(self.FIRST.fullmatch, hosts))
        assert {one for one in hosts if not self.FIRST.fullmatch(one)} == set()

    def test_the_stand_in_asks_the_first_ones_too(self):
        roles = Path(__file__).parents[2] / "lab/kubespray/roles"
        for role in ("remove_node", "kubeadm"):
            tasks = "".join(map(text, (roles / role).rglob("tasks/*.yml")))
            assert 'delegate_to: "{{ first_control_plane }}"' in tasks
        defaults = text(roles / "kubespray_defaults/defaults/main.yml")
        (first,) = re.findall(r'^first_control_plane: "(.+)"$', defaults, re.MULTILINE)
        assert self.FIRST.fullmatch(first)


class TestRegistry:
    """How nodes come to pull from the registry in the cluster."""

    def test_its_service_takes_the_address(self, root):
        role = root / "roles/kubernetes-apps/registry"
        defaults = yaml.safe_load(text(role / "defaults/main.yml"))
        assert defaults["registry_service_type"] == "ClusterIP"
        assert defaults["registry_port"] == 5000
        service = jinja(role / "templates/registry-svc.yml.j2", **defaults | RICH)
        spec = yaml.safe_load(service)["spec"]
        assert (spec["type"], spec["clusterIP"]) == ("ClusterIP", "10.233.0.12")

    def test_its_volume_takes_class_and_size(self, root):
        role = root / "roles/kubernetes-apps/registry"
        defaults = yaml.safe_load(text(role / "defaults/main.yml"))
        claim = jinja(role / "templates/registry-pvc.yml.j2", **defaults | RICH)
        spec = yaml.safe_load(claim)["spec"]
        assert spec["storageClassName"] == "fast"
        assert spec["resources"]["requests"]["storage"] == "20Gi"

    def test_containerd_gets_its_address(self, root):
        (item,) = (
            mirror
            for mirror in RICH["containerd_registries_mirrors"]
            if mirror["prefix"] == "images.local:5000"
        )
        template = root / "roles/container-engine/containerd/templates/hosts.toml.j2"
        hosts = jinja(template, item=item)
        assert '[host."http://10.233.0.12:5000"]' in hosts
        assert 'capabilities = ["pull","resolve"]' in hosts

    def test_a_private_registry_has_its_ca_as_in_the_stand_in(self, root):
        private = {
            "connection_type": 1,
            "server": "r.example.org:5000",
            "certificate_path": "ca.crt",
        }
        made = parsed({"private_registry_connection_info": [private]})
        built = variables.build(made, NODES, BALANCER)
        (item,) = built["containerd_registries_mirrors"]
        template = root / "roles/container-engine/containerd/templates/hosts.toml.j2"
        hosts = jinja(template, item=item)
        has_ca = minor(stated(root).version) >= releases.REGISTRY_CA_SINCE
        place = "/etc/containerd/certs.d/r.example.org:5000/tacker-k8s-mgmt.crt"
        assert (f'ca = ["{place}"]' in hosts) is has_ca
        own = STAND_IN / "roles/preinstall/templates/hosts.toml.j2"
        lines = jinja(own, item=item, lab_release={"has_registry_ca": has_ca})
        assert set(lines.splitlines()) <= set(hosts.splitlines())
        tasks = text(template.parents[1] / "tasks/main.yml")
        assert "{{ containerd_cfg_dir }}/certs.d/{{ item.prefix }}/hosts.toml" in tasks

    def test_local_paths_have_the_storage_class_that_it_may_name(self, root):
        role = root / "roles/kubernetes-apps/external_provisioner"
        defaults = text(role / "local_path_provisioner/defaults/main.yml")
        assert 'local_path_provisioner_storage_class: "local-path"\n' in defaults


class TestWebhook:
    def test_authorization_takes_its_own_url_and_no_ca(self, root):
        role = root / "roles/kubernetes/control-plane/templates"
        config = jinja(role / "webhook-authorization-config.yaml.j2", **RICH)
        (cluster,) = yaml.safe_load(config)["clusters"]
        assert cluster["cluster"] == {
            "server": "https://10.99.0.2:8443/webhook",
            "insecure-skip-tls-verify": False,
        }

    def test_the_modes_of_authorization_are_taken_as_given(self, root):
        for template in (root / "roles/kubernetes/control-plane/templates").glob(
            "kubeadm-config.*.j2"
        ):
            assert "authorization_modes | join(',')" in text(template)
            assert "authorization-webhook-config-file" in text(template)


def loaded_resolver() -> Any:
    """The program that evaluates downloads before a run."""
    spec = importlib.util.spec_from_file_location("k8s_mgmt_resolve", RESOLVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestDownloads:
    #: Entries that a task or another role may change, with the releases for which.
    CHANGED: ClassVar = {
        "aws_ebs_csi_plugin": (24, 99),
        "calico_crds": (24, 99),
        **dict.fromkeys(("cilium", "cilium_operator", "ciliumcli", "etcd"), (24, 27)),
        "argocd_install": (29, 99),
    }

    def test_only_what_a_checkout_changes_stays_a_template(self, root):
        resolver = loaded_resolver()
        role = resolver.defaults_role(str(root))
        kept, _ = resolver.kept_templates(str(root), role, [RICH])
        _, least = minor(stated(root).version)
        assert kept.keys() == {
            name
            for name, (first, last) in self.CHANGED.items()
            if first <= least <= last
        }

    def test_the_value_is_what_tasks_would_have(self, play, monkeypatch):
        """Before and after the facts of the hosts are known."""
        resolver, root = loaded_resolver(), str(play.root)
        here = {"ansible_connection": "local", "ansible_become": False}
        here["ansible_python_interpreter"] = sys.executable
        asked = play.run("ansible", "all", "-m", "ping", **here)
        assert asked.returncode == 0, asked.stdout + asked.stderr
        facts = play.directory / "facts"
        for name, value in {
            "PATH": f"{play.bin}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": f"{root}/ansible.cfg",
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(facts),
        }.items():
            monkeypatch.setenv(name, value)
        role = resolver.defaults_role(root)
        hosts = str(play.directory / inventory.FILE_NAME)
        paths = [str(play.directory / "vars.json")]

        def values(name, *arguments):
            run = play.directory / name
            run.mkdir(exist_ok=True)
            place = str(run), root, role, hosts, paths
            return resolver._values(*place, arguments)

        run = play.directory / "run"
        run.mkdir()
        (run / "vars.json").write_text("{}")
        resolver.resolve(str(run), root, hosts, *paths, [])
        resolved = values("resolved", "-i", str(run / resolver.RESULT))
        assert resolved == values("plain")
        assert len(resolved) == len(NODES)
        play.run("ansible", "all", "-m", "setup", **here)
        assert list(facts.iterdir())
        assert resolved == values("with-facts")


class Play:
    """A cluster's directory, and the checkout with an Ansible that suits it."""

    def __init__(self, root: Path, directory: Path, bin_directory: Path) -> None:
        self.root, self.directory, self.bin = root, directory, bin_directory
        at = minor(stated(root).version)
        params = parsed(rich(at))
        self.values = variables.build(params, NODES, BALANCER, nic_mtus=NIC_MTUS)
        hosts = inventory.render(NODES, params)
        (directory / inventory.FILE_NAME).write_text(hosts)

    def run(self, program: str, *args: str, **changes: object):
        values = self.directory / "vars.json"
        values.write_text(json.dumps({**self.values, **changes}))
        hosts = self.directory / inventory.FILE_NAME
        return subprocess.run(
            [self.bin / program, "-i", hosts, "-e", f"@{values}", *args],
            cwd=self.root,
            env={
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "HOME": str(self.directory),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
                "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.directory / "facts"),
                "ANSIBLE_LOCAL_TEMP": str(self.directory / "tmp"),
                "ANSIBLE_NOCOLOR": "1",
            },
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )


@cache
def ansible_for(root: Path) -> Path | None:
    """The directory of the programs of an Ansible that suits a checkout."""
    least, below = stated(root).ansible
    own = shutil.which("ansible-playbook")
    for directory in (
        *(venv / "bin" for venv in VENVS),
        *([Path(own).parent] if own else []),
    ):
        told = subprocess.run(
            [directory / "ansible-playbook", "--version"],
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )
        version = ansible_version_from(told.stdout)
        if version and numbers(least) <= numbers(version) < numbers(below):
            return directory
    return None


@pytest.fixture
def play(root, tmp_path) -> Play:
    directory = ansible_for(root)
    if directory is None:
        least, below = stated(root).ansible
        pytest.skip(
            f"no ansible-core >={least},<{below} in KUBESPRAY_VENVS or the PATH"
        )
    return Play(root, tmp_path, directory)


class TestRuns:
    def test_the_inventory_is_resolved_to_its_groups(self, play):
        done = play.run("ansible-inventory", "--list")
        assert done.returncode == 0, done.stderr
        listed = json.loads(done.stdout)
        assert len(listed["kube_control_plane"]["hosts"]) == 3
        assert listed["etcd"]["hosts"] == listed["kube_control_plane"]["hosts"]
        assert len(listed["kube_node"]["hosts"]) == 2
        assert set(listed["k8s_cluster"]["children"]) >= {
            "kube_control_plane",
            "kube_node",
        }
        video, training = (
            listed["_meta"]["hostvars"][name] for name in listed["kube_node"]["hosts"]
        )
        assert video["node_labels"] == {
            "example.org/kind": "video",
            "CIS-node": "compute-1",
        }
        assert training["node_labels"] == {
            "example.org/kind": "training",
            "gpu": "yes",
            "CIS-node": "compute-2",
        }
        assert "gpu=yes:NoSchedule" in training["node_taints"]
        assert video["calico_mtu"] == 1430

    @pytest.mark.parametrize("playbook", PLAYBOOKS)
    def test_each_playbook_is_read_without_a_mistake(self, play, playbook):
        done = play.run("ansible-playbook", playbook, "--syntax-check")
        assert done.returncode == 0, done.stdout + done.stderr

    def test_a_run_for_the_control_planes_touches_no_worker(self, play):
        done = play.run(
            *("ansible-playbook", runs.INSTALL, "--list-hosts"),
            "--limit",
            runs.join_control_planes([], (), without=[NODES[2].name]).limit,
        )
        assert done.returncode == 0, done.stderr
        listed = set(re.findall(r"^ {6}(\S+)$", done.stdout, re.MULTILINE))
        planes = {n.name for n in NODES if n.role is Role.CONTROL_PLANE}
        assert listed - {"localhost"} < planes

    def test_the_tasks_of_an_installation_can_be_listed(self, play):
        done = play.run("ansible-playbook", runs.INSTALL, "--list-tasks")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("TAGS:") > 100

    def test_the_kubernetes_version_is_spelled_as_the_release_does(self, play):
        sums = [play.root / name for name in checkout.CHECKSUM_FILES]
        playbook = play.directory / "version.yml"
        # Its role of defaults would look for addresses on the nodes.
        show = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars_files": [str(path) for path in sums if path.is_file()],
            "tasks": [{"debug": {"msg": "it is <{{ kube_version }}>"}}],
        }
        playbook.write_text(json.dumps([show]))
        done = play.run("ansible-playbook", str(playbook))
        assert done.returncode == 0, done.stdout + done.stderr
        found = stated(play.root)
        spelled = found.release.kube_version(KUBERNETES[minor(found.version)])
        assert f"it is <{spelled}>" in done.stdout

    def test_its_own_checks_of_inventory_and_variables_pass(self, play):
        done = play.run("ansible-playbook", BOILERPLATE)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr

    def test_these_checks_would_have_found_a_mistake(self, play):
        if not (play.root / checkout.CHECK_FILES[0]).is_file():
            pytest.skip("this release checks variables on the nodes only")
        done = play.run("ansible-playbook", BOILERPLATE, kube_network_plugin="weaver")
        assert done.returncode != 0
