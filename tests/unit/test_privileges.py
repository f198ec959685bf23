# SPDX-License-Identifier: Apache-2.0
"""What the driver needs on other hosts and in the cluster is what the page says.

The page is doc/source/threats.rst. A new command as root, or a new verb of kubectl, is
a new right that an operator has to grant: it fails a test here until the page has it.
"""

import ast
import inspect
from collections.abc import Iterator

from tacker_k8s_mgmt.remote.ssh import session
from tests.helpers import source
from tests.tree import ROOT

PAGE = (ROOT / "doc" / "source" / "threats.rst").read_text()
PRODUCT = ROOT / "tacker_k8s_mgmt"
MODULES = {
    str(path.relative_to(PRODUCT).with_suffix("")): source.module(path)
    for path in sorted(PRODUCT.rglob("*.py"))
    if "run_files" not in path.parts
}
#: Where commands are run as root, and what the page says of them.
AS_ROOT = {
    "remote/kubernetes/helm.HelmHost.charts": "``runuser``, ``tar``",
    "remote/kubernetes/helm.HelmHost.prepare": "``useradd``, ``chpasswd``",
    "remote/kubernetes/helm.HelmHost.restore": "``runuser``, ``tar``",
    "features/applications/host.Charts._run": "``helm``",
    "remote/kubernetes/etcd.EtcdClient._recorded": "``/etc/etcd.env``",
    "remote/kubernetes/etcd.EtcdClient._run": "``etcdctl``",
    "remote/kubernetes/kubectl.KubeClient._run": "``kubectl``",
    "features/pod_network/measurement.PodNetwork._probe": "``python3``",
    "remote/vms.restart": "``systemctl restart kubelet``",
    "remote/node_registries.place": "``/etc/hosts``",
    "remote/balancer_vm.Balancer.call": "``bash load-balancer.sh``",
    "remote/ssh/reachability.login_problem": "``true``",
    "remote/vms.read": "``/etc/machine-id``",
}
#: The verbs of kubectl.
KUBECTL = {
    *(
        "api-resources",
        "api-versions",
        "apply",
        "config",
        "create",
        "delete",
        "drain",
        "get",
        "logs",
    ),
    *("patch", "replace", "rollout", "taint"),
}
#: The verbs of Helm.
HELM = {
    *("get", "history", "rollback", "show", "status", "template", "uninstall"),
    "upgrade",
}


def functions(
    node: ast.AST, place: tuple[str, ...] = ()
) -> Iterator[tuple[str, ast.AST]]:
    """Each function and method with its name."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef | ast.FunctionDef):
            name = (*place, inner.name)
            if isinstance(inner, ast.FunctionDef):
                yield ".".join(name), inner
            yield from functions(inner, name)


def calls(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            called = one.func
            name = called.attr if isinstance(called, ast.Attribute) else ""
            if (name or getattr(called, "id", "")) in names:
                yield one


def as_root(call: ast.Call) -> bool:
    return any(
        word.arg == "sudo" and getattr(word.value, "value", True) is not False
        for word in call.keywords
    )


def first_words(tree: ast.Module, value: ast.AST) -> set[str]:
    """The texts that an argument list may begin with."""
    if isinstance(value, ast.Constant):
        return {value.value}
    if isinstance(value, ast.Starred):
        return first_words(tree, value.value)
    if isinstance(value, ast.Tuple | ast.List):
        return first_words(tree, value.elts[0])
    if isinstance(value, ast.IfExp):
        return first_words(tree, value.body) | first_words(tree, value.orelse)
    if isinstance(value, ast.Name):
        found: set[str] = set()
        for one in ast.walk(tree):
            if isinstance(one, ast.Assign) and any(
                isinstance(name, ast.Name) and name.id == value.id
                for name in one.targets
            ):
                found |= first_words(tree, one.value)
        return found
    return set()


def test_commands_as_root_are_those_of_the_page():
    found = {
        f"{module}.{name}"
        for module, tree in MODULES.items()
        for name, function in functions(tree)
        if any(as_root(call) for call in calls(function, "run"))
    }
    assert found == set(AS_ROOT)
    missing = [place for place, text in AS_ROOT.items() if text not in PAGE]
    assert not missing, "doc/source/threats.rst does not say what they run"


def test_nothing_is_run_as_root_on_the_ansible_server_or_the_bastion():
    modules = [
        name
        for name in MODULES
        if name.startswith(("remote/ansible/", "remote/ssh/routes"))
    ]
    assert len(modules) > 3
    assert not [
        name
        for name in modules
        if any(as_root(call) for call in calls(MODULES[name], "run"))
    ]


def test_verbs_of_kubectl_are_those_of_the_page():
    found = {"get", "patch", "delete"}  # methods of the client by these names
    for module, tree in MODULES.items():
        if not module.startswith(("remote/kubernetes/", "features/")):
            continue
        for call in calls(tree, "run"):
            receiver = ast.unparse(call.func)
            if receiver.endswith("client.run"):
                words = first_words(tree, call.args[0])
                assert words, f"{module}: {ast.unparse(call)}"
                found |= words
    assert found == KUBECTL
    assert not [verb for verb in KUBECTL if f"``{verb}``" not in PAGE]


def test_verbs_of_helm_are_those_of_the_page():
    tree = MODULES["features/applications/host"]
    found = set().union(
        *(first_words(tree, call.args[0]) for call in calls(tree, "_run", "_ask"))
    )
    assert found == HELM
    assert not [verb for verb in HELM if f"``{verb}``" not in PAGE]


def test_each_remote_command_has_a_time_limit():
    limit = inspect.signature(session.Session.run).parameters["timeout"]
    assert limit.default is inspect.Parameter.empty
    unlimited = [
        f"{module}: {ast.unparse(call)}"
        for module, tree in MODULES.items()
        for call in calls(tree, "run")
        if ast.unparse(call.func).endswith(("session.run", "_session.run"))
        and not any(word.arg == "timeout" for word in call.keywords)
    ]
    assert not unlimited


def test_each_connection_of_this_host_has_a_time_limit():
    names = ("create_connection", "HTTPSConnection", "urlopen", "Popen")
    unlimited = [
        f"{path.name}: {ast.unparse(call)}"
        for path in sorted((ROOT / "tacker_k8s_mgmt").rglob("*.py"))
        for call in calls(source.module(path), *names)
        if len(call.args) < 2 and "timeout" not in {one.arg for one in call.keywords}
    ]
    assert not unlimited
