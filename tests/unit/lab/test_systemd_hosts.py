# SPDX-License-Identifier: Apache-2.0
"""Hosts that boot systemd, as far as nothing of them has to be made."""

import re
import subprocess
from pathlib import Path

import pytest

from lab import LabError, packages
from lab.cloud import CloudError, base, boot, networks
from lab.cloud.settings import Settings as CloudSettings
from lab.cloud.systemd import cgroups, requirements, root
from lab.settings import (
    DEFAULT_MEMORY,
    Real,
    Settings,
    bytes_of,
    choose_kind,
    load_kind,
)

V1 = """\
25 20 0:22 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
27 25 0:24 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset,clone_children
28 25 0:25 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
29 25 0:26 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
30 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
31 20 0:28 / /mnt/elsewhere rw - cgroup cgroup rw,pids
"""
V2 = "26 25 0:23 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.fixture
def lab(tmp_path):
    settings = Settings(tmp_path / "state", tmp_path / "cache")
    settings.state.mkdir()
    return settings


@pytest.mark.parametrize(
    ("text", "size"),
    [("3G", 3 * 2**30), ("1536m", 1536 * 2**20), ("4096", 4096)],
)
def test_sizes(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1G", "1.5G", "G", "3T"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is no size such as 3G"):
        bytes_of(text)


def test_a_lab_keeps_the_kind_of_its_hosts(lab):
    assert choose_kind(lab, real=True, memory=None) == Real()
    lab.cloud.mkdir()
    assert choose_kind(lab, real=False, memory=None) == Real()
    assert choose_kind(lab, real=True, memory=DEFAULT_MEMORY) == Real()
    with pytest.raises(LabError, match="boot systemd with 3221225472 bytes"):
        choose_kind(lab, real=True, memory=2**30)
    assert load_kind(lab) == Real()


def test_an_ordinary_lab_stays_one(lab):
    lab.cloud.mkdir()
    with pytest.raises(LabError, match="are ordinary"):
        choose_kind(lab, real=True, memory=None)
    assert choose_kind(lab, real=False, memory=None) is None


def test_a_lab_whose_start_was_refused_can_be_an_ordinary_one(lab):
    choose_kind(lab, real=True, memory=2**30)
    assert choose_kind(lab, real=False, memory=None) is None
    assert load_kind(lab) is None


def test_hierarchies_of_version_1_and_what_beside_them_is_of_version_2():
    found = {hierarchy.mount.name: hierarchy for hierarchy in cgroups.hierarchies(V1)}
    assert {name: one.controllers for name, one in found.items()} == {
        "cpu,cpuacct": ("cpu", "cpuacct"),
        "cpuset": ("cpuset",),
        "memory": ("memory",),
        "systemd": ("name=systemd",),
        "unified": (),
    }
    assert found["unified"].type == cgroups.V2
    groups = cgroups.HostGroups(Path("/lab"), "id", list(found.values()))
    assert groups.mounts().splitlines() == [
        "cgroup cpu,cpuacct cpu,cpuacct",
        "cgroup cpuset cpuset",
        "cgroup memory memory",
        "cgroup none,name=systemd systemd",
        "cgroup2 rw unified",
    ]


def test_the_one_hierarchy_of_version_2():
    groups = cgroups.HostGroups(Path("/lab"), "id", cgroups.hierarchies(V2))
    assert groups.mounts() == "cgroup2 rw ."


def test_missing_controllers_are_named(tmp_path):
    (said,) = cgroups.lacking(cgroups.hierarchies(V1))
    assert said.endswith("/sys/fs/cgroup: pids, blkio, devices, freezer")
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids io\n")
    (said,) = cgroups.lacking([cgroups.Hierarchy(tmp_path, cgroups.V2)])
    assert said.endswith("cgroup.controllers: cpuset")
    assert cgroups.lacking([]) == ["cgroups mounted at /sys/fs/cgroup"]


def v1_mounts(directory):
    names = ("memory", "cpuset", "name=systemd")
    for name in names:
        (directory / name).mkdir(parents=True)
    (directory / "cpuset" / "cpuset.cpus").write_text("0-1")
    (directory / "cpuset" / "cpuset.mems").write_text("0")
    return [cgroups.Hierarchy(directory / n, cgroups.V1, (n,)) for n in names]


def test_groups_of_version_1_have_a_limit_and_processors(tmp_path):
    groups = cgroups.HostGroups(Path("/a/lab"), "id", v1_mounts(tmp_path))
    groups.make(12345)
    below = "tacker-k8s-lab-a-lab/id"
    limit = tmp_path / "memory" / below / "memory.limit_in_bytes"
    assert limit.read_text() == "12345"
    assert (tmp_path / "cpuset" / below / "cpuset.cpus").read_text() == "0-1"
    assert (tmp_path / "cpuset" / below / "cpuset.mems").read_text() == "0"
    assert groups.entrances() == [
        tmp_path / name / below / "cgroup.procs"
        for name in ("memory", "cpuset", "name=systemd")
    ]


def test_groups_of_version_2_are_delegated_and_entered_beside_systemd(
    tmp_path, monkeypatch
):
    one = cgroups.Hierarchy(tmp_path, cgroups.V2)
    lab = tmp_path / cgroups.lab_group(Path("/lab"))
    # The kernel's files are there as soon as the directory is.
    (lab / "id").mkdir(parents=True)
    (lab / "id" / "memory.max").write_text("max")
    for group in (tmp_path, lab):
        (group / "cgroup.controllers").write_text("cpu memory\n")
    groups = cgroups.HostGroups(Path("/lab"), "id", [one])
    groups.make(12345)
    assert (lab / "id" / "memory.max").read_text() == "12345"
    for group in (tmp_path, lab):
        assert (group / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert groups.entrances() == [lab / "id" / "console" / "cgroup.procs"]
    assert (lab / "id" / "console").is_dir()


def test_what_the_kernel_refuses_is_reported(tmp_path):
    (tmp_path / cgroups.lab_group(Path("/lab"))).write_text("no directory")
    one = cgroups.Hierarchy(tmp_path, cgroups.V1, ("memory",))
    with pytest.raises(CloudError, match="The host's cgroups: "):
        cgroups.HostGroups(Path("/lab"), "id", [one]).make(1)


def test_groups_are_removed_with_those_that_systemd_made(tmp_path, monkeypatch):
    one = cgroups.Hierarchy(tmp_path, cgroups.V1, ("pids",))
    lab = tmp_path / cgroups.lab_group(Path("/lab"))
    for host in ("a", "b"):
        (lab / host / "system.slice" / "ssh.service").mkdir(parents=True)
    groups = cgroups.HostGroups(Path("/lab"), "a", [one])
    groups.remove()
    assert [path.name for path in lab.iterdir()] == ["b"]
    groups.remove()
    monkeypatch.setattr(cgroups, "current", lambda: [one])
    cgroups.remove_all(Path("/lab"))
    assert not lab.exists()


def test_a_group_in_which_something_runs_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroups, "REMOVAL_LIMIT", 0)
    one = cgroups.Hierarchy(tmp_path, cgroups.V1, ("pids",))
    busy = tmp_path / cgroups.lab_group(Path("/lab")) / "a" / "init.scope"
    busy.mkdir(parents=True)
    (busy / "process").touch()
    with pytest.raises(CloudError, match=r"cgroup .*/a/init\.scope: "):
        cgroups.HostGroups(Path("/lab"), "a", [one]).remove()


def test_a_command_is_in_all_groups_before_it_runs(tmp_path):
    entrances = [tmp_path / "memory", tmp_path / "pids"]
    argv = cgroups.join(entrances, ["sh", "-c", 'echo $$ "$0"', "two words"])
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    number, rest = said.split(" ", 1)
    assert rest == "two words\n"
    assert [entrance.read_text() for entrance in entrances] == [f"{number}\n"] * 2


def test_a_command_does_not_run_outside_of_its_groups(tmp_path):
    argv = cgroups.join([tmp_path / "missing" / "procs"], ["touch", tmp_path / "ran"])
    assert subprocess.run(argv, capture_output=True).returncode
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("signed", "option"),
    [
        pytest.param("/usr/share/keyrings/d.gpg", "[signed-by=", id="with a key"),
        pytest.param("$(SIGNED_BY)", "deb http", id="as apt leaves an unset field"),
    ],
)
def test_only_the_systems_own_sources_are_used(signed, option):
    lines = [
        f"Debian|bookworm|main|http://mirror/debian/|{signed}",
        f"Debian|bookworm|main|http://mirror/debian/|{signed}",
        f"Debian|bookworm-updates|contrib|http://mirror/debian/|{signed}",
        "Docker|bookworm|stable|https://elsewhere/|/etc/apt/keyrings/docker.asc",
    ]
    found = root.own_sources("\n".join(lines), "debian").splitlines()
    assert [line.split("] ")[-1].removeprefix("deb ") for line in found] == [
        "http://mirror/debian/ bookworm main",
        "http://mirror/debian/ bookworm-updates contrib",
    ]
    assert all(option in line for line in found)


def test_the_root_has_what_is_listed():
    made = root.mmdebstrap(Path("/root"), Path("/sources"), Path("/apt.conf"))
    (included,) = (word for word in made if word.startswith("--include="))
    names = included.removeprefix("--include=").split(",")
    assert {"systemd-sysv", "openssh-server", "haproxy", "conntrack"} <= set(names)
    assert not any("#" in name or " " in name for name in names)
    assert "containerd" not in names
    assert made[-2:] == ["/root", "/sources"]
    assert "--aptopt=/apt.conf" in made


def test_another_list_of_packages_is_another_root(lab, tmp_path, monkeypatch):
    before = root.path(lab)
    other = tmp_path / "packages.txt"
    other.write_text("systemd\n")
    monkeypatch.setattr(root, "PACKAGES", other)
    assert root.path(lab) != before


def test_a_root_has_no_identity_and_no_sources(tmp_path):
    kept = "etc/ssh/sshd_config"
    removed = (
        *("etc/ssh/ssh_host_rsa_key.pub", "etc/machine-id"),
        *("etc/apt/sources.list.d/0000debian.sources", "var/lib/dbus/machine-id"),
    )
    for name in (kept, *removed):
        base.write(tmp_path / name, "")
    root.clean(tmp_path)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == [tmp_path / kept]


def test_the_layer_masks_units_and_lets_users_in(tmp_path, monkeypatch):
    monkeypatch.setattr(root, "_make_modules", lambda made: None)
    made = tmp_path / "layer"
    root.make_layer(made, Path("/"))
    units = made / "etc/systemd/system"
    assert (units / "systemd-udevd.service").readlink() == Path("/dev/null")
    assert (units / "default.target").readlink().name == "multi-user.target"
    assert "DefaultTimeoutStopSec=10s" in (
        (units.parent / "system.conf.d/lab.conf").read_text()
    )
    assert "PasswordAuthentication yes" in (made / "etc/ssh/sshd_config").read_text()
    assert "GOGC" not in (made / "etc/environment").read_text()


def test_python_finds_no_modules_in_a_kernel_without_any(tmp_path):
    (tmp_path / "lab_no_modules.py").write_text(root.NO_MODULES)
    program = (
        "import lab_no_modules; print(len(open('/proc/modules').read()),"
        " open('/proc/version').read().split()[0])"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-c", program],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "0 Linux\n"


def test_the_layers_of_vms_lie_on_the_debian_root(tmp_path):
    plain = CloudSettings(tmp_path, tmp_path, (), tmp_path, tmp_path)
    plain.save()
    assert CloudSettings.load(tmp_path) == plain
    assert not plain.boots_systemd("vm")
    debian = tmp_path / "debian"
    real = CloudSettings(
        *(tmp_path, tmp_path, (), tmp_path, tmp_path),
        root=debian,
        memory=2**30,
    )
    real.save()
    assert CloudSettings.load(tmp_path) == real
    for name in ("vm", "systemd", "common", "ansible-server"):
        real.layer(name).mkdir(parents=True)
    debian.mkdir()
    assert real.layers("vm") == (real.layer("vm"), real.layer("systemd"), debian)
    assert real.boots_systemd("vm")
    assert not real.boots_systemd("ansible-server")
    assert real.layers("ansible-server")[1] == real.layer("common")


def test_a_host_gets_all_settings_that_its_scripts_read(tmp_path):
    nic = networks.Nic("external", "10.99.0.10", 24, "fa:16:3e:00:00:01", "port")
    host = boot.SystemdMachine(
        hostname="worker",
        nics=[nic],
        layers=[tmp_path / "vm", tmp_path / "root"],
        mount=tmp_path / "mnt",
        home=tmp_path / "home",
        visible=tmp_path / "cache",
        groups=cgroups.HostGroups(tmp_path, "id", cgroups.hierarchies(V1)),
    )
    given = host.environment()
    scripts = [path.read_text() for path in boot.SCRIPTS.glob("*.sh")]
    named = set(re.findall(r"\$\{?(HOST_[A-Z_]+)", "\n".join(scripts)))
    # The scripts make that one themselves.
    assert named - {"HOST_ROOT"} == set(given) - {"PATH"}
    assert given["HOST_LAYERS"] == f"{tmp_path}/vm:{tmp_path}/root"
    command = host.command()
    assert command[0] == "sh"
    assert command[command.index("unshare") :][-2:] == [
        "sh",
        str(boot.SCRIPTS / "init.sh"),
    ]
    assert "--cgroup" in command


def test_what_a_machine_lacks_is_listed_whole(monkeypatch, tmp_path):
    monkeypatch.setattr(requirements, "LOOP", tmp_path / "loop-control")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "PATH", str(tmp_path))
    found = requirements.lacking("nodev\ttmpfs\n\text4\n", [])
    assert [one.split(" (")[0].split(",")[0] for one in found] == [
        "file system overlay in the kernel",
        f"{tmp_path}/loop-control",
        "cgroups mounted at /sys/fs/cgroup",
        "apt",
    ]


def test_a_machine_that_lacks_something_is_refused_before_anything_is_made(
    lab, monkeypatch
):
    monkeypatch.setattr(requirements, "lacking", lambda *_: ["this", "that"])
    monkeypatch.setattr(packages, "install", None)
    with pytest.raises(LabError, match=r"lacks:\n  this\n  that\n") as refused:
        requirements.fulfil(lab)
    assert refused.value.code == 2


ALL, NO_RESOURCE = "CapBnd:\t000001ffffffffff\n", "CapBnd:\t000001fffeffffff\n"
OF_EVERY_HOST = {
    "enable_nodelocaldns",
    "kube_proxy_mode",
    "kube_proxy_conntrack_max_per_core",
    "kube_proxy_conntrack_min",
}
OF_V1 = {"kubelet_fail_cgroup_v1", "kubeadm_ignore_preflight_errors"}


@pytest.mark.parametrize(
    ("status", "open_files", "mounts", "more"),
    [
        pytest.param(ALL, 1024, V2, set(), id="a machine that may do everything"),
        pytest.param(ALL, 1024, V1, OF_V1, id="cgroups of version 1"),
        pytest.param(
            NO_RESOURCE,
            -1,
            V2,
            {"containerd_extra_runtime_args"},
            id="a container without CAP_SYS_RESOURCE",
        ),
        pytest.param(
            NO_RESOURCE,
            20000,
            V2,
            {
                "containerd_extra_runtime_args",
                "containerd_base_runtime_spec_rlimit_nofile",
            },
            id="the same with a limit of open files",
        ),
    ],
)
def test_variables_are_those_that_the_machine_needs(status, open_files, mounts, more):
    found = requirements.needed(status, open_files, cgroups.hierarchies(mounts))
    assert set(found) == OF_EVERY_HOST | more
