# SPDX-License-Identifier: Apache-2.0
"""The evaluation of kubespray's downloads before a run: what is left as it is, and why.

The checkouts are small ones of these tests; :mod:`tests.contract.test_kubespray` has
the real ones.
"""

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from tacker_k8s_mgmt.model.playbooks import Means, PlaybookRequest
from tacker_k8s_mgmt.remote.ansible.playbook_runner import PlaybookRunner

RUN_FILES = Path(__file__).parents[4] / "tacker_k8s_mgmt/remote/ansible/run_files"
needs_ansible = pytest.mark.skipif(
    not shutil.which("ansible-playbook"), reason="no ansible-playbook in PATH"
)
ROLE = "roles/kubespray_defaults/defaults/main"
DOWNLOADS = {
    "etcd": {"dest": "/tmp/etcd-{{ etcd_version }}", "enabled": True},
    "runc": {"dest": "/tmp/runc-{{ image_arch }}", "checksum": "{{ runc_sum }}"},
    "crio": {"dest": "/tmp/crio", "enabled": "{{ engine == 'crio' }}"},
}
VALUES = {
    "downloads": DOWNLOADS,
    "etcd_version": "3.6.{{ etcd_patch }}",
    "etcd_patch": 5,
    "image_arch": "{{ 'amd64' if ansible_architecture == 'x86_64' else 'arm64' }}",
    "runc_sums": {"amd64": "sha256:aa", "arm64": "sha256:bb"},
    "runc_sum": "{{ runc_sums[image_arch] }}",
    "engine": "containerd",
}


@pytest.fixture(scope="module")
def resolver():
    path = RUN_FILES / "k8s_mgmt_resolve.py"
    spec = importlib.util.spec_from_file_location("k8s_mgmt_resolve", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Checkout:
    """A checkout with kubespray's role of defaults."""

    def __init__(self, root: Path):
        self.root = root
        self.put(f"{ROLE}/download.yml", VALUES)

    def put(self, name: str, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.dump(content))

    def change(self, **values):
        self.put(f"{ROLE}/download.yml", {**VALUES, **values})


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "kubespray")


@pytest.fixture
def kept(resolver, checkout):
    """Return which entries stay templates."""

    def names(*own):
        role = resolver.defaults_role(str(checkout.root))
        found, _ = resolver.kept_templates(str(checkout.root), role, own)
        return set(found)

    return names


# --- what is left as it is ------------------------------------------------------------


def test_nothing_is_left_where_no_task_changes_anything(kept, checkout):
    tasks = [{"debug": {"msg": "{{ engine }}"}}, {"set_fact": {"other": 1}}]
    checkout.put("roles/a/tasks/main.yml", tasks)
    assert kept() == set()


PLAY = {"hosts": "all"}
SETTINGS = {
    "set_fact": ("roles/a/tasks/main.yml", [{"set_fact": {"engine": "crio"}}]),
    "set_fact by its full name": (
        "roles/a/tasks/x.yaml",
        [{"ansible.builtin.set_fact": {"engine": "crio"}}],
    ),
    "set_fact as a text": ("roles/a/tasks/x.yml", "- set_fact: a=b engine=crio\n"),
    "set_fact in a block": (
        "roles/a/handlers/main.yml",
        [{"block": [{"debug": {}}], "rescue": [{"set_fact": {"engine": "x"}}]}],
    ),
    "vars of a task": (
        "roles/a/tasks/main.yml",
        [{"include_role": {"name": "b"}, "vars": {"engine": "crio"}}],
    ),
    "vars of a play": ("playbooks/cluster.yml", [{**PLAY, "vars": {"engine": "x"}}]),
    "vars of a top playbook": ("cluster.yml", [{**PLAY, "vars": {"engine": "x"}}]),
    "register": ("roles/a/tasks/main.yml", [{"command": "x", "register": "engine"}]),
    "loop_var": (
        "roles/a/tasks/main.yml",
        [{"debug": {}, "loop_control": {"loop_var": "engine"}}],
    ),
    "parameter of a role": (
        "cluster.yml",
        [{**PLAY, "roles": [{"role": "a", "engine": "crio"}]}],
    ),
    "variables of a role": ("roles/a/vars/main.yml", {"engine": "crio"}),
    "variables that are included": ("roles/a/vars/debian.yml", {"engine": "crio"}),
    "default of another role": ("roles/a/defaults/main.yml", {"engine": "docker"}),
    "prompt": ("cluster.yml", [{**PLAY, "vars_prompt": [{"name": "engine"}]}]),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_what_a_checkout_sets_is_left(kept, checkout, kind):
    checkout.put(*SETTINGS[kind])
    assert kept() == {"crio"}


def test_default_of_another_role_that_is_the_same_does_not_count(kept, checkout):
    checkout.put("roles/a/defaults/main.yml", {"engine": "containerd"})
    assert kept() == set()


def test_variable_that_a_variable_depends_on_counts(kept, checkout):
    checkout.put("roles/a/tasks/main.yml", [{"set_fact": {"etcd_patch": 6}}])
    assert kept() == {"etcd"}


@pytest.mark.parametrize(
    ("value", "is_left"),
    [
        ("{{ ansible_architecture }}", False),
        ("{{ ansible_facts['system'] }} {{ ansible_facts.architecture }}", False),
        ("{{ ansible_distribution }}", True),
        ("{{ ansible_facts['distribution'] }}", True),
        ("{{ ansible_facts | length }}", True),
        ("{{ groups['etcd'] }}", True),
        ("{{ hostvars['h1'].x }}", True),
        ("{{ lookup('env', 'HOME') }}", False),
        ("{{ lookup('file', '/etc/x') }}", True),
        ("{{ query('pipe', 'x') }}", True),
        ("{{ lookup('vars', 'runc_' + 'sum') }}", False),
        ("{{ lookup('vars', name_of_it) }}", True),
        ("{% if engine == 'x' %}a{% endif %}", False),
    ],
)
def test_values_that_differ_later_are_left(kept, checkout, value, is_left):
    checkout.change(engine=value)
    assert kept() == ({"crio"} if is_left else set())


def test_lookup_of_variables_by_a_part_of_their_names(kept, checkout):
    checkout.change(engine="{{ lookup('vars', 'runc_' + channel + '_sum') }}")
    checkout.put("roles/a/tasks/main.yml", [{"set_fact": {"runc_x_sum": 1}}])
    assert kept({"runc_x_sum": 0}) == {"crio"}
    assert kept({"runc_x_sum": "{{ groups }}"}) == {"crio"}


def test_variables_of_the_request_count(kept, checkout):
    checkout.put("roles/a/tasks/main.yml", [{"set_fact": {"mirror": "x"}}])
    assert kept({"engine": "{{ mirror }}"}) == {"crio"}
    assert kept({"engine": "{{ inventory_hostname }}"}) == set()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("roles/a/tasks/x.yml", [{"set_fact": {"downloads": {}}}], "tasks .* set"),
        ("roles/a/vars/main.yml", {"downloads": {}}, "tasks .* set"),
        (f"{ROLE}/download.yml", {"downloads": "{{ x }}"}, "another form"),
    ],
)
def test_downloads_that_are_set_are_left(resolver, kept, checkout, name, content, why):
    checkout.put(name, content)
    with pytest.raises(resolver.LeftAlone, match=why):
        kept()


def test_downloads_of_the_request_are_left(resolver, kept):
    with pytest.raises(resolver.LeftAlone, match="is given"):
        kept({"downloads": {}})


def test_checkout_without_the_role_is_left(resolver, kept, checkout):
    shutil.rmtree(checkout.root / "roles")
    (checkout.root / "roles").mkdir()
    with pytest.raises(resolver.LeftAlone, match="no role kubespray_defaults"):
        kept()


# --- the value ------------------------------------------------------------------------

ENTRIES = {"a": {"x": "{{ one }}"}, "b": {"x": "{{ two }}"}}


def of_hosts(resolver, kept=(), **values):
    left = {name: ENTRIES[name] for name in kept}
    return resolver.inventory(values, left, ENTRIES)["all"]


def test_value_of_all_hosts_is_one(resolver):
    value = {"a": {"x": "1"}, "b": {"x": "2"}}
    assert of_hosts(resolver, h1=value, h2=value) == {"vars": {"downloads": value}}
    mixed = {"a": {"x": "1"}, "b": ENTRIES["b"]}
    expected = {"vars": {"downloads": mixed}}
    assert of_hosts(resolver, ["b"], h1=value, h2=value) == expected


def test_values_of_mixed_hosts_stay_apart(resolver):
    one, other = ({"a": {"x": n}, "b": {"x": "2"}} for n in ("amd64", "arm64"))
    found = of_hosts(resolver, h1=one, h2=other)
    assert found == {"hosts": {"h1": {"downloads": one}, "h2": {"downloads": other}}}


@pytest.mark.parametrize("text", ["{{ lookup('pipe', 'id') }}", "{% raw %}", "{# x #}"])
def test_text_of_a_host_never_becomes_a_template(resolver, text):
    value = {"a": {"x": f"runc-{text}"}, "b": {"x": "2"}}
    assert of_hosts(resolver, h1=value)["vars"]["downloads"]["a"] == ENTRIES["a"]


@pytest.mark.parametrize("value", [{"a": {}}, "text", {**ENTRIES, "c": {}}])
def test_other_entries_are_refused(resolver, value):
    with pytest.raises(resolver.LeftAlone, match="other entries"):
        of_hosts(resolver, h1=value)


def test_without_hosts_there_is_no_value(resolver):
    with pytest.raises(resolver.LeftAlone, match="no host"):
        of_hosts(resolver)


# --- a run ----------------------------------------------------------------------------


class Site:
    """A cluster's directory for runs of a checkout, whose hosts are all here."""

    def __init__(self, checkout: Checkout, directory: Path, log_in):
        self.checkout, self.root, self.workdir = checkout, checkout.root, directory
        self.workdir.mkdir()
        here = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        self.hosts = {"h1": dict(here), "h2": dict(here)}
        (self.root / "ansible.cfg").write_text("[defaults]\nroles_path = roles\n")
        self.variables = {"etcd_patch": 7}
        self._connect = log_in

    def play(self, *checks: str, resolves=True, playbook="cluster.yml", limit=""):
        """Check conditions in a play that has kubespray's defaults; returns notes."""
        group = {"hosts": self.hosts}
        inventory = {"all": {"children": {"k8s_cluster": group}}}
        (self.workdir / "hosts.yaml").write_text(json.dumps(inventory))
        (self.workdir / "vars.json").write_text(json.dumps(self.variables))
        gather = {"setup": {"gather_subset": "!all,min"}}
        play = {"hosts": "k8s_cluster", "gather_facts": False}
        play["roles"] = [{"role": self.defaults, "tags": ["never"]}]
        play["tasks"] = [gather, {"assert": {"that": list(checks)}}]
        (self.root / playbook).write_text(json.dumps([play]))
        means = Means("linear", resolves=resolves)
        directories = str(self.workdir), str(self.root)
        runner = PlaybookRunner(self._connect, *directories, means=means)
        seen = []
        request = PlaybookRequest(playbook, limit=limit)
        options = {"total": 200, "idle": 200, "poll": 0.1}
        runner.run(request, on_progress=seen.append, **options)
        return seen[-1].notes

    @property
    def defaults(self):
        (role,) = (path.name for path in (self.root / "roles").glob("kubespray*"))
        return role

    def left(self, name):
        (run,) = (self.workdir / "runs").iterdir()
        return run / name


@pytest.fixture
def site(checkout, tmp_path, log_in):
    return Site(checkout, tmp_path / "cluster", log_in)


#: What the value is in any case.
SAME = (
    "downloads.etcd == {'dest': '/tmp/etcd-3.6.7', 'enabled': true}",
    "downloads.runc.dest == '/tmp/runc-' + image_arch",
    "downloads.runc.checksum == runc_sums[image_arch]",
    "not downloads.crio.enabled",
)


@needs_ansible
@pytest.mark.parametrize("role", ["kubespray_defaults", "kubespray-defaults"])
def test_run_has_the_value_once_for_all_tasks(site, role):
    roles = site.root / "roles"
    (roles / "kubespray_defaults").rename(roles / role)
    tasks = [{"fail": {"msg": "the role is for its defaults only"}}]
    site.checkout.put(f"roles/{role}/tasks/main.yml", tasks)
    (note,) = site.play(*SAME)
    assert note.startswith("downloads resolved once for 2 hosts in ")
    value = json.loads(site.left("resolved.json").read_text())
    assert value["all"]["vars"]["downloads"]["etcd"]["dest"] == "/tmp/etcd-3.6.7"


@needs_ansible
def test_task_that_changes_a_part_still_changes_it(site):
    tasks = [{"set_fact": {"engine": "crio"}}]
    site.checkout.put("roles/later/tasks/main.yml", tasks)
    (note,) = site.play(*SAME)
    assert note.endswith(", but for crio, which tasks change")
    value = json.loads(site.left("resolved.json").read_text())
    assert value["all"]["vars"]["downloads"]["crio"] == DOWNLOADS["crio"]


@needs_ansible
def test_mixed_cluster_has_each_hosts_own(site):
    site.hosts["h2"]["etcd_patch"] = 9
    site.variables = {}
    (note,) = site.play("downloads.etcd.dest == '/tmp/etcd-3.6.%s' % etcd_patch")
    assert note.startswith("downloads resolved once for 2 hosts")
    value = json.loads(site.left("resolved.json").read_text())
    assert value["all"].keys() == {"hosts"}


@needs_ansible
def test_limit_holds_for_the_short_playbook(site):
    site.hosts["gone"] = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    (note,) = site.play(*SAME, limit="h1")
    assert note.startswith("downloads resolved once for 1 host in ")


@needs_ansible
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"x": "{{ nowhere }}"}, "the short playbook has failed; see "),
        ({"x": "{{ 1 +"}, "the short playbook has failed; see "),
    ],
)
def test_value_that_cannot_be_resolved_is_left(site, value, why):
    downloads = {**DOWNLOADS, "other": value}
    site.checkout.change(downloads=downloads)
    (note,) = site.play("etcd_version == '3.6.7'")
    assert note.startswith(f"downloads is evaluated by each task: {why}")
    assert site.left("resolve/log").read_text()
    assert not site.left("resolved.json").exists()


@needs_ansible
@pytest.mark.parametrize("place", ["group_vars", "playbooks/host_vars"])
def test_variables_beside_the_playbooks_are_respected(site, place):
    (site.root / place).mkdir(parents=True)
    (note,) = site.play(*SAME)
    assert note.endswith(f"there are variables in {site.root / place}")


@needs_ansible
@pytest.mark.parametrize(
    ("playbook", "resolves"), [("cluster.yml", False), ("remove-node.yml", True)]
)
def test_other_runs_resolve_nothing(site, playbook, resolves):
    assert site.play(*SAME, playbook=playbook, resolves=resolves) == ()
    assert not site.left("k8s_mgmt_resolve.py").exists()


@needs_ansible
@pytest.mark.parametrize("damage", ["file", "checkout", "run", "none"])
def test_value_of_another_run_or_checkout_is_not_used(
    resolver, site, tmp_path, monkeypatch, damage
):
    run = tmp_path / "20270101T000000000Z-cluster"
    run.mkdir()
    (run / "vars.json").write_text("{}")
    facts = str(tmp_path / "no-facts")
    monkeypatch.setenv("ANSIBLE_CACHE_PLUGIN_CONNECTION", facts)
    monkeypatch.setenv("ANSIBLE_CONFIG", str(site.root / "ansible.cfg"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    group = {"hosts": site.hosts}
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text(json.dumps({"all": {"children": {"k8s_cluster": group}}}))
    variables = tmp_path / "vars.json"
    variables.write_text("{}")
    places = str(run), str(site.root)
    digest, _ = resolver.resolve(*places, str(hosts), str(variables), [])
    other = run
    if damage == "file":
        text = (run / "resolved.json").read_text()
        (run / "resolved.json").write_text(text.replace("etcd", "evil"))
    elif damage == "checkout":
        site.checkout.put("roles/new/tasks/main.yml", [])
    elif damage == "run":
        other = run.rename(tmp_path / "20270101T000000001Z-cluster")
    code = resolver.main("verify", str(other), str(site.root), digest)
    assert code == (0 if damage == "none" else 1)
    events = other / "events.jsonl"
    if code:
        (event,) = map(json.loads, events.read_text().splitlines())
        assert event["event"] == "note"
        assert event["message"].endswith("its file or the checkout has changed since")


def test_any_failure_is_a_note(resolver, tmp_path, checkout):
    run = tmp_path / "run"
    run.mkdir()
    arguments = str(tmp_path / "nowhere.yaml"), str(tmp_path / "nowhere.json")
    assert resolver.main("resolve", str(run), str(checkout.root), *arguments) == 1
    (event,) = map(json.loads, (run / "events.jsonl").read_text().splitlines())
    assert "resolving it failed: FileNotFoundError" in event["message"]
    assert os.listdir(run) == ["events.jsonl"]
