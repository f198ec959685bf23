# SPDX-License-Identifier: Apache-2.0
"""The versions that are built, and the modules that pin them."""

import re
from pathlib import Path

import pytest

from lab import LabError
from lab import releases as stand_ins
from lab.artifacts import golang, images, mirror, releases
from lab.artifacts.golang import MODULES
from tacker_k8s_mgmt.request import structure
from tacker_k8s_mgmt.request.cluster_options import Offline
from tests.real import keystone_webhook

#: By release, what its own ``downloads`` are with flannel, containerd and Helm, without
#: nodelocaldns, as Ansible evaluates them; ``cluster.offline`` is set.
DOWNLOADS = Path(__file__).parent / "downloads"
RELEASES = list(releases.RELEASES.values())
GROUPS = {group for release in RELEASES for group in mirror.groups(release).values()}
GROUPS.add(keystone_webhook.GROUP)
# Where a group's own version is that of several modules, the first of them.
PROJECTS = {
    "kubernetes": "k8s.io/kubernetes",
    "etcd": "go.etcd.io/etcd/server/v3",
    "containerd": "github.com/containerd/containerd/v2",
    "runc": "github.com/opencontainers/runc",
    "crictl": "sigs.k8s.io/cri-tools",
    "nerdctl": "github.com/containerd/nerdctl/v2",
    "helm": "helm.sh/helm/v3",
    "cni-plugins": "github.com/containernetworking/plugins",
    "flannel-cni-plugin": "github.com/containernetworking/plugins",
    "coredns": "github.com/coredns/coredns",
    "flannel": "github.com/flannel-io/flannel",
    "registry": "github.com/distribution/distribution/v3",
    "local-path-provisioner": "github.com/rancher/local-path-provisioner",
    "cloud-provider-openstack": "k8s.io/cloud-provider-openstack",
}


@pytest.fixture(params=sorted(GROUPS, key=str), ids=lambda g: f"{g.name}-{g.version}")
def group(request):
    return request.param


@pytest.fixture(params=RELEASES, ids=lambda release: release.name)
def release(request):
    return request.param


def test_a_group_requires_its_project_in_its_version(group):
    required = re.findall(r"(?m)^\t?(?:require )?(\S+) (v\S+)", _mod(group))
    assert (PROJECTS[group.name], f"v{group.version}") in required


def test_a_group_needs_nothing_but_published_modules(group):
    """``go.sum`` pins the contents of each; a directory would have none."""
    replaced = re.findall(r"(?m)^\t(\S+) => (\S+) (v\S+)$", _mod(group))
    local = re.findall(r"=> (\.\S+)", _mod(group))
    assert len(replaced) + len(local) == _mod(group).count("=>")
    # nerdctl's test tools, which it replaces in the same way itself.
    assert local == (["../../stand_ins/tigron"] if group.name == "nerdctl" else [])
    assert all((group.module / place / "go.mod").exists() for place in local)
    sums = (group.module / "go.sum").read_text()
    required = set(re.findall(r"(?m)^\t(\S+) v", _mod(group)))
    for former, now, version in replaced:
        assert former == now
        assert former not in required or f"{now} {version}/go.mod h1:" in sums
    assert f"{PROJECTS[group.name]} v{group.version} h1:" in sums


def test_kubernetes_has_the_staging_modules_of_its_own_version(release):
    group = mirror.groups(release)["kubernetes"]
    versions = set(re.findall(r"=> \S+ (v\S+)", _mod(group)))
    assert versions == {f"v0.{group.version.removeprefix('1.')}"}


def test_there_are_no_pins_that_no_release_uses():
    kept = {path.name for path in MODULES.iterdir()}
    assert kept == {f"{group.name}-{group.version}" for group in GROUPS}


def test_the_groups_have_every_program_that_is_delivered(release):
    programs = {n for g in mirror.groups(release).values() for n in g.packages()}
    single = {file.name for file in releases.FILES if file.members is None}
    assert single <= programs
    assert {"etcd", "etcdctl", "containerd", "containerd-shim-runc-v2"} <= programs
    assert {"ctr", "crictl", "nerdctl", "bridge", "portmap", "host-local"} <= programs


def test_a_program_says_the_version_that_it_was_pinned_to(group):
    said = group.flags()[group.flags().index("-ldflags") + 1]
    if group.name not in golang.VERSIONS:
        # Theirs is in their sources, or they say none.
        assert "-X" not in said
    else:
        assert f"=v{group.version}" in said


def test_the_kubernetes_version_is_the_releases_own_default(release):
    line = release.name.rpartition(".")[0]
    assert stand_ins.RELEASES[line].default == release.wanted["kubernetes"]


def test_files_and_images_are_those_that_kubespray_asks_for(release):
    asked = (DOWNLOADS / f"{release.name}.txt").read_text().split()[2::3]
    known = {
        f"{{files_repo}}/{file.place(release.wanted[file.part])}"
        for file in releases.FILES
    }
    for image in releases.IMAGES:
        name = ":".join(image.reference(release.wanted[image.part]))
        known.add(f"{{registry_host}}/{name}")
    # Kubernetes' own images are pulled by kubeadm.
    kubeadm = {name for name in known if "/kube-" in name}
    assert known - kubeadm == set(asked)
    assert len(kubeadm) == 4


def test_each_part_has_a_version_and_a_variable_for_it(release):
    parts = {file.part for file in releases.FILES}
    parts |= {image.part for image in (*releases.IMAGES, *releases.OPTIONAL_IMAGES)}
    assert parts == set(release.wanted) == set(releases.VARIABLES)
    assert set(release.instead) < set(release.wanted)


def test_kubespray_variables_have_other_versions_and_missing_files(release):
    said = release.variables()
    for part, version in release.instead.items():
        assert version != release.wanted[part]
        assert said[releases.VARIABLES[part]] == version
    assert said["enable_dns_autoscaler"] is False


def test_files_are_where_the_driver_lets_kubespray_look():
    offline = Offline(files_repo="http://m:8080", registry_host="m:5001")
    said = structure.variables(offline)
    roots = {
        value.removeprefix("http://m:8080/")
        for name, value in said.items()
        if name.endswith("_url")
    }
    assert {file.path.partition("/")[0] for file in releases.FILES} <= roots
    # The names of images follow registry_host itself, whatever their registry is.
    repositories = {n: v for n, v in said.items() if n.endswith("_image_repo")}
    helper = repositories.pop("local_path_provisioner_helper_image_repo")
    assert set(repositories.values()) == {"m:5001"}
    assert helper in {
        f"m:5001/{image.repository}" for image in releases.OPTIONAL_IMAGES
    }


def test_an_unknown_release_is_refused_with_those_that_are_known():
    with pytest.raises(LabError, match=r"v9\.9\.9.*v2\.31\.0, v2\.30\.0"):
        releases.find("v9.9.9")


def test_flavours_of_debian_are_not_taken_for_modules(release):
    assert {"pause", "nginx"}.isdisjoint(mirror.groups(release))
    assert images.PAUSE.read_text().count("int main") == 1


def _mod(group):
    return (group.module / "go.mod").read_text()
