# SPDX-License-Identifier: Apache-2.0
"""``inventory preview``: what the operation would write, and no secret on a screen."""

import json
import shlex
import stat

import pytest
import yaml

from tacker_k8s_mgmt.kubespray import inventory, variables
from tacker_k8s_mgmt.model import nodes
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.request import reader as cluster_params
from tacker_k8s_mgmt.tools.cli import main
from tests.unit.tools.cli.bodies import (
    FILE,
    KEY,
    MARK,
    SECRET_REF,
    installation,
    named,
    secretive,
    simple,
)


@pytest.fixture
def preview(tmp_path, capsys):
    """Return a function: exit code, output and complaints for a request."""

    def run(document, *options):
        path = tmp_path / "request.json"
        path.write_text(json.dumps(document))
        code = main(["inventory", "preview", str(path), *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def listed(tmp_path):
    """Return a function that writes a file of machines; its path."""

    def write(machines):
        path = tmp_path / "machines.json"
        path.write_text(json.dumps(machines))
        return str(path)

    return write


def shown(out, name):
    """The text of a file in the output."""
    return out.split(f"==> {name} in ")[1].split("\n", 1)[1].split("\n\n")[0] + "\n"


def machine(role, number, **fields):
    address = f"10.99.0.{number}"
    return {"role": role, "ssh_address": address, "server_id": f"s{number}", **fields}


MACHINES = [
    machine("control-plane", 11, address="10.10.0.11"),
    machine("worker", 21, address="10.10.0.21"),
    machine("worker", 22, address="10.10.0.22"),
    machine("load-balancer", 5, address="10.10.0.5"),
]


def of_the_product(body):
    """What the driver's own modules make of the machines above."""
    given = cluster_params.RequestReader().read(body["additionalParams"])
    vms = [
        Machine(Role(m["role"]), m["server_id"], m["ssh_address"], m["address"])
        for m in MACHINES
    ]
    members = nodes.name_nodes([vm for vm in vms if vm.role is not Role.LOAD_BALANCER])
    return (
        inventory.render(members, given),
        variables.build(given, members, vms[-1]),
        members,
    )


def test_files_are_those_of_the_product_byte_by_byte(preview, listed, tmp_path):
    body = secretive()
    directory = tmp_path / "out"
    code, out, _ = preview(
        body, "--machines", listed(MACHINES), "--output-dir", str(directory), "--reveal"
    )
    assert code == 0
    hosts, values, _ = of_the_product(body)
    assert (directory / "hosts.yaml").read_text() == hosts
    assert json.loads((directory / "vars.json").read_text()) == values
    assert f"{MARK}-registry" in (directory / "vars.json").read_text()
    assert MARK not in out


def test_a_masked_file_differs_in_its_secrets_only(preview, listed):
    body = simple()
    _, out, _ = preview(body, "--machines", listed(MACHINES))
    hosts, values, _ = of_the_product(body)
    masked = hosts.replace("password: ubuntu", "password: '***'")
    assert masked != hosts
    assert shown(out, "hosts.yaml") == masked
    assert json.loads(shown(out, "vars.json")) == values


def test_the_load_balancer_and_the_vim_are_reported(preview, listed):
    body = simple()
    _, out, _ = preview(body, "--machines", listed(MACHINES))
    _, _, members = of_the_product(body)
    assert "load balancer: on 10.99.0.5, as root\n" in out
    (command,) = [line for line in out.splitlines() if line.startswith("  bash ")]
    workers = [f"{node.name}={node.address}" for node in members[1:]]
    assert shlex.split(command) == [
        "bash",
        "Scripts/install_external_lb.sh",
        "install",
        *("--api-port", "6443", "--control-plane", f"{members[0].name}=10.10.0.11"),
        *(part for worker in workers for part in ("--worker", worker)),
    ]
    assert "playbook: cluster.yml\n" in out
    assert "VIM: kubernetes_vim at https://10.99.0.5:6443\n" in out


def test_document_has_what_the_text_has(preview, listed):
    machines = listed(MACHINES)
    code, text, _ = preview(simple(), "--machines", machines)
    assert code == 0
    code, out, _ = preview(simple(), "--machines", machines, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["request"].endswith("/request.json")
    assert (document["problems"], document["warnings"]) == ([], [])
    assert document["files"] == {
        name: shown(text, name) for name in ("hosts.yaml", "vars.json")
    }
    assert shlex.join(document["load_balancer"]["command"]) in text
    assert document["load_balancer"]["address"] == "10.99.0.5"
    assert document["playbooks"] == ["cluster.yml"]
    assert document["vim"] == {
        "name": "kubernetes_vim",
        "auth_url": "https://10.99.0.5:6443",
    }


def test_revealed_secrets_are_in_no_document(preview, listed, tmp_path):
    options = ("--output-dir", str(tmp_path / "preview"), "--reveal", "--json")
    code, out, _ = preview(secretive(), "--machines", listed(MACHINES), *options)
    assert code == 0
    assert MARK in (tmp_path / "preview" / "hosts.yaml").read_text()
    assert MARK not in out
    assert json.loads(out)["files"] == {}


def test_problems_are_a_document(preview):
    body = simple()
    del installation(body)["worker_node"]
    code, out, _ = preview(body, "--json")
    assert code == 1
    assert json.loads(out)["problems"] == ["worker_node: is missing"]


def test_without_a_load_balancer_the_vim_is_at_the_control_plane(preview):
    body = simple()
    del installation(body)["external_lb_param"]
    del installation(body)["vim_name"]
    code, out, _ = preview(body)
    assert code == 0
    assert "load balancer" not in out
    vim = "VIM: kubernetes_vim_<VNF instance id> at https://192.0.2.11:6443\n"
    assert vim in out


# --- assumed VMs


@pytest.mark.parametrize(("planes", "workers"), [(1, 0), (1, 2), (3, 5), (5, 200)])
def test_as_many_vms_are_assumed_as_wanted(preview, planes, workers):
    options = ["--control-planes", str(planes), "--workers", str(workers)]
    code, out, _ = preview(simple(), *options)
    assert code == 0
    children = yaml.safe_load(shown(out, "hosts.yaml"))["all"]["children"]
    assert len(children["kube_control_plane"]["hosts"]) == planes
    assert len(children["kube_node"]["hosts"] or ()) == workers


def test_assumed_addresses_are_for_documentation(preview):
    _, out, _ = preview(simple())
    hosts = yaml.safe_load(shown(out, "hosts.yaml"))["all"]["hosts"]
    for host in hosts.values():
        assert host["ansible_host"].startswith("192.0.2.")
        assert host["ip"].startswith("198.51.100.")


def test_one_port_for_both_has_one_address(preview):
    body = simple()
    installation(body)["master_node"]["nic_cp_name"] = "masterNode_CP1"
    _, out, _ = preview(body)
    hosts = yaml.safe_load(shown(out, "hosts.yaml"))["all"]["hosts"]
    assert hosts["control-plane-192-0-2-11"]["ansible_host"] == "192.0.2.11"


def test_ipv6_clusters_get_ipv6_addresses(preview):
    body = simple()
    given = installation(body)
    given["address_family"] = "ipv6"
    for name in ("pod_cidr", "cluster_cidr"):
        del given["master_node"][name]
    code, out, _ = preview(body)
    assert code == 0
    hosts = yaml.safe_load(shown(out, "hosts.yaml"))["all"]["hosts"]
    for host in hosts.values():
        assert host["ansible_host"].startswith("2001:db8::")
        assert host["ip6"].startswith("2001:db8:1::")
    assert "at https://[2001:db8::e]:6443" in out


def test_more_vms_than_example_addresses_are_refused(preview):
    code, _, err = preview(simple(), "--workers", "500")
    assert code == 2
    assert "give --machines FILE" in err


# --- what is refused


def test_what_the_driver_would_refuse_is_reported_in_its_wording(preview, listed):
    code, out, _ = preview(simple(), "--control-planes", "2")
    assert code == 1
    assert "there are 2 VMs; etcd wants an odd number of them" in out
    inside = [*MACHINES[:3], machine("load-balancer", 5, address="10.233.64.9")]
    code, out, _ = preview(simple(), "--machines", listed(inside))
    assert code == 1
    assert "the address 10.233.64.9, which is in 10.233.64.0/18" in out
    code, out, _ = preview(simple(), "--machines", listed(MACHINES[:3]))
    assert code == 1
    assert "external_lb_param.ssh_cp_name: there is no externalLB_CP1" in out


def test_two_vms_at_one_address_are_refused(preview, listed):
    twice = [*MACHINES, machine("worker", 23, address="10.10.0.22")]
    code, _, err = preview(simple(), "--machines", listed(twice))
    assert code == 1
    assert "have the same address on the cluster network, 10.10.0.22" in err


def test_problems_of_the_request_come_first(preview):
    body = simple()
    del installation(body)["ansible"]["username"]
    code, out, _ = preview(body)
    assert code == 1
    assert "problem: ansible.username: is missing" in out
    assert "hosts.yaml" not in out


WRONG_MACHINES = {
    "no list": ({"role": "worker"}, "the whole: Input should be a valid list"),
    "an unknown role": ([machine("master", 1)], "0.role: Input should be"),
    "no address": ([{"role": "worker"}], "0.ssh_address: Field required"),
    "another address": (
        [{"role": "worker", "ssh_address": "10.1"}],
        "0.ssh_address: Value error, must be an IP address",
    ),
    # Python takes these for 192.0.2.17 and 0.0.0.1.
    "a number for an address": (
        [{"role": "worker", "ssh_address": 3221225985}],
        "0.ssh_address: Value error, must be an IP address",
    ),
    "true for an address": (
        [machine("worker", 1, address=True)],
        "0.address: Value error, must be an IP address",
    ),
    "an unknown attribute": ([machine("worker", 1, name="w")], "0.name: Extra inputs"),
}


@pytest.mark.parametrize(
    ("machines", "words"), WRONG_MACHINES.values(), ids=WRONG_MACHINES.keys()
)
def test_a_file_that_lists_no_machines_is_exit_code_2(preview, listed, machines, words):
    code, out, err = preview(simple(), "--machines", listed(machines))
    assert (code, out) == (2, "")
    assert words in err


def test_a_load_balancer_that_is_not_requested_is_reported(preview, listed):
    body = simple()
    del installation(body)["external_lb_param"]
    code, _, err = preview(body, "--machines", listed(MACHINES))
    assert code == 2
    assert "the request no external_lb_param" in err


def with_aspects():
    body = simple()
    installation(body)["worker_node"] |= {
        "compute_host_label": "CIS-node",
        "aspects": [{"aspect_id": "gpu", "node_labels": ["gpu=yes"]}],
    }
    return body


def test_workers_of_an_aspect_have_their_labels(preview, listed):
    gpu = machine("worker", 23, address="10.10.0.23", aspect_id="gpu")
    code, out, _ = preview(with_aspects(), "--machines", listed([*MACHINES, gpu]))
    assert code == 0
    found = yaml.safe_load(shown(out, "hosts.yaml"))["all"]["hosts"]
    labels = {name: host.get("node_labels") for name, host in found.items()}
    assert labels["worker-10-10-0-22"] == {"CIS-node": "compute-host"}
    assert labels["worker-10-10-0-23"] == {"gpu": "yes", "CIS-node": "compute-host"}


def test_assumed_workers_are_of_all_aspects(preview):
    _, out, _ = preview(with_aspects(), "--workers", "2")
    assert out.count("tacker_aspect_id: gpu") == 1


def test_without_a_place_of_their_own_workers_are_of_the_first_aspect(preview, listed):
    body = with_aspects()
    del installation(body)["worker_node"]["aspect_id"]
    _, out, _ = preview(body, "--machines", listed(MACHINES))
    assert out.count("tacker_aspect_id: gpu") == 2


def test_an_aspect_that_the_request_has_not_is_reported(preview, listed):
    body = simple()
    gpu = machine("worker", 23, aspect_id="gpu")
    code, _, err = preview(body, "--machines", listed([*MACHINES, gpu]))
    assert code == 2
    assert "the request no such aspect in worker_node.aspects" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--reveal"], "--reveal needs --output-dir"),
        (["--machines", "m.json", "--workers", "2"], "leave out the others"),
    ],
)
def test_options_that_do_not_go_together_are_exit_code_2(preview, options, words):
    code, out, err = preview(simple(), *options)
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("number", ["-1", "many", "1.5"])
def test_what_is_no_number_of_vms_is_a_wrong_command_line(preview, number):
    with pytest.raises(SystemExit) as caught:
        preview(simple(), "--workers", number)
    assert caught.value.code == 2


# --- files


def modes(directory):
    return {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()
    }


def test_files_are_for_their_owner_only_and_masked(preview, tmp_path):
    directory = tmp_path / "out"
    code, out, _ = preview(secretive(), "--output-dir", str(directory))
    assert code == 0
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert modes(directory) == {"hosts.yaml": 0o600, "vars.json": 0o600}
    for path in directory.iterdir():
        assert MARK not in path.read_text()
    assert MARK not in out
    assert "hosts.yaml: in " in out


def test_existing_files_are_replaced_only_by_force(preview, tmp_path):
    directory = tmp_path / "out"
    directory.mkdir()
    mine = directory / "vars.json"
    mine.write_text("mine")
    mine.chmod(0o644)
    options = ["--output-dir", str(directory)]
    code, _, err = preview(simple(), *options)
    assert code == 2
    assert f"there is {mine} already; --force replaces it" in err
    assert modes(directory) == {"vars.json": 0o644}
    assert mine.read_text() == "mine"
    assert preview(simple(), *options, "--force")[0] == 0
    assert modes(directory) == {"hosts.yaml": 0o600, "vars.json": 0o600}


def test_a_link_is_neither_replaced_nor_followed(preview, tmp_path):
    directory = tmp_path / "out"
    directory.mkdir()
    target = tmp_path / "target"
    (directory / "vars.json").symlink_to(target)
    for force in ([], ["--force"]):
        code, _, err = preview(simple(), "--output-dir", str(directory), *force)
        assert code == 2
        assert "vars.json cannot be written: it is a symbolic link" in err
    assert [path.name for path in directory.iterdir()] == ["vars.json"]
    assert (directory / "vars.json").is_symlink()
    assert not target.exists()


def test_a_directory_that_cannot_be_made_is_one_line(preview, tmp_path):
    code, _, err = preview(simple(), "--output-dir", str(tmp_path / "no" / "out"))
    assert code == 2
    assert "cannot be created: No such file or directory" in err


# --- secrets


def test_no_secret_is_on_the_screen(preview, listed):
    code, out, err = preview(secretive(), "--machines", listed(MACHINES))
    assert code == 0
    assert MARK not in out + err
    assert "***@proxy.example:3128" in out
    assert "(a proxy's URL is read from standard input)" in out


def test_the_key_file_has_the_name_that_it_will_have(preview, listed):
    body = simple()
    installation(body)["worker_node"]["private_key"] = KEY
    _, out, _ = preview(body, "--machines", listed(MACHINES))
    given = cluster_params.RequestReader().read(body["additionalParams"])
    assert given.account(Role.WORKER).private_key.file_name in out
    assert MARK not in out


def test_an_mtu_that_is_made_of_the_nodes_is_that_of_assumed_interfaces(preview):
    body = simple()
    given = body["additionalParams"]["k8s_cluster_installation_param"]
    given["cluster"] = {"network": {"plugin": "calico", "mtu": "nodes"}}
    code, out, _ = preview(body)
    assert code == 0
    assert json.loads(shown(out, "vars.json"))["calico_mtu"] < 1500


def test_references_are_reported_and_not_followed(preview, listed, tmp_path):
    options = ["--output-dir", str(tmp_path / "out"), "--reveal"]
    code, out, _ = preview(named(), "--machines", listed(MACHINES), *options)
    assert code == 0
    for name, reference in (
        ("ansible.password", FILE),
        ("worker_node.password", SECRET_REF),
        ("kubespray_vars.registry_password", SECRET_REF),
    ):
        text = f"secret: {name}: {json.dumps(reference)}, resolved when a hook begins"
        assert text in out.splitlines()
    assert "(unknown)" in (tmp_path / "out" / "hosts.yaml").read_text()


def test_tenants_are_no_hindrance(preview):
    body = simple()
    installation(body)["tenants"] = [
        {"name": "blue", "quota": {"pods": 5}},
        {"name": "red", "isolated": False},
    ]
    code, out, _ = preview(body)
    assert (code, "VIM: " in out) == (0, True)
