# SPDX-License-Identifier: Apache-2.0
"""What the lab's cloud decides about hosts, without making any."""

import json
import shutil
import uuid
from pathlib import Path

import pytest
import yaml

from lab.cloud import CloudError, base, boot, hosts, networks
from lab.cloud.settings import PREPARED, STOCK, VM, Settings
from lab.cloud.state import Refusals
from tacker_k8s_mgmt.tools.csar import parts

ID = "0a1b2c3d-0000-4000-8000-000000000000"


def document(host_id=ID, name="worker", address="10.99.0.10", bridge="external"):
    nic = {
        "bridge": bridge,
        "address": address,
        "prefix": 24,
        "mac": "fa:16:3e:00:00:01",
        "port_id": str(uuid.uuid5(uuid.NAMESPACE_DNS, host_id + address)),
    }
    return {"id": host_id, "name": name, "nics": [nic], "metadata": {}}


def host(*args, **kwargs):
    return hosts.Host.from_document(document(*args, **kwargs))


@pytest.mark.parametrize(
    ("server_name", "expected"),
    [
        pytest.param("masterNode", "masternode", id="upper-case"),
        pytest.param("vnf_1.worker (2)", "vnf-1-worker-2", id="other-characters"),
        pytest.param("a" * 62 + "-bcd", "a" * 62, id="too-long"),
        pytest.param("???", "host", id="nothing-left"),
    ],
)
def test_host_names_are_valid(server_name, expected):
    assert hosts.host_name(server_name) == expected


def test_refused_names_are_not_built_until_they_are_admitted(tmp_path):
    refusals = Refusals(tmp_path)
    refusals.add("*-externalLB-*")
    refusals.add("other")
    with pytest.raises(CloudError, match="No valid host was found for vnf-externalLB-"):
        hosts.Hosts(tmp_path).create(document(name="vnf-externalLB-1"))
    refusals.check("vnf-workerNode-1")
    refusals.remove("*-externalLB-*")
    refusals.check("vnf-externalLB-1")
    with pytest.raises(CloudError, match="is not refused; these are: other"):
        refusals.remove("*-externalLB-*")


def test_refused_names_are_not_deleted_either(tmp_path):
    known = tmp_path / "hosts" / "one"
    known.mkdir(parents=True)
    (known / "host.json").write_text(json.dumps(document("one", "vnf-workerNode-1")))
    Refusals(tmp_path).add("*-workerNode-*")
    with pytest.raises(CloudError, match="hypervisor of vnf-workerNode-1 does not"):
        hosts.Hosts(tmp_path).delete("one")
    Refusals(tmp_path).remove("*-workerNode-*")
    hosts.Hosts(tmp_path).delete("one")
    assert not known.exists()


@pytest.mark.parametrize("missing", ["id", "name"])
def test_an_incomplete_document_is_refused(missing):
    given = document()
    del given[missing]
    with pytest.raises(CloudError, match=f"has no '{missing}'"):
        hosts.Host.from_document(given)


def test_a_document_with_an_incomplete_port_is_refused():
    given = document()
    del given["nics"][0]["mac"]
    with pytest.raises(CloudError, match="has no 'mac'"):
        hosts.Host.from_document(given)


@pytest.mark.parametrize("text", ["worker", "0a1b2c3d", ID, "10.99.0.10"])
def test_a_host_is_found_by(text):
    other = host("ffffffff-0000-4000-8000-000000000000", "master", "10.99.0.11")
    assert hosts.find([other, host()], text).id == ID


@pytest.mark.parametrize("text", ["work", "0a1", "10.99.0.1", "10.99.0.100"])
def test_only_whole_names_and_addresses_count(text):
    with pytest.raises(CloudError, match=rf"No host {text}; there are: worker"):
        hosts.find([host()], text)


def test_an_ambiguous_name_lists_every_host_that_it_may_mean():
    twins = [host(), host("ffffffff-0000-4000-8000-000000000000", address="10.99.0.11")]
    with pytest.raises(CloudError) as refused:
        hosts.find(twins, "worker")
    for part in (ID, "10.99.0.10", "ffffffff", "10.99.0.11"):
        assert part in str(refused.value)


def test_a_host_without_process_is_off(tmp_path):
    directory = tmp_path / "hosts" / ID
    directory.mkdir(parents=True)
    (directory / "host.json").write_text(json.dumps(document()))
    # The number is one of a process that runs, but that one started at another time.
    (directory / "pid").write_text("1 0")
    known = hosts.Hosts(tmp_path)
    assert [each.name for each in known.all()] == ["worker"]
    assert known.pid(ID) is None
    with pytest.raises(CloudError, match="Host worker is off"):
        known.enter(known.all()[0], ["true"])
    with pytest.raises(CloudError, match="Host worker is off"):
        known.connect(known.all()[0], up=False)


def test_a_host_is_known_while_its_document_is_written_again(tmp_path, monkeypatch):
    known, cloud = tmp_path / "hosts" / ID, hosts.Hosts(tmp_path)
    known.mkdir(parents=True)
    (known / "host.json").write_text(json.dumps(document()))
    seen, write = [], Path.write_text

    def begin(path, text):
        write(path, "")
        seen.extend(cloud.all())
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", begin)
    cloud.rewire(document(address="10.99.0.11"))
    assert [one.addresses for one in seen] == [("10.99.0.10",)]
    assert [one.addresses for one in cloud.all()] == [("10.99.0.11",)]


def test_deleting_a_host_twice_is_no_error(tmp_path):
    directory = tmp_path / "hosts" / ID
    directory.mkdir(parents=True)
    (directory / "host.json").write_text(json.dumps(document()))
    known = hosts.Hosts(tmp_path)
    known.delete(ID)
    known.delete(ID)
    assert known.all() == []


def test_interface_names_are_short_and_differ():
    ids = [str(uuid.uuid5(uuid.NAMESPACE_DNS, str(n))) for n in range(500)]
    names = {networks.link_name(i) for i in ids} | {
        networks.bridge_name(i) for i in ids
    }
    assert len(names) == 1000
    assert all(len(name) <= 15 for name in names)


def rewired(monkeypatch, before, after):
    """The lines for ``ip`` with which a host gets other ports."""
    said = []

    def ip(lines, *, prefix=(), check=True):
        said.extend(lines)

    monkeypatch.setattr(networks, "_ip", ip)
    monkeypatch.setattr(networks, "_links", dict)
    networks.rewire(before, after, 42)
    return said


def test_ports_that_stay_are_not_touched_when_another_one_changes(monkeypatch):
    outer, inner = host().nics[0], host(address="10.10.0.5", bridge="br-1").nics[0]
    moved = host(address="10.99.0.20").nics[0]
    assert rewired(monkeypatch, [outer, inner], [moved, inner]) == [
        "link delete eth0",
        f"link add {moved.link} type veth"
        " peer name eth0 address fa:16:3e:00:00:01 netns 42",
        f"link set {moved.link} master external addrgenmode none up",
        "address add 10.99.0.20/24 dev eth0",
        "link set eth0 up",
        "route replace default via 10.99.0.1 dev eth0",
    ]


def test_a_port_is_unplugged(monkeypatch):
    outer, inner = host().nics[0], host(address="10.10.0.5", bridge="br-1").nics[0]
    assert rewired(monkeypatch, [outer, inner], [outer])[0] == "link delete eth1"


def test_the_default_route_goes_over_the_first_external_port():
    inner = host(address="10.10.0.5", bridge="br-1").nics[0]
    outer = host(address="10.99.0.10").nics[0]
    second = host(address="10.99.0.11").nics[0]
    assert networks.host_setup([inner, outer, second]).splitlines() == [
        "link set lo up",
        "address add 10.10.0.5/24 dev eth0",
        "link set eth0 up",
        "address add 10.99.0.10/24 dev eth1",
        "link set eth1 up",
        "address add 10.99.0.11/24 dev eth2",
        "link set eth2 up",
        "route replace default via 10.99.0.1 dev eth1",
    ]


def test_a_host_without_external_port_has_no_default_route():
    inner = host(address="10.10.0.5", bridge="br-1").nics[0]
    assert "default" not in networks.host_setup([inner])


def test_a_cloud_that_is_not_prepared_says_so(tmp_path):
    with pytest.raises(CloudError, match="run prepare"):
        Settings.load(tmp_path)


def test_an_unknown_role_is_refused(tmp_path):
    settings = Settings(tmp_path, tmp_path, (), tmp_path, tmp_path)
    settings.layer("common").mkdir(parents=True)
    with pytest.raises(CloudError, match="No file layer for role vm"):
        settings.layers("vm")


PUBLIC_KEY = "ssh-ed25519 AAAA lab\n"


def test_who_has_no_password_logs_in_with_the_key(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "hashed_password", lambda password: "$6$hash")
    monkeypatch.setattr(base, "own", lambda tree, owner: None)
    accounts = (base.Account("ubuntu", "ubuntu"), base.KEYED)
    base.make_accounts(tmp_path, accounts, PUBLIC_KEY)
    (keys,) = tmp_path.glob("home/*/.ssh/authorized_keys")
    assert keys.parts[-3] == "keyed"
    assert (keys.read_text(), keys.stat().st_mode & 0o777) == (PUBLIC_KEY, 0o600)
    assert "keyed:*:" in (tmp_path / "etc/shadow").read_text()


def test_a_host_key_is_kept_with_the_state(tmp_path):
    """The layers lie in memory, and who knows the host's key outlives them."""
    settings = Settings(tmp_path, tmp_path, (), tmp_path, tmp_path)
    key = settings.layer("server") / base.HOST_KEY
    base.make_host_key(settings, "server")
    first = key.read_text()
    assert key.stat().st_mode & 0o777 == 0o600
    shutil.rmtree(settings.base)
    base.make_host_key(settings, "server")
    assert key.read_text() == first
    base.make_host_key(settings, "other")
    assert (settings.layer("other") / base.HOST_KEY).read_text() != first


def test_no_password_of_the_machine_gets_into_a_host(tmp_path, monkeypatch):
    root, layer = tmp_path / "root", tmp_path / "layer"
    base.write(
        root / "etc/passwd",
        "root:x:0:0::/root:/bin/sh\nann:x:1001:1001::/home/ann:/bin/sh\n",
    )
    base.write(root / "etc/group", "root:x:0:\nann:x:1001:\n")
    base.write(root / "etc/skel/.profile", "umask 027\n")
    monkeypatch.setattr(base, "hashed_password", lambda password: "$6$hash")
    owned = {}
    monkeypatch.setattr(base, "own", lambda tree, owner: owned.update({tree: owner}))
    accounts = (base.Account("ubuntu", "ubuntu"), base.Account("other", "other"))
    base.make_accounts(layer, accounts, PUBLIC_KEY, root)
    shadow = (layer / "etc/shadow").read_text().splitlines()
    assert [line.split(":")[:2] for line in shadow] == [
        ["root", "*"],
        ["ubuntu", "$6$hash"],
        ["other", "$6$hash"],
    ]
    passwd = (layer / "etc/passwd").read_text().splitlines()
    assert [line.split(":")[2] for line in passwd] == ["0", "1000", "1001"]
    homes = {"ubuntu": 1000, "other": 1001}
    assert owned == {layer / "home" / name: uid for name, uid in homes.items()}
    assert (layer / "etc/shadow").stat().st_mode & 0o777 == 0o600
    assert (layer / "home/other/.profile").read_text() == "umask 027\n"


RULES = (
    "ubuntu ALL=(ALL:ALL) NOPASSWD: ALL\n",
    "installer ALL=(ALL:ALL) ALL\n",
)


@pytest.mark.parametrize(
    ("accounts", "rules"),
    [
        pytest.param(base.VM_ACCOUNTS, ["".join(RULES)], id="vm"),
        pytest.param((base.Account("ansible", "ansible"),), [], id="no-sudo"),
    ],
)
def test_sudo_is_for_the_configured_users(tmp_path, monkeypatch, accounts, rules):
    monkeypatch.setattr(base, "hashed_password", lambda password: "$6$hash")
    monkeypatch.setattr(base, "own", lambda tree, owner: None)
    base.make_accounts(tmp_path, accounts, PUBLIC_KEY)
    assert [path.read_text() for path in tmp_path.glob("etc/sudoers.d/*")] == rules


# --- images, and what cloud-init does at the first start


@pytest.mark.parametrize(
    ("given", "role"),
    [
        ({"image": "ubuntu-24.04-server-cloudimg-amd64"}, STOCK),
        ({"image": PREPARED}, VM),
        ({"role": "ansible-server"}, "ansible-server"),
        ({}, VM),
    ],
)
def test_the_image_decides_what_a_vm_is(given, role):
    assert hosts.Host.from_document({**document(), **given}).role == role


@pytest.fixture
def image(tmp_path, monkeypatch):
    """The file layers of a stock image."""
    monkeypatch.setattr(base, "own", lambda tree, owner: None)
    image, common = tmp_path / "stock", tmp_path / "common"
    base.make_accounts(image, (base.STOCK_ACCOUNT,), "")
    boot.refuse_passwords(image)
    return (image, common)


def test_a_stock_image_admits_no_login(image):
    stock, _ = image
    assert _of_passwords(stock) == ["PasswordAuthentication no\n"]
    assert list(stock.glob("home/*/.ssh")) == []
    assert "ubuntu:*:" in (stock / "etc/shadow").read_text()
    assert "ubuntu ALL=(ALL:ALL) NOPASSWD: ALL\n" in (
        (stock / "etc/sudoers.d/90-cloud-init-users").read_text()
    )


def test_the_key_pair_is_the_only_way_in(tmp_path, image):
    layer = tmp_path / "first"
    boot.make_first_start_layer(layer, image, PUBLIC_KEY, {})
    keys = layer / "home/ubuntu/.ssh/authorized_keys"
    assert (keys.read_text(), keys.stat().st_mode & 0o777) == (PUBLIC_KEY, 0o600)
    assert not (layer / "etc").exists()


@pytest.mark.parametrize("locked", [False, True])
def test_user_data_give_the_images_user_a_password(tmp_path, image, locked):
    sample = yaml.safe_load((parts.samples() / "cloud-init.yaml").read_text())
    sample["user"] |= {"hashed_passwd": "$6$word", "lock_passwd": locked}
    layer = tmp_path / "first"
    boot.make_first_start_layer(layer, image, "", sample)
    shadow = layer / "etc/shadow"
    assert shadow.exists() is not locked
    if not locked:
        assert "ubuntu:$6$word:" in shadow.read_text()
        assert shadow.stat().st_mode & 0o777 == 0o600
    assert _of_passwords(layer, image[0]) == [
        *("PasswordAuthentication yes\n", "PasswordAuthentication no\n"),
    ]


def _of_passwords(*layers):
    """The settings of sshd, in the order in which it reads them, before its own."""
    assert base.SSHD_CONFIG.startswith("Include /etc/ssh/sshd_config.d/*.conf\n")
    found = {
        path.name: path.read_text()
        for layer in layers
        for path in (layer / base.SSHD_SETTINGS).iterdir()
    }
    return [found[name] for name in sorted(found)]
