# SPDX-License-Identifier: Apache-2.0
"""The verbs of ``tacker-k8s-mgmt cluster`` over Tacker's API.

They send requests to Tacker, with the login of a cloud, and wait for the operation.
"""

import abc
import argparse
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.features.node_settings.settings import PREFIX
from tacker_k8s_mgmt.hooks.advice import FAIL, RETRY, ROLLBACK, Verb
from tacker_k8s_mgmt.hooks.instance_view import FAILED_TEMP, PARAMETERS
from tacker_k8s_mgmt.model.nodes import Role, role_of
from tacker_k8s_mgmt.model.yaml_text import mapping
from tacker_k8s_mgmt.text import short
from tacker_k8s_mgmt.tools.cli import base, host_records, plan_report
from tacker_k8s_mgmt.tools.cli.base import Command, UsageError
from tacker_k8s_mgmt.tools.cloud import client
from tacker_k8s_mgmt.tools.cloud.client import Cloud
from tacker_k8s_mgmt.tools.tacker import (
    nodes,
    packages,
    records,
    scaling,
    table,
    verbs,
    waiting,
)
from tacker_k8s_mgmt.tools.tacker.client import Request, Tacker
from tacker_k8s_mgmt.tools.tacker.records import Instance, Occurrence

_LONGEST_ERROR = 8000  # characters of Tacker's text
_COMPLETED = "COMPLETED"
_PARAMETERS = "additionalParams"
#: Options of an upgrade, and the attributes of ``ansible`` that they give.
_KUBESPRAY = {"kubespray-root-path": "kubespray_root_path", "venv-path": "venv_path"}


class _Verb(Command):
    """A verb: finds the instance, sends the request, waits for the operation."""

    exit_codes: ClassVar[str] = (
        "0 the operation has ended as it should, or was sent with --no-wait, 1 it has "
        "failed or was refused, 2 wrong input"
    )
    reports_failures = True
    #: The state in which the operation has ended as it should.
    wanted: ClassVar[str] = _COMPLETED

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        self.add_first(parser)
        parser.add_argument(
            "name", metavar="NAME", help="name or id of the VNF instance"
        )
        self.add_arguments(parser)
        parser.add_argument(
            "--print",
            action="store_true",
            help="print the request without token and passwords, and send nothing",
        )
        parser.add_argument(
            "--no-wait",
            action="store_true",
            help="end when Tacker has taken the request",
        )
        self.add_plan(parser)
        base.add_cloud(parser)
        return parser

    def add_plan(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of a plan, where there is one."""

    def add_first(self, parser: argparse.ArgumentParser) -> None:
        """Add what comes before the name."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add its own arguments."""

    @abc.abstractmethod
    def request(
        self, parsed_args: argparse.Namespace, instance: Instance
    ) -> tuple[Request, Occurrence | None]:
        """The request, and the operation that it is for if there is one already.

        :raises TackerError: Tacker would refuse it.
        """

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        args, cloud = parsed_args, self.cloud_name(parsed_args)
        if not (cloud or client.is_named()):
            raise UsageError(
                "no cloud is named: give --os-cloud, or set OS_CLOUD, or OS_AUTH_URL "
                "and the rest of a login"
            )
        with self.status("Asking …"):
            self._cloud: Cloud = client.connect(cloud)
            self._tacker = Tacker(self._cloud)
            instance = verbs.find_instance(self._tacker, args.name)
            request, former = self.request(args, instance)
        if args.print:
            base.show(request.text())
            return base.OK
        if getattr(args, "plan", False):
            return self._plan(args, instance, request)
        answer = verbs.send(self._tacker, request)
        operation = former.id if former else ""
        operation = operation or records.location_id(answer.headers.get("location", ""))
        what = f"{_task(request)} of {instance.title}"
        base.show(f"{what}: operation {operation or '(Tacker does not say which)'}")
        if args.no_wait or not operation:
            return base.OK
        mark = former.mark if former else None
        waiter = waiting.Waiting(self._tacker, instance.api, operation, base.show, mark)
        try:
            return self._ended(instance, waiter.end())
        except KeyboardInterrupt:
            base.complain(f"The operation {operation} continues in Tacker.")
            raise

    def _plan(
        self, args: argparse.Namespace, instance: Instance, request: Request
    ) -> int:
        """Show what the request would do."""
        operation = request.path.rpartition("/")[2]
        if request.method == "PATCH":
            operation = "modify"
        with self.status("Asking …"):
            body = mapping(request.body)
            found = plan_report.make(instance.id, operation, body, args.config_file)
        if args.formatter:
            base.show(json.dumps(found.document, indent=2))
        else:
            found.show()
        return found.code

    def _ended(self, instance: Instance, one: Occurrence) -> int:
        if one.state == self.wanted:
            return base.OK
        if one.error:
            base.complain(f"Tacker: {short(one.error, _LONGEST_ERROR)}")
        if one.state == FAILED_TEMP:
            found = table.advised(instance.api.name, one.kind, one.error)
            base.complain(f"Next: {verbs.ways(instance, found)}.")
        return base.PROBLEMS


def _task(request: Request) -> str:
    """What it begins, in a word: the last part of the path, which PATCH has not."""
    is_modification = request.method == "PATCH"
    return "modification" if is_modification else request.path.rpartition("/")[2]


class _Operation(_Verb):
    """A verb that begins an operation."""

    def add_plan(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of its plan."""
        parser.add_argument(
            "--plan",
            action="store_true",
            help="show what it would do, by `cluster plan`, and send nothing; for this "
            "the command has to run where `cluster check` runs",
        )
        plan_report.add_json(parser)
        host_records.add_config_file(parser)

    def request(
        self, parsed_args: argparse.Namespace, instance: Instance
    ) -> tuple[Request, None]:
        """The request, if Tacker takes an operation now."""
        verbs.ready(self._tacker, instance)
        request = self.operation(parsed_args, instance)
        verbs.refuse_wrong(instance, request)
        return request, None

    @abc.abstractmethod
    def operation(self, parsed_args: argparse.Namespace, instance: Instance) -> Request:
        """The request."""


class _Parameterized(_Operation):
    """One that may have parameters of its own."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--additional-param-file",
            metavar="FILE",
            help="JSON with additionalParams and what is in it, such as passwords that "
            "Tacker's v2 API does not keep",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Read the parameters before anything that takes time."""
        self._parameters = _parameters(parsed_args.additional_param_file)
        return super().take_action(parsed_args)


def _parameters(path: str | None) -> Mapping[str, Any]:
    """What is in ``additionalParams`` of a file.

    :raises UsageError: the file cannot be read, or has no such thing.
    """
    if path is None:
        return {}
    # Imported late: it brings the model of all parameters.
    from tacker_k8s_mgmt.tools.cli import request_input

    document = request_input.load(path)
    found = (
        document.value.get(_PARAMETERS) if isinstance(document.value, dict) else None
    )
    if not isinstance(found, dict):
        raise UsageError(f"{document.name} has no object {_PARAMETERS}")
    return found


class ClusterHeal(_Parameterized):
    """Heal nodes: Tacker rebuilds their VMs, and they join the cluster again.

    NODE is the name of a node as `cluster show` prints it, the name or id of its server
    in Nova, or the id of its VNFC; `load balancer` in quotes is the load balancer. All
    that are named are one operation.

    The login of the cloud is all that is needed, with the right to use Tacker's API and
    to list the servers.
    """

    examples = (
        "tacker-k8s-mgmt cluster heal my-cluster worker-10-10-0-5",
        "tacker-k8s-mgmt cluster heal my-cluster worker-10-10-0-5 --print",
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("nodes", metavar="NODE", nargs="+", help="what to heal")
        parser.add_argument(
            "--cause", default="", metavar="TEXT", help="for the record"
        )

    def operation(self, parsed_args: argparse.Namespace, instance: Instance) -> Request:
        found = nodes.find(instance, parsed_args.nodes, self._cloud.servers)
        vnfcs = [member.vnfc.id for member in found]
        return verbs.heal(instance, vnfcs, parsed_args.cause, self._parameters)


class ClusterScale(_Parameterized):
    """Scale the workers of a cluster.

    `--workers +2` adds two, `--workers -1` takes one away, and `--workers 5` makes five
    of them, by the number that Tacker counts. Tacker chooses those that leave. The step
    of the scaling aspect is in the VNFD, which is read from Tacker.
    """

    examples = (
        "tacker-k8s-mgmt cluster scale my-cluster --workers +2",
        "tacker-k8s-mgmt cluster scale my-cluster --workers 5 --no-wait",
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--workers",
            type=_size,
            required=True,
            metavar="NUMBER",
            help="how many more (+2), less (-1), or in all (5)",
        )
        parser.add_argument(
            "--aspect",
            metavar="NAME",
            help="the scaling aspect, where workers have several",
        )

    def operation(self, parsed_args: argparse.Namespace, instance: Instance) -> Request:
        known = scaling.aspects(self._tacker, instance)
        aspect = scaling.choose(instance, known, parsed_args.aspect)
        body = scaling.request_body(instance, aspect, parsed_args.workers)
        return verbs.scale(instance, body, self._parameters)


class ClusterUpgrade(_Parameterized):
    """Change the VNF package of a cluster, and its Kubernetes version.

    PACKAGE is the id of a VNF package, or that of its VNFD. With --kubernetes-version
    the driver has kubespray upgrade the nodes; without it, only the package changes.
    Tacker's v1 API has no such operation.
    """

    examples = (
        "tacker-k8s-mgmt cluster upgrade my-cluster PACKAGE_ID \\\n"
        "      --kubernetes-version 1.35.4",
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("package", metavar="PACKAGE", help="the id of either")
        parser.add_argument(
            "--kubernetes-version", metavar="VERSION", help="whole, such as 1.35.4"
        )
        for name, attribute in _KUBESPRAY.items():
            parser.add_argument(
                f"--{name}", metavar="PATH", help=f"ansible.{attribute}, if it changes"
            )

    def operation(self, parsed_args: argparse.Namespace, instance: Instance) -> Request:
        """The request, with the user data of the instantiation."""
        # First: the v1 API has no package to look for.
        verbs.upgrade(instance, "", {})
        vnfd_id = packages.usable_vnfd(self._tacker, parsed_args.package)
        known = verbs.user_data(self._tacker, instance)
        ours = dict(mapping(self._parameters.get(PARAMETERS[0])))
        if version := parsed_args.kubernetes_version:
            cluster = mapping(ours.get("cluster"))
            ours["cluster"] = {**cluster, "kubernetes_version": version}
        paths = {
            a: getattr(parsed_args, n.replace("-", "_")) for n, a in _KUBESPRAY.items()
        }
        if changed := {name: path for name, path in paths.items() if path}:
            ours["ansible"] = {**mapping(ours.get("ansible")), **changed}
        more = {PARAMETERS[0]: ours} if ours else {}
        return verbs.upgrade(instance, vnfd_id, {**known, **self._parameters, **more})


def _size(text: str) -> scaling.Size:
    """:raises argparse.ArgumentTypeError: it is no number of workers."""
    try:
        return scaling.size(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is no number such as +2, -1 or 5"
        ) from None


class _Setting(_Operation):
    """A verb that changes settings of nodes, entries of the metadata."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("node", metavar="NODE", help="as `cluster show` prints it")

    def operation(self, parsed_args: argparse.Namespace, instance: Instance) -> Request:
        (found,) = nodes.find(instance, [parsed_args.node], self._cloud.servers)
        if role_of(found.vnfc.vdu) is Role.LOAD_BALANCER:
            raise TackerError(detail=f"{parsed_args.node} is no node of the cluster.")
        entries = self.entries(parsed_args)
        prefix = f"{PREFIX}:vnfc:{found.vnfc.id}:"
        return verbs.modify(instance, {f"{prefix}{n}": v for n, v in entries.items()})

    @abc.abstractmethod
    def entries(self, parsed_args: argparse.Namespace) -> Mapping[str, str | None]:
        """The ends of the entries' names, with their values; None removes one."""


class ClusterLabel(_Setting):
    """Set or remove labels of a node, which it keeps when it is rebuilt.

    KEY=VALUE sets a label, and KEY- removes it. They are entries in the metadata of the
    VNF instance; `cluster labels` lists all of them.
    """

    examples = (
        "tacker-k8s-mgmt cluster label my-cluster worker-10-10-0-5 disk=ssd",
        "tacker-k8s-mgmt cluster label my-cluster worker-10-10-0-5 disk-",
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "labels", metavar="LABEL", nargs="+", type=_label, help="KEY=VALUE or KEY-"
        )

    def entries(self, parsed_args: argparse.Namespace) -> Mapping[str, str | None]:
        return {f"label:{key}": value for key, value in parsed_args.labels}


class ClusterTaint(_Setting):
    """Set or remove taints of a node, which it keeps when it is rebuilt.

    KEY=VALUE:EFFECT or KEY:EFFECT sets a taint, and KEY:EFFECT- removes it. They are
    entries in the metadata of the VNF instance; `cluster labels` lists all of them.
    """

    examples = (
        "tacker-k8s-mgmt cluster taint my-cluster worker-10-10-0-5 \\\n"
        "      dedicated=video:NoSchedule",
        "tacker-k8s-mgmt cluster taint my-cluster worker-10-10-0-5 \\\n"
        "      dedicated:NoSchedule-",
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "taints",
            metavar="TAINT",
            nargs="+",
            type=_taint,
            help="KEY=VALUE:EFFECT, KEY:EFFECT or KEY:EFFECT-",
        )

    def entries(self, parsed_args: argparse.Namespace) -> Mapping[str, str | None]:
        return {f"taint:{name}": value for name, value in parsed_args.taints}


def _label(text: str) -> tuple[str, str | None]:
    """:raises argparse.ArgumentTypeError: it is neither a label nor the end of one."""
    key, sign, value = text.partition("=")
    if key and sign:
        return key, value
    if len(text) > 1 and text.endswith("-") and not sign:
        return text[:-1], None
    raise argparse.ArgumentTypeError(f"{text} is neither KEY=VALUE nor KEY-")


def _taint(text: str) -> tuple[str, str | None]:
    """:raises argparse.ArgumentTypeError: it is neither a taint nor the end of one."""
    before, sign, effect = text.rpartition(":")
    key, _, value = before.partition("=")
    if not (sign and key and effect.strip("-")):
        raise argparse.ArgumentTypeError(
            f"{text} is neither KEY=VALUE:EFFECT nor KEY:EFFECT-"
        )
    removed = effect.endswith("-")
    return f"{key}:{effect.removesuffix('-')}", None if removed else value


class ClusterMaintenance(_Setting):
    """Take a node out of service, or into it again.

    `begin` has the node drained, tainted and taken out of the load balancer; `end`
    gives it back. It stays in maintenance when it is rebuilt.
    """

    examples = (
        "tacker-k8s-mgmt cluster maintenance begin my-cluster worker-10-10-0-5",
        "tacker-k8s-mgmt cluster maintenance end my-cluster worker-10-10-0-5",
    )

    def add_first(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("what", choices=("begin", "end"))

    def entries(self, parsed_args: argparse.Namespace) -> Mapping[str, str | None]:
        return {"maintenance": "true" if parsed_args.what == "begin" else None}


class _Handling(_Verb):
    """A verb for an operation in FAILED_TEMP."""

    verb: ClassVar[Verb]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--operation",
            metavar="ID",
            help="the operation, where several are in FAILED_TEMP",
        )

    def request(
        self, parsed_args: argparse.Namespace, instance: Instance
    ) -> tuple[Request, Occurrence]:
        """The request for the operation that has failed."""
        wanted = parsed_args.operation
        one = verbs.failed_operation(self._tacker, instance, self.verb, wanted)
        return verbs.handling(one, self.verb), one


class ClusterRetry(_Handling):
    """Have Tacker try the operation again that has failed.

    The request stays as it was: remove the cause first. What Tacker's API cannot retry
    is refused, with the verbs that it has.
    """

    examples = ("tacker-k8s-mgmt cluster retry my-cluster",)
    verb = RETRY


class ClusterRollback(_Handling):
    """Have Tacker undo the operation that has failed.

    The error of the operation says where that does harm: read it first. What Tacker's
    API cannot roll back is refused, with the verbs that it has.
    """

    examples = ("tacker-k8s-mgmt cluster rollback my-cluster",)
    verb = ROLLBACK
    wanted = verbs.WANTED[ROLLBACK]


class ClusterFail(_Handling):
    """Abandon the operation that has failed; the VMs stay as they are."""

    examples = ("tacker-k8s-mgmt cluster fail my-cluster",)
    verb = FAIL
    wanted = verbs.WANTED[FAIL]
