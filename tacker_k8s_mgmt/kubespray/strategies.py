# SPDX-License-Identifier: Apache-2.0
"""Ansible strategies for playbook runs: which works with which ansible-core.

``k8s_linear`` is the driver's own (``remote/ansible/run_files/k8s_linear.py``). It
calls the ``TaskExecutor`` that Ansible's process for a task would call, so it depends
on ``executor/task_executor.py``, ``executor/process/worker.py`` and
``plugins/strategy/__init__.py`` of ansible-core. In 2.15 to 2.18 these agree in what it
uses; in 2.19 the arguments are others, and strategies outside of ansible-core are
deprecated (``plugins/loader.py``), without a release in which they end. No release of
kubespray in :data:`.releases.RELEASES` takes 2.19.

mitogen has connections and module calls of its own. 0.3.54 states no highest
ansible-core (``ansible_mitogen/loaders.py``); :data:`MITOGEN` is what was tested.
"""

from collections.abc import Mapping

from tacker_k8s_mgmt.model.network_plugins import Minor, minor

#: The versions of ansible-core in which k8s_linear has the outcome of linear.
CORES: tuple[Minor, ...] = ((2, 15), (2, 16), (2, 17), (2, 18))
#: The versions of mitogen, and those of ansible-core that each was tested with.
MITOGEN: Mapping[str, tuple[Minor, ...]] = {"0.3.54": CORES}


def variables() -> Mapping[str, str]:
    """The tables as ``run_files/run.sh`` gets them."""
    cores = [f"{major}.{least}" for major, least in CORES]
    known = [
        f"{version}/{major}.{least}"
        for version, tested in MITOGEN.items()
        for major, least in tested
    ]
    return {"K8S_MGMT_CORES": " ".join(cores), "K8S_MGMT_MITOGENS": " ".join(known)}


def chosen(
    wanted: str, core: str | None, mitogen: str = "", configured: str = ""
) -> str:
    """The strategy that ``run_files/run.sh`` chooses, in words.

    :param wanted: the request's ``ansible.strategy``.
    :param core: the version of ansible-core; None if it is not known.
    :param mitogen: its version in Ansible's Python environment; "" without it.
    :param configured: the strategy of Ansible's configuration; "" for its default.
    """
    if wanted in ("configured", "auto") and configured:
        return f"{configured}, as the configuration of the Ansible server has it"
    if wanted in ("configured", "linear"):
        return "linear"
    if core is None or minor(core) not in CORES:
        at = core or "of this server"
        return f"linear: k8s_linear is not tested with ansible-core {at}"
    if wanted == "k8s_linear":
        return wanted
    if not mitogen:
        return "k8s_linear, without mitogen, which is not installed"
    if minor(core) in MITOGEN.get(mitogen, ()):
        return f"k8s_linear with mitogen {mitogen}"
    return (
        f"k8s_linear, without mitogen: mitogen {mitogen} is not known to work with "
        f"ansible-core {core}"
    )
