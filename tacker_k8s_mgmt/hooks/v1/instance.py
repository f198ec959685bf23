# SPDX-License-Identifier: Apache-2.0
"""A VNF instance and its requests as Tacker's v1 API has them, and what to store there.

Only this module reads and writes the fields of Tacker's objects.

Checkpoints store what Tacker keeps in memory while a hook runs. Tacker 16's v1 API
writes an operation's error point, the Heat stack's id and the scaling groups to its
database only when the operation ends (``tacker/conductor/conductor_server.py``), and
our hooks may run for an hour before:

* A killed conductor leaves the operation PROCESSING, and ``cancel`` makes it
  FAILED_TEMP with error point 0. Then Tacker refuses ``retry``, and ``rollback`` keeps
  the stack.
* When ``instantiate_end`` has failed, a ``retry`` completes the operation without the
  scaling groups, and Tacker answers every later scale request with an error.
* The error point of an operation that is over stays. A heal uses that of any operation
  of the VNF instance as its own (``openstack.py``, ``heal_vnf``), and may then replace
  no VM at all.

What the cluster's profile stood for at instantiation is kept in the metadata, as the
text of a JSON object: Tacker's v1 API keeps texts there.

Tacker passes the request that modifies a VNF instance to no hook. Tacker 16 stores it
with the operation, as the text of a Python value (``VnfLcmController.update``). Where
the API shows the operation it expects JSON, and answers with an error 500
(``views/vnf_lcm.py``), so the text is corrected.
"""

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from oslo_log import log as logging
from oslo_utils import uuidutils
from sqlalchemy.orm import Session
from tacker import context as tacker_context
from tacker import manager, objects
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import api, models
from tacker.objects import fields
from tacker.plugins.common import constants
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt.hooks.instance_view import ENDED, has_parameters
from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.request.profile_document import ResolvedProfile
from tacker_k8s_mgmt.topology.connection_points import Attachment

LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: ``retry`` begins with the ``_start`` hook.
START_POINT = fields.ErrorPoint.VNF_CONFIG_START
#: ``retry`` updates the existing stack, and continues.
STACK_POINT = fields.ErrorPoint.POST_VIM_CONTROL
#: ``retry`` calls the ``_end`` hook, nothing before it; ``rollback`` deletes the VMs.
END_POINT = fields.ErrorPoint.VNF_CONFIG_END

VIM_TYPE = "kubernetes"
#: In the metadata of a VNF instance: the id of the cluster's VIM.
VIM_KEY = "k8s_mgmt_vim_id"
PROFILE_KEY = "k8s_mgmt_profile"
_LOGIN_VIM_KEY = "k8s_mgmt_login_vim"
_LOGIN_REGION_KEY = "k8s_mgmt_login_region"

_PROCESSING = fields.LcmOccsOperationState.PROCESSING
# Without a constant in Tacker, as some of ENDED.
_ROLLING_BACK = "ROLLING_BACK"
_FORCEFUL = "FORCEFUL"


def find(context: Any, vnf_id: str) -> "V1Instance":
    """The VNF instance of an id.

    :raises VnfInstanceNotFound: of Tacker; there is none.
    """
    return V1Instance(context, objects.VnfInstance.get_by_id(context, vnf_id))


def every(context: Any) -> Iterator["V1Instance"]:
    """The VNF instances of all projects.

    :param context: of an administrator.
    """
    for record in objects.VnfInstanceList.get_all(context):
        yield V1Instance(context, record)


def ids_of_name(context: Any, name: str) -> list[str]:
    """Ids of the VNF instances of this name."""
    field = {"model": "VnfInstance", "field": "vnf_instance_name"}
    found = objects.VnfInstanceList.get_by_filters(
        context, {**field, "op": "==", "value": name}
    )
    return [str(one.id) for one in found.objects]


class V1Instance:
    """A VNF instance.

    :param context: of the request.
    :param record: Tacker's ``VnfInstance``; Tacker stores it after an operation.
    """

    def __init__(self, context: Any, record: Any) -> None:
        self.context = context
        self.record = record

    @property
    def vnf_id(self) -> str:
        return str(self.record.id)

    @property
    def name(self) -> str:
        return str(getattr(self.record, "vnf_instance_name", "") or "")

    @property
    def project(self) -> str:
        """The id of its project."""
        return str(self.record.tenant_id or "")

    @property
    def state(self) -> str:
        """Tacker's ``instantiationState``."""
        return str(self.record.instantiation_state)

    def package(self) -> str:
        """The directory of the VNF package."""
        vnfd_id = self.record.vnfd_id
        return str(vnflcm_utils._get_vnf_package_path(self.context, vnfd_id))

    # The instantiation

    @property
    def info(self) -> Any:
        """Tacker's ``InstantiatedVnfInfo``; None if it is not instantiated."""
        return self.record.instantiated_vnf_info

    @property
    def parameters(self) -> Any:
        """``additionalParams`` of the instantiation, as Tacker keeps them."""
        return self.info.additional_params if self.info is not None else None

    @property
    def is_cluster(self) -> bool:
        """Whether it was instantiated with our parameters, valid or not."""
        return has_parameters(self.parameters)

    @property
    def stack_id(self) -> str:
        """The id of the Heat stack; "" if there is none."""
        return str((self.info.instance_id if self.info else "") or "")

    @property
    def flavour(self) -> str:
        """The id of the deployment flavour."""
        return str(self.info.flavour_id)

    def vnfd(self) -> Any:
        """The VNFD of its flavour, as Tacker reads it."""
        vnfd_id = self.record.vnfd_id
        return vnflcm_utils.get_vnfd_dict(self.context, vnfd_id, self.flavour)

    @property
    def vnfcs(self) -> dict[str, str]:
        """The server of each VNFC, by the VNFC's id, which a heal keeps."""
        return {
            vnfc.id: vnfc.compute_resource.resource_id for vnfc in self._vnfc_resources
        }

    def stacks_of_vnfcs(self) -> dict[str, str]:
        """The stack in which Tacker looks for each VNFC after a heal."""
        return {
            vnfc.id: vnfc.metadata.get("stack_id", self.stack_id)
            for vnfc in self._vnfc_resources
        }

    def vdus(self, without: Iterable[str] = ()) -> Counter[str]:
        """How many VNFCs each VDU has.

        :param without: ids of VNFCs that do not count.
        """
        left_out = set(without)
        every = (vnfc for vnfc in self._vnfc_resources if vnfc.id not in left_out)
        return Counter(str(vnfc.vdu_id) for vnfc in every)

    @property
    def _vnfc_resources(self) -> Any:
        return (self.info.vnfc_resource_info if self.info else None) or ()

    def scale_levels(self) -> dict[str, int]:
        """The scale level of each scaling aspect."""
        status = getattr(self.info, "scale_status", None) or ()
        return {level.aspect_id: int(level.scale_level) for level in status}

    def set_scale_level(self, aspect: str, level: int) -> None:
        """Set one; Tacker stores it at the end of the operation."""
        for one in self.info.scale_status:
            if one.aspect_id == aspect:
                one.scale_level = level

    def clear_error(self) -> None:
        """Reset the error state after a retry has succeeded.

        A failed change of external connectivity sets it (``vnflcm_driver.py``,
        ``revert_to_error_task_state``), and Tacker then refuses to scale.
        """
        if self.record.task_state is not None:
            self.record.task_state = None
            self.save()

    def save(self) -> None:
        """Store what was changed in it."""
        database.save(self.record)

    # Metadata

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata; :meth:`set_metadata` changes them."""
        return self.record.vnf_metadata or {}

    def set_metadata(self, metadata: Mapping[str, Any]) -> bool:
        """Replace them; returns whether they were others.

        With a new dict: Tacker does not notice a change inside the old one.
        """
        changed = self.metadata != metadata
        if changed:
            self.record.vnf_metadata = dict(metadata)
        return changed

    def _without(self, *entries: str) -> dict[str, Any]:
        return {k: value for k, value in self.metadata.items() if k not in entries}

    @property
    def profile(self) -> Any:
        """What is kept of the profile; None if nothing is, and a text if not JSON."""
        text = self.metadata.get(PROFILE_KEY)
        try:
            return None if text is None else untrusted.parse_json(text)
        except (TypeError, ValueError):
            return text

    def keep_profile(self, profile: ResolvedProfile | None) -> None:
        """Keep it for the cluster's life; None: keep nothing."""
        after = self._without(PROFILE_KEY)
        if profile:
            after[PROFILE_KEY] = json.dumps(profile.kept(), sort_keys=True)
        if self.set_metadata(after):
            self.save()

    # VIMs

    def vim_access(self) -> Mapping[str, Any]:
        """The access information of its VIM, as registered, with the region.

        Without one, that of Tacker's default VIM.
        """
        return _access(self.context, self.record.vim_connection_info)

    def login_access(self) -> Mapping[str, Any]:
        """That of the VIM whose Barbican has the secrets.

        Tacker removes the VIM from the instance before ``terminate_end``
        (``VnfLcmDriver.terminate_vnf``); :meth:`keep_login_vim` keeps it.
        """
        infos = self.record.vim_connection_info or self._kept_vim()
        return _access(self.context, infos)

    @property
    def has_vim(self) -> bool:
        """Whether the VNF instance names a VIM."""
        return bool(self.record.vim_connection_info)

    def keep_login_vim(self) -> None:
        """Keep the VIM whose Barbican has the secrets, in the metadata."""
        infos = self.record.vim_connection_info
        if not infos or not infos[0].vim_id:
            return
        kept = {_LOGIN_VIM_KEY: infos[0].vim_id}
        if region := (infos[0].access_info or {}).get("region"):
            kept[_LOGIN_REGION_KEY] = region
        self._set_login_vim(kept)

    def forget_login_vim(self) -> None:
        """Remove what :meth:`keep_login_vim` keeps."""
        self._set_login_vim({})

    def _set_login_vim(self, kept: Mapping[str, str]) -> None:
        others = self._without(_LOGIN_VIM_KEY, _LOGIN_REGION_KEY)
        if self.set_metadata({**others, **kept}):
            self.save()

    def _kept_vim(self) -> list[Any]:
        if _LOGIN_VIM_KEY not in self.metadata:
            return []
        region = self.metadata.get(_LOGIN_REGION_KEY)
        access = {"region": region} if region else {}
        vim_id = self.metadata[_LOGIN_VIM_KEY]
        return [objects.VimConnectionInfo(vim_id=vim_id, access_info=access)]

    @property
    def vim_id(self) -> str:
        """The id of the cluster's VIM; "" if none is stored."""
        return str(self.metadata.get(VIM_KEY) or "")

    def names_vim(self, vim_id: str) -> bool:
        """Whether a VIM is named beside that of the VMs, which is the first one."""
        others = (self.record.vim_connection_info or [])[1:]
        return any(info.vim_id == vim_id for info in others)

    def remember_vim(self, vim_id: str, auth_url: str) -> None:
        """Name the cluster's VIM, and store that."""
        self.set_metadata({**self.metadata, VIM_KEY: vim_id})
        others = self._other_vims(vim_id) or [self._default_vim()]
        info = _connection(vim_id, VIM_TYPE, {"auth_url": auth_url}, {})
        # Appended: Tacker uses the first one as the VIM of the VNF.
        self.record.vim_connection_info = [*others, info]
        self.save()

    def forget_vim(self) -> None:
        """Remove the cluster's VIM, and store that."""
        if VIM_KEY in self.metadata:
            vim_id = self.vim_id
            self.set_metadata(self._without(VIM_KEY))
            self.record.vim_connection_info = self._other_vims(vim_id)
            self.save()

    def _other_vims(self, vim_id: str) -> list[Any]:
        infos = self.record.vim_connection_info or []
        return [info for info in infos if info.vim_id != vim_id]

    def _default_vim(self) -> Any:
        """The VIM that Tacker uses when none is named.

        Tacker names it in a new VNF instance, but not after a rollback.
        """
        vim = _registered_vim(self.context, None)
        return _connection(vim["vim_id"], vim["vim_type"], {}, vim["extra"])

    def resources(self) -> list[tuple[str, str]]:
        """Type and name of what Tacker has made of it on a Kubernetes VIM."""
        found = objects.VnfResourceList.get_by_vnf_instance_id
        return self._ask(
            lambda own: [
                (row.resource_type, row.resource_name)
                for row in found(own.context, self.vnf_id)
            ]
        )

    def _ask(self, question: Callable[["V1Instance"], T]) -> T:
        """Ask Tacker about it with a database session of its own."""
        return database.ask(
            self.context, lambda own: question(V1Instance(own, self.record))
        )

    # Operations

    def operations(self, *conditions: tuple[str, str, Any]) -> Any:
        """Its operations, Tacker's ``VnfLcmOpOcc``.

        :param conditions: field, operator and value of each.
        """
        own = ("vnf_instance_id", "==", self.vnf_id)
        listed = [
            {"model": "VnfLcmOpOccs", "field": field, "op": operator, "value": value}
            for field, operator, value in (own, *conditions)
        ]
        return objects.VnfLcmOpOccList.get_by_filters(
            self.context, read_deleted="no", filters={"and": listed}
        )

    def open_operations(self) -> list[tuple[str, str, str]]:
        """Kind, id and state of those that are not over."""
        rows = self.operations(("operation_state", "not_in", ENDED))
        return [(row.operation, row.id, row.operation_state) for row in rows]

    def history(self) -> list[tuple[str, str, str, str]]:
        """Kind, state, id and request of each, the last one at the end."""
        rows = sorted(self.operations(), key=lambda row: row.start_time)
        return [
            (
                row.operation,
                row.operation_state,
                row.id,
                str(row.operation_params or ""),
            )
            for row in rows
        ]

    def names_no_vnfc(self) -> bool:
        """Whether the heal in progress names an empty list of VNFCs.

        Tacker takes it for none (``HealVnfRequest`` has it as its default), and deletes
        all VMs. The body of the request is kept with the operation.
        """
        conditions = (
            ("operation", "==", "HEAL"),
            ("operation_state", "==", _PROCESSING),
        )
        rows = self._ask(lambda own: own.operations(*conditions))
        bodies = (json.loads(row.operation_params or "{}") for row in rows)
        return any(
            isinstance(body, Mapping) and body.get("vnfcInstanceId") == []
            for body in bodies
        )

    def requested_metadata(self) -> Mapping[str, Any]:
        """``metadata`` of the request that modifies the VNF instance now.

        From here on the instance has a context of its own. After a failure Tacker
        changes a row in the session of the request's, and does not commit
        (``revert_update_lcm``): the row would be locked as long as anything refers to
        that context. So that session commits each statement by itself from now on.
        """
        database.release(self.context)
        engine = db_api.get_engine().execution_options(isolation_level="AUTOCOMMIT")
        self.context._session = Session(engine)
        self.context = tacker_context.Context.from_dict(self.context.to_dict())
        self.record = objects.VnfInstance.get_by_id(self.context, self.record.id)
        rows = self.operations(
            ("operation", "==", "MODIFY_INFO"), ("operation_state", "==", _PROCESSING)
        )
        latest = max(rows, key=lambda row: row.start_time, default=None)
        if latest is None or not latest.operation_params:
            return {}
        try:
            body = json.loads(latest.operation_params)
        except ValueError:
            body = ast.literal_eval(latest.operation_params)
            _store_params(self.context, latest.id, json.dumps(body))
        metadata = body.get("metadata")
        return metadata if isinstance(metadata, Mapping) else {}

    def checkpoint(self, point: int, vnf: Mapping[str, Any] | None = None) -> str:
        """Store the error point of the operation in progress.

        The error points of operations that are over are reset. A failure to store is
        logged and does not fail the operation.

        :param point: one of those above.
        :param vnf: what ``instantiate_end`` gets under this name; None for other hooks,
            before which Tacker stores it itself.
        :returns: the id of its operation occurrence; "" if that is not known.
        """
        problem = under_way = ""
        try:
            if vnf is not None:
                self.save()
                self._ask(lambda own: _save_attributes(own.context, vnf))
            # Last: a retry relies on the rest.
            under_way = self._ask(lambda own: _save_point(own, point))
        except Exception as exc:
            # Not its text: a database's error quotes the values.
            problem = type(exc).__name__
        if problem:
            # Not above: oslo.log adds the text of the exception being handled.
            LOG.warning(
                "VNF instance %s: how far the operation is could not be stored (%s). "
                "If the conductor is killed now, `retry` will be refused",
                self.vnf_id,
                problem,
            )
        return under_way


def _registered_vim(context: Any, infos: Any) -> Any:
    """The first of these VIMs, as registered; the default one if there are none."""
    return database.ask(context, lambda own: vnflcm_utils._get_vim(own, infos))


def _access(context: Any, infos: Any) -> Mapping[str, Any]:
    access: Mapping[str, Any] = _registered_vim(context, infos)["access_info"]
    return access


def _connection(
    vim_id: str, vim_type: str, access: Mapping[str, Any], extra: Any
) -> Any:
    return objects.VimConnectionInfo(
        id=uuidutils.generate_uuid(),
        vim_id=vim_id,
        vim_type=vim_type,
        access_info=access,
        interface_info={},
        extra=extra,
    )


def _store_params(context: Any, operation_id: str, params: str) -> None:
    with db_api.context_manager.writer.using(context):
        rows = api.model_query(context, models.VnfLcmOpOccs).filter_by(id=operation_id)
        rows.update({"operation_params": params}, synchronize_session=False)


def _save_point(instance: V1Instance, point: int) -> str:
    under_way = ""
    for row in instance.operations():
        state = row.operation_state
        if state in (_PROCESSING, _ROLLING_BACK):
            under_way = str(row.id)
        wanted = point if state == _PROCESSING else fields.ErrorPoint.INITIAL
        if state in (_PROCESSING, *ENDED) and row.error_point != wanted:
            row.error_point = wanted
            row.save()
    return under_way


def _save_attributes(context: Any, vnf: Mapping[str, Any]) -> None:
    plugin = manager.TackerManager.get_service_plugins()[constants.VNFM]
    with context.session.begin(nested=True):
        for key, value in vnf["attributes"].items():
            plugin._vnf_attribute_update_or_create(context, vnf["id"], key, value)
        context.session.commit()


class V1Request:
    """The request of an operation, other than one that modifies the VNF instance.

    :param sent: Tacker's object of it; None for the rollback of an instantiation.
    """

    def __init__(self, sent: Any) -> None:
        self.sent = sent

    def __bool__(self) -> bool:
        return self.sent is not None

    @property
    def parameters(self) -> Any:
        """``additionalParams``."""
        return getattr(self.sent, "additional_params", None)

    @property
    def flavour(self) -> str:
        """The id of the deployment flavour of an instantiation."""
        return str(self.sent.flavour_id)

    @property
    def is_forceful(self) -> bool:
        """Whether a termination continues whatever fails."""
        return bool(getattr(self.sent, "termination_type", None) == _FORCEFUL)

    @property
    def aspect(self) -> str:
        """The scaling aspect of a scale."""
        return str(self.sent.aspect_id)

    @property
    def scale(self) -> tuple[str, str, int | None]:
        """Type, aspect and number of steps of a scale."""
        return self.sent.type, self.sent.aspect_id, self.sent.number_of_steps

    @property
    def vnfcs(self) -> Sequence[str]:
        """The VNFCs that a heal names; none for the whole VNF.

        Tacker's v1 API takes the ids of ``vnfcResourceInfo`` (not of ``vnfcInfo``).
        """
        return self.sent.vnfc_instance_id or ()

    def attachments(self) -> tuple[Attachment, ...]:
        """The connection points that a change of external connectivity names.

        Of several addresses, Tacker uses the first entry of the first configuration
        (``OpenStack._change_ext_conn_vnf_with_userdata``), so the others do not count.
        """
        return tuple(
            Attachment(cp.cpd_id, link.resource_id, frozenset(_fixed_addresses(cp)))
            for link in self.sent.ext_virtual_links
            for cp in link.ext_cps
        )


def _fixed_addresses(cp: Any) -> tuple[str, ...]:
    for config in (cp.cp_config or ())[:1]:
        for protocol in (config.cp_protocol_data or ())[:1]:
            if protocol.ip_over_ethernet:
                entries = (protocol.ip_over_ethernet.ip_addresses or ())[:1]
                return tuple(
                    ip for entry in entries for ip in entry.fixed_addresses or ()
                )
    return ()
