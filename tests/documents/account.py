# SPDX-License-Identifier: Apache-2.0
"""Where each command of the guides is run, or why it is not.

Each command is matched by exactly one pattern, of the kind that file names have. One
that no pattern matches fails tests/unit/documents/test_account.py, and so does one more
or less that is not run.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from tests.documents.blocks import Command, commands

#: In a directory with the samples, without a lab: tests/unit/documents.
LOCAL = (
    "tacker-k8s-mgmt csar *",
    "tacker-k8s-mgmt params *",
    "tacker-k8s-mgmt inventory *",
    "tacker-k8s-mgmt request init --api v2 -o *",
    "tacker-k8s-mgmt request init --offline *",
    "tacker-k8s-mgmt request init --package simple.zip *",
    "tacker-k8s-mgmt --version",
    "cp -r samples mysite",
    "cp -r samples/v2 mysite",
    "mkdir -p mysite/*",
    "cp -r samples/applications/notes *",
    "cp -r samples/hot/specification/. mysite/hot/simple",
    "sed * samples/cloud-init.yaml > cloud-init.yaml",
    "python -c *entry_points*",
)

#: Programs of this project that make a laboratory, enter one or end it, or prepare a
#: server of a site. Their own tests run them; here their words are held against what
#: they take: tests/unit/documents.
READ = (
    "make *",
    "sudo python3 -m lab *",
    "python3 -m lab chaos *",
    "python3 -m benchmarks*",
    "./prepare_ansible_server.sh *",
)

#: In the lab, by the scene of an integration test that runs them one after the other.
LAB: Mapping[str, tuple[str, ...]] = {
    "default VIM": ("openstack vim register *", "openstack vim list"),
    "package made": ("openstack vnf package create",),
    "package filled": (
        "openstack vnf package upload --path simple.zip ID",
        "openstack vnf package show ID",
    ),
    "package in one line": ("openstack vnf package upload --path simple.zip $(*)",),
    "instance made": ("openstack vnflcm create VNFD_ID --name my-cluster *",),
    "instance deleted": ("openstack vnflcm delete VNF_A *",),
    "instantiation": (
        "openstack vnflcm instantiate VNF_INSTANCE_ID instantiate.json *",
    ),
    "following": (
        "tacker-k8s-mgmt runs follow VNF_INSTANCE_ID --wait 600",
        "tacker-k8s-mgmt runs follow 7b5e0f0a-* --wait 600",
    ),
    "looking": (
        "openstack vnflcm op list *",
        "openstack vnflcm op show OPERATION_ID *",
        "openstack vnflcm show VNF_INSTANCE_ID *",
        "tacker-k8s-mgmt runs list*",
        "tacker-k8s-mgmt runs show *",
        "tacker-k8s-mgmt runs pages timelines",
        "tacker-k8s-mgmt runs metrics*",
        "tacker-k8s-mgmt cluster check *",
        "tacker-k8s-mgmt cluster list*",
        "tacker-k8s-mgmt cluster show *",
        "tacker-k8s-mgmt cluster labels *",
        "tacker-k8s-mgmt preflight *",
        "sudo --preserve-env=* preflight *",
        "ssh-keyscan *",
    ),
    "planned": ("tacker-k8s-mgmt cluster plan *",),
    "kubeconfig": (
        "umask 077",
        "ssh ubuntu@CONTROL_PLANE sudo cat *",
        "kubectl --kubeconfig my-cluster.conf config *",
        "kubectl --kubeconfig my-cluster.conf get *",
        "tacker-k8s-mgmt cluster kubeconfig 7b5e0f0a-*",
        "tacker-k8s-mgmt cluster access 7b5e0f0a-*",
    ),
    "kubeconfig as root": (
        'sudo "$(command -v tacker-k8s-mgmt)" cluster kubeconfig *',
    ),
    "load balancer": (
        "scp install_external_lb.sh ubuntu@LOAD_BALANCER:",
        "ssh ubuntu@LOAD_BALANCER * expose web *",
        "ssh ubuntu@LOAD_BALANCER * status",
        "ssh ubuntu@LOAD_BALANCER * unexpose web",
    ),
    "secret": (
        "umask 077; cat > password *",
        "truncate -s -1 password *",
        "openstack secret store --name workers --file password *",
        "rm password",
    ),
    "retry": ("openstack vnflcm op retry OPERATION_ID *",),
    "cancel": ("openstack vnflcm op cancel OPERATION_ID",),
    "stack updated": (
        "openstack stack update --existing --wait vnflcm_VNF_INSTANCE_ID",
    ),
    "verb heal": ("tacker-k8s-mgmt cluster heal *",),
    "verb scale-out": ("tacker-k8s-mgmt cluster scale * --workers +1",),
    "verb scale-in": ("tacker-k8s-mgmt cluster scale * --workers -1",),
    "verb label": ("tacker-k8s-mgmt cluster label *",),
    "verb taint": ("tacker-k8s-mgmt cluster taint *",),
    "verb maintenance": ("tacker-k8s-mgmt cluster maintenance begin *",),
    "verb end of the maintenance": ("tacker-k8s-mgmt cluster maintenance end *",),
    "verb upgrade": ("tacker-k8s-mgmt cluster upgrade *",),
    "verb retry": ("tacker-k8s-mgmt cluster retry *",),
    "verb rollback": ("tacker-k8s-mgmt cluster rollback *",),
    "verb fail": ("tacker-k8s-mgmt cluster fail *",),
    "heal of a VNFC": ("openstack vnflcm heal --cause * -- VNF_INSTANCE_ID",),
    "heal by the VNFC's server": (
        "openstack vnflcm heal * --vnfc-instance workerNode-*",
    ),
    "heal of the VNF": ("openstack vnflcm heal VNF_INSTANCE_ID --os-*",),
    "scale-out": ("openstack vnflcm scale --type SCALE_OUT * 1 VNF_INSTANCE_ID *",),
    "scale-in": ("openstack vnflcm scale --type SCALE_IN * 1 VNF_INSTANCE_ID *",),
    "settings": ("openstack vnflcm update VNF_INSTANCE_ID --I labels.json *",),
    "maintenance": ("openstack vnflcm update VNF_INSTANCE_ID --I maintenance.json *",),
    "end of the maintenance": (
        "openstack vnflcm update VNF_INSTANCE_ID --I maintenance-end.json *",
    ),
    "applications": (
        "openstack vnflcm update VNF_INSTANCE_ID --I applications.json *",
    ),
    "applications seen": (
        "tacker-k8s-mgmt app list *",
        "tacker-k8s-mgmt app show *",
    ),
    "tenants": ("openstack vnflcm update VNF_INSTANCE_ID --I tenants.json *",),
    "tenants listed": ("tacker-k8s-mgmt tenant list *",),
    "login of a tenant": ("tacker-k8s-mgmt tenant access *",),
    "other network": (
        "openstack vnflcm change-ext-conn VNF_INSTANCE_ID change-ext-conn.json *",
    ),
    "CNF's package filled": ("openstack vnf package upload --path web.zip PACKAGE_ID",),
    "CNF's package shown": ("openstack vnf package show PACKAGE_ID *",),
    "CNF's request": (
        "tacker-k8s-mgmt cluster access my-cluster -o access.json",
        "python3 -c 'import json, sys*",
    ),
    "CNF made": ("openstack vnflcm create VNFD_ID --name web *",),
    "CNF instantiated": (
        "openstack vnflcm instantiate CNF_ID web.json *",
        "tacker-k8s-mgmt runs follow my-cluster --wait 600",
    ),
    "CNF asked": ("curl http://LOAD_BALANCER:8000/",),
    "CNF exposed otherwise": ("openstack vnflcm update CNF_ID --I exposure.json *",),
    "end of a CNF": ("openstack vnflcm terminate VNF_B *",),
    "CNF deleted": ("openstack vnflcm delete VNF_B *",),
    "end of the cluster": ("openstack vnflcm terminate VNF_A *",),
    "etcd": (
        *("set -a; . /etc/etcd.env; set +a", "etcdctl member *"),
        *("etcdctl endpoint health --cluster", "etcdctl endpoint status *"),
    ),
    "v2 package filled": (
        "openstack vnf package upload --path simple-v2.zip PACKAGE_ID",
    ),
    "v2 secret": ("openstack secret store --name workers --file password.txt *",),
    "v2 token": ("kubectl -n kube-system get secret *",),
    "v2 scale-out with parameters": (
        "openstack vnflcm scale * --additional-param-file *",
    ),
    "v2 other package": ("openstack vnflcm change-vnfpkg * change-vnfpkg.json *",),
    "v2 upgrade": ("openstack vnflcm change-vnfpkg * upgrade.json *",),
    "v2 stack updated": (
        "openstack stack update --existing --wait vnf-VNF_INSTANCE_ID",
    ),
    "automatic operations enabled": (
        "openstack vnflcm update VNF_INSTANCE_ID --I enable.json *",
    ),
    "ids of servers": ("kubectl get nodes -o custom-columns=*",),
    "heal by an alert": ("curl * @heal-alert.json *http://TACKER/alert/auto_healing",),
    "scale-out by an alert": (
        "curl * @scale-alert.json *http://TACKER/alert/auto_scaling",
    ),
}

#: Nowhere, by the reason.
NOT_RUN: Mapping[str, tuple[str, ...]] = {
    "needs the Internet": (
        "sudo apt-get install *",
        "git clone *",
        "python3 -m venv kubespray-*",
        "kubespray-2.31-venv/bin/*",
        "curl -LO https://*",
        "tar -xzf v2.31.0.tar.gz *",
        "pip download *",
        "python3 -m lab pins *",
    ),
    "installs what the tests run with; `python3 -m lab install` does the same": (
        "pip install '.[[]csar]'*",
        "pip install '.[[]cloud]'",
        "pip install --upgrade *",
        "pip install --constraint *",
        "pip install --force-reinstall *",
        "/opt/tacker/bin/pip install *",
        "python3 -m pip list --format=freeze > installed.txt",
        "sudo python3 -m pip install *",
    ),
    "makes things in a real cloud, or logs in to a real host": (
        *("openstack image create *", "openstack flavor create *"),
        "ssh -i kubernetes *",
        "tacker-k8s-mgmt request init ha *",
    ),
    "needs a package of the reader's own": (
        "tacker-k8s-mgmt request init --package mine.zip *",
    ),
    "installs into a site's OpenStack, in its own way": (
        "podman build *",
        "openstack-ansible *",
    ),
    "serves until it is stopped, as in tests/unit/tools/cli/test_runs_pages.py": (
        "tacker-k8s-mgmt runs pages --serve *",
    ),
    "needs systemd, which a lab has not": ("systemctl restart tacker-conductor",),
    "ends the API of a cluster, and needs the real etcd and kubelet": (
        "etcdctl snapshot save *",
        "etcdutl *",
        "mv /etc/kubernetes/manifests*",
        'mv "$ETCD_DATA_DIR*',
        "chown -R --reference=*",
        "systemctl stop etcd",
        "systemctl start etcd",
        "systemctl restart kubelet",
    ),
    "needs an aspect that scales by several VMs, which no sample has": (
        "openstack stack resource *",
    ),
    "needs the real programs, which take long to build": (
        "export KUBERNETES_BIN=*",
        "/var/cache/tacker-k8s-lab/envs/tacker-*/bin/python -m pytest tests/real/*",
    ),
    "needs pods, and an image to store, which a lab has not": (
        "kubectl -n kube-system port-forward service/registry *",
        "docker push localhost:5000/*",
    ),
    "changes /etc of the machine, and wants a user tacker": ("install -* -o tacker *",),
    "needs a program that receives notifications": ("openstack vnflcm subsc create *",),
    "needs a Nova that makes key pairs, which a lab has not": (
        "ssh-keygen -t ed25519 *",
        "openstack keypair create *",
    ),
}


def everywhere() -> Mapping[str, tuple[str, ...]]:
    """Every pattern, by the place or the reason."""
    return {"local": LOCAL, "read": READ, **LAB, **NOT_RUN}


def matching(patterns: tuple[str, ...]) -> list[Command]:
    """The commands that these patterns match, in the patterns' order."""
    return [
        command
        for pattern in patterns
        for command in commands()
        if fnmatchcase(command.text, pattern)
    ]
