# SPDX-License-Identifier: Apache-2.0
"""What is broken in a campaign: faults, by name; who breaks it is elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos import operations

#: When a fault comes, see :class:`.plan.Step`.
BEFORE, DELAYED, AT, PAST, AFTER = "before", "delayed", "at", "past", "after"
#: While an operation is under way, which most faults are about.
DURING = (DELAYED, AT, PAST)
#: The laboratories: with stand-ins for kubespray and Kubernetes, and with real ones.
QUICK, REAL = "quick", "real"


@dataclass(frozen=True)
class Fault:
    """A fault.

    :param what: in the doc's and the page's words.
    :param moments: when it makes sense.
    :param seconds: how long something is away; 0: it is back at once, or stays so.
    :param operations: those that it is meant for; (): every one.
    :param steps: those of the journal at which it makes sense; (): every one.
    :param lasts: until the operation rests.
    :param labs: the laboratories in which there is what it breaks.
    """

    what: str
    moments: tuple[str, ...] = DURING
    seconds: tuple[int, ...] = (0,)
    operations: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    lasts: bool = False
    labs: tuple[str, ...] = (QUICK, REAL)


_SCALING = ("scale out", "scale in", "heal worker")
_JOINING = ("instantiate", "scale out", "heal worker", "heal VNF")
_PLAYING = (*_JOINING, "scale in", "heal control plane")
_DRAINING = ("scale in", "heal worker", "maintenance")
_ON_VMS = (*_SCALING, "heal load balancer", "heal control plane")
_OBJECTS = (*_DRAINING, "change tenants", "change applications")
_INSTALLING = (
    *(operations.INSTALL, operations.FACTS, operations.JOIN),
    operations.JOIN_CONTROL_PLANES,
)
_PLAYBOOKS = (*_INSTALLING, operations.REMOVE)
_STANDING = tuple(
    name
    for name in operations.OPERATIONS
    if name not in (operations.FIRST, operations.LAST, "heal VNF")
)
#: A service's fault is its name and what becomes of it.
SERVICES = {
    "tacker-server": "Tacker's API",
    "heat-engine": "Heat's engine",
    "heat-api": "Heat's API",
    "keystone": "Keystone",
    "barbican": "Barbican",
    "rabbitmq": "RabbitMQ",
    "mariadb": "MariaDB",
}
_FILES = {
    "hosts.yaml": "the inventory",
    "vars.json": "the variables of playbooks",
    "joined.json": "the list of joined nodes",
    "machines.json": "the list of machines",
    "services.json": "the list of exposed services",
    "known_hosts": "the host keys of the VMs",
}
_VMS = {
    "worker": "a worker's",
    "control plane": "the control plane's",
    "load balancer": "the load balancer's",
}
_ALWAYS = (BEFORE, *DURING)


def _real(
    what: str,
    seconds: tuple[int, ...] = (0,),
    moments: tuple[str, ...] = _ALWAYS,
) -> Fault:
    return Fault(what, moments, seconds, _STANDING, labs=(REAL,))


def _until_it_ends(
    what: str, on: tuple[str, ...], labs: tuple[str, ...] = (QUICK, REAL)
) -> Fault:
    what = f"{what}, until the operation has ended"
    return Fault(what, (BEFORE,), (0,), on, lasts=True, labs=labs)


#: Of parts that are stand-ins elsewhere.
_REAL_FAULTS = {
    **{
        f"{name} away": Fault(
            f"the mirror of {what} is away, until the operation has ended",
            *((AT,), (0,), _JOINING, _INSTALLING),
            lasts=True,
            labs=(REAL,),
        )
        for name, what in {"files": "kubespray's files", "registry": "images"}.items()
    },
    "kubelet away": _real("a worker's kubelet is stopped for a while", (15, 60)),
    "kubelet killed": _real("a worker's kubelet is killed"),
    "containerd away": _real("a worker's containerd is stopped for a while", (10, 30)),
    "containerd killed": _real("a worker's containerd is killed"),
    "etcd away": _real("etcd is stopped for a while", (6, 20), DURING),
    "etcd killed": _real("etcd is killed", (0,), DURING),
    "control plane full": _real(
        "the control plane's disk is full for a while", (20,), DURING
    ),
    "API server killed": _real("kube-apiserver is killed", (0,), DURING),
    "controller manager killed": _real(
        "kube-controller-manager is killed", (0,), DURING
    ),
}

FAULTS: Mapping[str, Fault] = {
    "none": Fault("no fault", (BEFORE,)),
    "conductor killed": Fault("the conductor is killed and started again"),
    "conductor away": Fault(
        "the conductor is killed, and started 30 s later", DURING, (30,)
    ),
    "conductor restarted": Fault("the conductor is stopped and started again"),
    "conductor frozen": Fault("the conductor does nothing for 30 s", DURING, (30,)),
    "second conductor": Fault(
        "the conductor is killed while a second one takes work, and started 20 s later",
        DURING,
        (20,),
    ),
    **{
        f"{name} restarted": Fault(f"{what} is restarted", _ALWAYS)
        for name, what in SERVICES.items()
    },
    **{
        f"{name} away": Fault(f"{what} is killed, and started later", DURING, (8, 20))
        for name, what in SERVICES.items()
    },
    **{
        f"{name} frozen": Fault(
            f"{what} takes connections and does not answer for a while", DURING, (8, 20)
        )
        for name, what in SERVICES.items()
    },
    "Ansible server cut": Fault(
        "the Ansible server is without network for a while", _ALWAYS, (5, 20)
    ),
    "Ansible server rebooted": Fault(
        "every process of the driver's user on the Ansible server is killed",
        (AT,),
        (0,),
        _PLAYING,
        _PLAYBOOKS,
    ),
    "Ansible killed": Fault(
        "ansible-playbook is killed", (AT,), (0,), _PLAYING, _PLAYBOOKS
    ),
    "Ansible server full": Fault(
        "its disk is full, until the operation has ended",
        (BEFORE,),
        (0,),
        _STANDING,
        lasts=True,
        labs=(QUICK,),
    ),
    "Ansible server greets": Fault(
        "logins on it print a greeting, in another locale",
        (BEFORE,),
        (0,),
        _STANDING,
        lasts=True,
    ),
    "Ansible server strict": Fault(
        "its SSH server allows few sessions, until the operation has ended",
        (BEFORE,),
        (0,),
        _STANDING,
        lasts=True,
        labs=(QUICK,),
    ),
    **{
        f"{name} {state}": Fault(f"{what} is {state}", (BEFORE,), (0,), _STANDING)
        for name, what in _FILES.items()
        for state in ("emptied", "truncated", "deleted")
    },
    "operation.lock deleted": Fault("the cluster's lock file is deleted", DURING),
    "runs deleted": Fault(
        "the directory of playbook runs is deleted", (BEFORE,), (0,), _STANDING
    ),
    "directory deleted": Fault(
        "the cluster's directory is deleted", (BEFORE,), (0,), _SCALING
    ),
    "worker cut": Fault(
        "a worker is without network for a while", _ALWAYS, (6, 25), _STANDING
    ),
    "worker full": Fault(
        "a worker's disk is full for a while", _ALWAYS, (40,), _STANDING
    ),
    "worker stays full": _until_it_ends(
        "a worker's disk is full", (*_ON_VMS, "maintenance")
    ),
    "worker's password changed": _until_it_ends(
        "a worker takes another password", _STANDING
    ),
    "worker's clock ahead": _until_it_ends("a worker's `date` is 30 s ahead", _ON_VMS),
    "worker's clock far ahead": _until_it_ends(
        "a worker's `date` is 10 min ahead", _ON_VMS
    ),
    "Ansible server's clock ahead": Fault(
        "its `date` is an hour ahead, until the operation has ended",
        (BEFORE, AT),
        (0,),
        _PLAYING,
        _PLAYBOOKS,
        lasts=True,
    ),
    "new worker rebooted": Fault(
        "a worker that joins is rebooted, which takes so long",
        (AT,),
        (0, 15),
        _JOINING,
        (operations.INSTALL, operations.JOIN),
        labs=(QUICK,),
    ),
    "kubelet stopped": Fault(
        "a worker's kubelet is stopped for a while",
        _ALWAYS,
        (6, 25),
        _STANDING,
        labs=(QUICK,),
    ),
    "worker killed": Fault("a worker's VM is switched off", _ALWAYS, (0,), _STANDING),
    **{
        f"{name} without sshd": Fault(
            f"{what} SSH server does not answer for a while", _ALWAYS, (20,), _STANDING
        )
        for name, what in _VMS.items()
    },
    "control plane cut": Fault(
        "the control plane is without network for a while", DURING, (6, 25), _STANDING
    ),
    "control plane killed": Fault(
        "a control plane's VM is switched off", (DELAYED, AFTER), (0,), _SCALING
    ),
    "load balancer cut": Fault(
        "the load balancer is without network for a while", _ALWAYS, (6, 25), _STANDING
    ),
    "load balancer killed": Fault(
        "the load balancer's VM is switched off", _ALWAYS, (0,), _STANDING
    ),
    "HAProxy stopped": Fault(
        "HAProxy on the load balancer is stopped", _ALWAYS, (0,), _STANDING
    ),
    "API server busy": Fault(
        "kube-apiserver answers with status 429 for a while",
        DURING,
        (6, 25),
        _STANDING,
        labs=(QUICK,),
    ),
    "API server failing": Fault(
        "kube-apiserver answers with status 500 for a while",
        DURING,
        (6, 25),
        _STANDING,
        labs=(QUICK,),
    ),
    "etcd member lost": Fault(
        "etcd of a control plane is stopped and its data deleted",
        (BEFORE, AFTER),
        (0,),
        _STANDING,
        labs=(QUICK,),
    ),
    "API server away": Fault(
        "kube-apiserver is stopped for a while", DURING, (6, 25), _STANDING
    ),
    "API server frozen": Fault(
        "kube-apiserver does not answer for a while", DURING, (6, 25), _STANDING
    ),
    "playbook fails once": Fault(
        "a task of kubespray fails on the workers, once",
        (BEFORE,),
        (0,),
        _JOINING,
        lasts=True,
    ),
    "no VM": Fault(
        "the cloud builds and deletes no worker for a while",
        (BEFORE,),
        (15,),
        ("instantiate", "scale out", "heal worker"),
    ),
    "budget": Fault(
        "a PodDisruptionBudget forbids evictions, until the operation has ended",
        (BEFORE,),
        (0,),
        _DRAINING,
        lasts=True,
    ),
    "eviction fails once": Fault(
        "each pod's first eviction is answered with status 500",
        (BEFORE,),
        (0,),
        _DRAINING,
        lasts=True,
        labs=(QUICK,),
    ),
    "evictions fail": Fault(
        "evictions are answered with status 500 for a while",
        (BEFORE,),
        (20, 75),
        _DRAINING,
        labs=(QUICK,),
    ),
    "kind unreadable": _until_it_ends(
        "lists of a custom kind are answered with status 500", _OBJECTS, (QUICK,)
    ),
    "kind deprecated": _until_it_ends(
        "the API warns of a custom kind in a header", _OBJECTS, (QUICK,)
    ),
    "member marked": Fault(
        "a worker is marked unhealthy in Heat, until the operation rests",
        (BEFORE,),
        (0,),
        ("scale in", "heal worker", "heal load balancer", "heal control plane"),
        lasts=True,
    ),
    "second address": Fault(
        "the control plane's port gets one, which Neutron may list first",
        (BEFORE,),
        (0,),
        _ON_VMS,
        labs=(QUICK,),
    ),
    "stack updated": Fault(
        "the Heat stack is updated by hand, with its own values",
        (BEFORE, DELAYED, AT),
        (0,),
        _STANDING,
    ),
    "second operation": Fault(
        "another operation of the same VNF instance is sent", DURING, (0,), _STANDING
    ),
    "wrong verb": Fault(
        "a task of kubespray fails, and a verb is sent that the error does not advise",
        (BEFORE,),
        (0,),
        ("scale out", "heal worker"),
        lasts=True,
    ),
    "Node deleted": Fault(
        "a worker's Node object is deleted by hand", (BEFORE, AFTER), (0,), _STANDING
    ),
    "route deleted": Fault(
        "a worker's route is deleted by hand", (BEFORE, AFTER), (0,), _STANDING
    ),
    "worker cordoned": Fault(
        "a worker is cordoned by hand", (BEFORE, AFTER), (0,), _STANDING
    ),
    "VM deleted": Fault(
        "a worker's VM is deleted in the cloud", (BEFORE, AFTER), (0,), _STANDING
    ),
    **_REAL_FAULTS,
}
#: Faults that stop pods by themselves, whatever an operation does.
DISRUPTING = (
    *("worker cut", "worker killed", "VM deleted", "Node deleted", "worker full"),
    "worker stays full",
    *("kubelet away", "containerd away", "containerd killed"),
    *("control plane cut", "control plane killed", "control plane full"),
    *("load balancer cut", "load balancer killed", "HAProxy stopped"),
    "API server frozen",
)
#: Faults that switch a worker off for good.
WITHOUT_WORKER = ("worker killed", "VM deleted")
#: What faults begin with after which no conductor may execute an operation; the first
#: two end processes of hooks.
INTERRUPTING = ("conductor", "second conductor", "rabbitmq", "mariadb")
#: What a cluster without a load balancer does not have.
BALANCER_FAULTS = (
    *("load balancer cut", "load balancer killed", "load balancer without sshd"),
    *("route deleted", "HAProxy stopped"),
)
#: What one with a single control plane does not survive.
QUORUM_FAULTS = ("etcd member lost",)


def suits(fault: str, operation: str) -> bool:
    """Whether a fault is meant for an operation."""
    return not FAULTS[fault].operations or operation in FAULTS[fault].operations


def of_lab(lab: str) -> tuple[str, ...]:
    """The faults that a laboratory has."""
    return tuple(name for name, fault in FAULTS.items() if lab in fault.labs)
