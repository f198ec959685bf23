# SPDX-License-Identifier: Apache-2.0
"""What the hooks of a CNF do, whichever API calls them.

The table has one entry for each hook that does something; what an API passes is read by
:mod:`.v1` and :mod:`.v2`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.cnf import clusters
from tacker_k8s_mgmt.lifecycle.expose import (
    CheckExposure,
    CheckModified,
    Expose,
    Unexpose,
)
from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.services import Cnf, Service
from tacker_k8s_mgmt.request import cnf_exposure
from tacker_k8s_mgmt.request.cnf_exposure import ExposureParams

LOG = logging.getLogger(__name__)


class Call(Protocol):
    """A call of a hook for a CNF."""

    @property
    def name(self) -> str: ...

    @property
    def vnf_id(self) -> str: ...

    @property
    def advice(self) -> hints.Advice:
        """What to send when the hook has failed."""

    @property
    def is_forceful(self) -> bool:
        """Whether the request is to be carried out whatever fails."""

    @property
    def additional_params(self) -> Mapping[str, Any]:
        """``additionalParams`` of the instantiation."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Those of the VNF instance, as the operation leaves them."""

    @property
    def patch(self) -> Mapping[str, Any]:
        """``metadata`` of a request that modifies the VNF instance."""

    def endpoint(self) -> str:
        """URL of the API that is the CNF's VIM; "" if there is no VIM any more."""

    @property
    def project(self) -> str:
        """The CNF's project; "" where Tacker does not tell it."""

    def token(self) -> str:
        """The token with which Tacker uses the CNF's VIM; "" if it uses none."""

    def namespace(self) -> str:
        """Where Tacker puts the CNF; "" if only its manifests say it."""

    def cnf(self) -> Cnf: ...

    def manifests(self) -> Sequence[Service] | None:
        """The Services of its manifests; None for a chart or what cannot be read."""

    def begin(self) -> None:
        """Prepare for work."""

    def keep(self, params: Any) -> None:
        """Keep the parameter of the instantiation for later operations.

        :param params: None: it has none, and what the metadata have holds.
        """

    def forget(self) -> None:
        """Remove what is kept."""


def perform(call: Call) -> None:
    """Run a hook.

    :raises K8sMgmtError: with what is wrong, for the operator.
    """
    HOOKS[call.name](call)


def _params(call: Call, wrong: str = "") -> ExposureParams:
    """The parameter: in the metadata (by a PATCH) or of the instantiation.

    The request of an instantiation goes before the metadata, and later after them.

    :param wrong: what to send when it is wrong.
    """
    given = cnf_exposure.given(call.additional_params)
    patched = call.metadata.get(cnf_exposure.ATTRIBUTE)
    # A PATCH of an earlier life of the VNF instance does not hold for a new one.
    instantiates = call.name.startswith("instantiate_")
    first, second = (given, patched) if instantiates else (patched, given)
    raw = second if first is None else first
    if cnf_exposure.SAMPLE_ATTRIBUTE in call.additional_params:
        LOG.warning(
            "CNF %s: %s of its request is not used: the driver has the load balancer's "
            "login from the cluster. Take it, and the password in it, out.",
            call.vnf_id,
            cnf_exposure.SAMPLE_ATTRIBUTE,
        )
    try:
        return cnf_exposure.parse(raw)
    except errors.ExposureParamError as error:
        error.hint = wrong
        raise


def _on_cluster(call: Call, params: ExposureParams, operation: Any) -> None:
    check = partial(
        clusters.check_login,
        project=call.project,
        token=call.token,
        namespaces=partial(_namespaces, call),
    )
    cluster = clusters.at(call.endpoint(), params.cluster_vnf_instance_id, check)
    call.begin()
    name = f"{call.name} of CNF {call.vnf_id}"
    followed_by = _FOLLOWED_BY.get(call.name, "")
    if followed_by:
        followed_by += f" of CNF {call.vnf_id}"
    clusters.work(cluster, name, operation, call.advice, followed_by)


def _namespaces(call: Call) -> frozenset[str]:
    """The namespaces of the CNF's Services."""
    if named := call.namespace():
        return frozenset({named})
    written = frozenset(service.namespace for service in call.manifests() or ())
    return written or frozenset({"default"})


def _check(call: Call) -> None:
    """Refuse a request before anything is created."""
    with hints.attached(call.advice):
        params = _params(call, call.advice.refused)
        expected = partial(_expected, call, params, call.manifests())
        # Wrong names are found without the cluster.
        expected(False)
        check = partial(CheckExposure, owner=call.vnf_id, expected=expected)
        _on_cluster(call, params, check)


def _expected(
    call: Call,
    params: ExposureParams,
    services: Sequence[Service] | None,
    cloud: bool,
) -> tuple[Exposure, ...]:
    """What can be known of the exposures before the Services exist."""
    if services is None:
        namespace = call.additional_params.get("namespace") or "default"
        return params.announced(call.vnf_id, namespace)
    return params.exposures(call.vnf_id, services, cloud)


def _check_modified(call: Call) -> None:
    """Refuse a request before it is stored."""
    if cnf_exposure.ATTRIBUTE not in call.patch:
        return
    with hints.attached(call.advice):
        params = _params(call, call.advice.refused)
        check = partial(CheckModified, cnf=call.cnf(), params=params)
        _on_cluster(call, params, check)


def _expose(call: Call) -> None:
    with hints.attached(call.advice):
        params = _params(call, call.advice.refused)
        _on_cluster(call, params, partial(Expose, cnf=call.cnf(), params=params))


def _expose_first(call: Call) -> None:
    _expose(call)
    call.keep(cnf_exposure.given(call.additional_params))


def _unexpose(call: Call) -> None:
    with hints.attached(call.advice):
        try:
            _remove(call)
        except Exception as error:
            if not call.is_forceful:
                raise
            # The text of another error may have secrets.
            ours = isinstance(error, errors.K8sMgmtError)
            what = str(error) if ours else type(error).__name__
            LOG.warning("CNF %s may stay exposed: %s", call.vnf_id, what)


def _remove(call: Call) -> None:
    endpoint = call.endpoint()
    if not endpoint:
        return
    try:
        params = _params(call)
    except errors.ExposureParamError:
        # That is most likely why the operation failed.
        params = ExposureParams()
    try:
        _on_cluster(call, params, partial(Unexpose, owner=call.vnf_id))
    except clusters.NoCluster as error:
        # A cluster that is gone has no exposures any more. One that only has another
        # address than the CNF's VIM has them.
        if error.fields["lives"]:
            raise
        LOG.warning("CNF %s: nothing is removed: %s", call.vnf_id, error)


def _nothing(call: Call) -> None:
    """Nothing to do in this hook."""


# Those that work on the cluster; the others of a pair have nothing to do there.
_FOLLOWED_BY = {
    "instantiate_start": "instantiate_end",
    "modify_information_start": "modify_information_end",
}
HOOKS: Mapping[str, Callable[[Call], None]] = MappingProxyType(
    {
        "instantiate_start": _check,
        "instantiate_end": _expose_first,
        "instantiate_rollback_start": _unexpose,
        "instantiate_rollback_end": _nothing,
        # Before its Services go.
        "terminate_start": _unexpose,
        # v1 calls only this one for the rollback of an instantiation.
        "terminate_end": lambda call: call.forget(),
        "scale_start": _nothing,
        "scale_end": _expose,
        "scale_rollback_start": _nothing,
        "scale_rollback_end": _expose,
        "heal_start": _nothing,
        "heal_end": _expose,
        "modify_information_start": _check_modified,
        "modify_information_end": _expose,
        "modify_information_rollback_start": _nothing,
        "modify_information_rollback_end": _expose,
        "change_external_connectivity_start": _nothing,
        "change_external_connectivity_end": _nothing,
        "change_external_connectivity_rollback_start": _nothing,
        "change_external_connectivity_rollback_end": _nothing,
        "change_current_package_start": _nothing,
        "change_current_package_end": _expose,
        "change_current_package_rollback_start": _nothing,
        "change_current_package_rollback_end": _expose,
    }
)
