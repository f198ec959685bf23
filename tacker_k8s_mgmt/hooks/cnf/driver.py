# SPDX-License-Identifier: Apache-2.0
"""What the hooks of a CNF do on the cluster that the CNF runs on, in either API.

The table has one entry for each hook that does something; what an API passes is read by
:mod:`.v1` and :mod:`.v2`. What to send to Tacker when a hook has failed depends on the
API and the hook.

The cluster is found by the CNF's VIM. The login of the cluster and of its load balancer
comes from where the cluster's own hooks have it, so the CNF's owner needs none. What
allows an exposure is that Tacker runs the CNF on that cluster: the endpoint of the
CNF's VIM has to be the cluster's, also where the request names the cluster, and the
VIM's login has to be one that may create the CNF's Services there. In the v1 API, where
Tacker has verified a VIM and knows its project, a VIM of the cluster's own project is
enough.

The Services are read from the manifests of the CNF's package before they are in the
cluster. The token of a VIM is the one with which Tacker uses it.
"""

import abc
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from oslo_log import log as logging
from tacker import context as tacker_context
from tacker.common import oidc_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.exposure.cnf_operations import (
    CheckExposure,
    CheckModified,
    Expose,
    Unexpose,
)
from tacker_k8s_mgmt.hooks import instances
from tacker_k8s_mgmt.hooks.advice import (
    CHECK,
    FAIL,
    NO_VM_YET,
    RETRY,
    ROLLBACK,
    SEND_FAIL_FIRST,
    UNCHANGED_SEND_FAIL,
    UNCHANGED_SEND_ROLLBACK,
    Advice,
    attached,
)
from tacker_k8s_mgmt.hooks.cnf import manifests
from tacker_k8s_mgmt.hooks.v1 import database, vim_registry
from tacker_k8s_mgmt.hooks.v2 import lookup as v2_lookup
from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.nodes import same_server
from tacker_k8s_mgmt.model.services import Cnf, Service
from tacker_k8s_mgmt.model.vim import ClusterIdentity
from tacker_k8s_mgmt.operations.state import OperationContext
from tacker_k8s_mgmt.operations.step import Operation
from tacker_k8s_mgmt.remote.kubernetes import api_login
from tacker_k8s_mgmt.request import cnf_exposure
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE, ExposureParams


class NoCluster(errors.TackerError):
    """No cluster of this driver has the API that is the CNF's VIM.

    The field ``lives`` says that the cluster that the request names has another API.
    """

    message = (
        "{endpoint}, the VIM of the CNF, is not a cluster that this driver "
        "created{but}."
    )
    default_hint = (
        "Instantiate the CNF on the VIM that the cluster is registered as, or from a "
        "package without this driver."
    )


def at(
    endpoint: str,
    named: str | None = None,
    check: Callable[[str, bool], None] = lambda vnf_id, is_v1: None,
) -> str:
    """The id of the cluster's VNF instance.

    :param endpoint: URL of the API that is the CNF's VIM.
    :param named: the id in the CNF's request; None if it names none.
    :param check: see :func:`check_login`.
    :raises NoCluster: there is none, or it is not the one that is named.
    :raises TackerError: there are several.
    """
    registered = tuple(_registered())
    at_endpoint = sorted(
        {
            (vnf_id, is_v1)
            for vnf_id, url, is_v1 in registered
            if same_server(url, endpoint)
        }
    )
    known = _known(at_endpoint, endpoint)
    found = [vnf_id for vnf_id, _ in known]
    if named in found:
        check(str(named), dict(known)[str(named)])
        return str(named)
    if named:
        other = f": it is that of VNF instance {found[0]}" if found else ""
        but = f" as VNF instance {named}{other}"
        lives = any(vnf_id == named for vnf_id, *_ in registered)
        raise NoCluster(endpoint=endpoint, but=but, lives=lives)
    if not found:
        raise NoCluster(endpoint=endpoint, but="", lives=False)
    found = _accepting(known, check)
    if len(found) > 1:
        raise errors.TackerError(
            detail=f"{endpoint}, the VIM of the CNF, is the API of several clusters: "
            f"{', '.join(found)}.",
            hint="Name one of them as cluster_vnf_instance_id.",
        )
    return found[0]


def check_login(
    vnf_id: str,
    is_v1: bool,
    *,
    project: str,
    token: Callable[[], str],
    namespaces: Callable[[], Collection[str]],
) -> None:
    """Check that a CNF may use a cluster.

    :param vnf_id: the cluster's VNF instance; of the v1 API, if *is_v1*.
    :param project: of the CNF; "" in the v2 API, which does not know it.
    :param token: returns that of the CNF's VIM.
    :param namespaces: returns those of its Services.
    :raises LoginNotAccepted, OtherCluster, RemoteError: see :func:`.api_login.check`.
    """
    context = tacker_context.get_admin_context()
    if is_v1:
        owner = database.ask(context, partial(vim_registry.project_of, vnf_id=vnf_id))
        if project and project == owner:
            return
    known = (vim_registry if is_v1 else v2_lookup).identity(context, vnf_id)
    if known is None:
        raise api_login.OtherCluster(endpoint="of the CNF's VIM", vnf=vnf_id)
    api_login.check(vnf_id, known, token(), namespaces())


def _known(
    found: Sequence[tuple[str, bool]], endpoint: str
) -> Sequence[tuple[str, bool]]:
    """The clusters that the driver has made, of those that are said to be there.

    Users of the v2 API can write an entry such as the driver's. Beside a cluster that
    is recorded none counts, and otherwise one with a login of an administrator.
    """

    def is_at(known: ClusterIdentity | None) -> bool:
        return known is not None and same_server(known.endpoint, endpoint)

    known = [
        one for one in found if one[1] or is_at(v2_lookup.cluster_identity(one[0]))
    ]
    if known:
        return known
    context, failure = tacker_context.get_admin_context(), None
    for one in found:
        try:
            if is_at(v2_lookup.identity(context, one[0])):
                known.append(one)
        except errors.RemoteError as error:
            # It may be an entry that leads nowhere, beside the cluster's own.
            failure = failure or error
    if failure and not known:
        raise failure
    return known


def _accepting(
    known: Sequence[tuple[str, bool]], check: Callable[[str, bool], None]
) -> list[str]:
    """The clusters that accept the CNF's login.

    :raises LoginNotAccepted, OtherCluster, RemoteError: none does.
    """
    accepting, failure = [], None
    for vnf_id, is_v1 in known:
        try:
            check(vnf_id, is_v1)
            accepting.append(vnf_id)
        except (errors.TackerError, errors.VimError, errors.RemoteError) as error:
            failure = failure or error
    if failure and not accepting:
        raise failure
    return accepting


def work(
    cluster: str,
    name: str,
    operation: Callable[[OperationContext], Operation],
    advice: Advice,
    followed_by: str = "",
    details: Mapping[str, str] | None = None,
) -> None:
    """Run an operation on a cluster.

    :param cluster: id of its VNF instance.
    :param name: of the operation, for lock, journal and errors.
    :param advice: what to send to Tacker after an error.
    :param followed_by: the operation that comes next for the same request of Tacker's.
    :param details: see :meth:`Hook.run`.
    """
    hook, request = instances.record(cluster).command(name)
    with hook.open_cluster(request, advice) as opened:
        hook.run(operation(opened), followed_by=followed_by, details=details)


def _registered() -> Iterator[tuple[str, str, bool]]:
    """Id and URL of each cluster, and whether it is of the v1 API."""
    context = tacker_context.get_admin_context()
    for read, is_v1 in ((vim_registry.registered, True), (v2_lookup.registered, False)):
        # The answer is complete before the session is closed.
        for vnf_id, url in database.ask(context, partial(_all, read)):
            yield vnf_id, url, is_v1


def _all(read: Callable[[Any], Iterator[tuple[str, str]]], context: Any) -> Any:
    return list(read(context))


LOG = logging.getLogger(__name__)


class CnfHook(abc.ABC):
    """A call of a hook for a CNF."""

    #: What to send when a hook has failed.
    advices: ClassVar[Mapping[str, Advice]]

    def __init__(self, name: str, vnf_id: str) -> None:
        self.name = name
        self.vnf_id = vnf_id

    @property
    def advice(self) -> Advice:
        """What to send when this hook has failed."""
        return self.advices[self.name]

    @property
    @abc.abstractmethod
    def vnf_name(self) -> str:
        """The name of the CNF's VNF instance; "" if it has none."""

    @property
    @abc.abstractmethod
    def occurrence(self) -> str:
        """The id of Tacker's LCM operation occurrence; "" if it is not known."""

    @property
    @abc.abstractmethod
    def is_forceful(self) -> bool:
        """Whether the request is to be carried out whatever fails."""

    @property
    @abc.abstractmethod
    def additional_params(self) -> Mapping[str, Any]:
        """``additionalParams`` of the instantiation; later ones have none of ours."""

    @property
    @abc.abstractmethod
    def metadata(self) -> Mapping[str, Any]:
        """Those of the VNF instance, as the operation leaves them."""

    @property
    @abc.abstractmethod
    def patch(self) -> Mapping[str, Any]:
        """``metadata`` of a request that modifies the VNF instance."""

    @abc.abstractmethod
    def endpoint(self) -> str:
        """URL of the API that is the CNF's VIM; "" if there is no VIM any more."""

    @property
    def project(self) -> str:
        """The CNF's project; "" where Tacker does not tell it."""
        return ""

    @abc.abstractmethod
    def token(self) -> str:
        """The token with which Tacker uses the CNF's VIM; "" if it uses none."""

    @abc.abstractmethod
    def namespace(self) -> str:
        """Where Tacker puts the CNF; "" if only its manifests say it."""

    @abc.abstractmethod
    def cnf(self) -> Cnf:
        """The CNF, by what Tacker knows of its Services."""

    @abc.abstractmethod
    def package(self) -> str:
        """The directory of the VNF package."""

    def manifests(self) -> Sequence[Service] | None:
        """The Services of its manifests; None for a chart or what cannot be read."""
        given = self.additional_params
        files = given.get("lcm-kubernetes-def-files")
        if not isinstance(files, Sequence):
            return None
        return manifests.services(self.package(), files, given.get("namespace"))

    @abc.abstractmethod
    def begin(self) -> None:
        """Prepare for work."""

    @abc.abstractmethod
    def keep(self, params: Any) -> None:
        """Keep the parameter of the instantiation for later operations.

        :param params: None: it has none, and what the metadata have holds.
        """

    @abc.abstractmethod
    def forget(self) -> None:
        """Remove what is kept, or what a PATCH has left, in the metadata.

        It would hold for the next instantiation.
        """


def perform(call: CnfHook) -> None:
    """Run a hook.

    :raises K8sMgmtError: with what is wrong, for the operator.
    """
    HOOKS[call.name](call)


def _wrong(call: CnfHook) -> str:
    """What to send when the parameter is wrong."""
    refused = call.advice.refused or SEND_FAIL_FIRST
    return refused.text


def _params(call: CnfHook, wrong: str = "") -> ExposureParams:
    """The parameter: in the metadata (by a PATCH) or of the instantiation.

    The request of an instantiation goes before the metadata, and later after them.

    :param wrong: what to send when it is wrong.
    """
    given = cnf_exposure.attribute_of(call.additional_params)
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


def _on_cluster(call: CnfHook, params: ExposureParams, operation: Any) -> None:
    check = partial(
        check_login,
        project=call.project,
        token=call.token,
        namespaces=partial(_namespaces, call),
    )
    cluster = at(call.endpoint(), params.cluster_vnf_instance_id, check)
    call.begin()
    name = f"{call.name} of CNF {call.vnf_id}"
    followed_by = _FOLLOWED_BY.get(call.name, "")
    if followed_by:
        followed_by += f" of CNF {call.vnf_id}"
    details = {"cnf_name": call.vnf_name, "lcm_op_occ_id": call.occurrence}
    work(cluster, name, operation, call.advice, followed_by, details)


def _namespaces(call: CnfHook) -> frozenset[str]:
    """The namespaces of the CNF's Services."""
    if named := call.namespace():
        return frozenset({named})
    written = frozenset(service.namespace for service in call.manifests() or ())
    return written or frozenset({"default"})


def _check(call: CnfHook) -> None:
    """Refuse a request before anything is created."""
    with attached(call.advice):
        params = _params(call, _wrong(call))
        expected = partial(_expected, call, params, call.manifests())
        # Wrong names are found without the cluster.
        expected(False)
        check = partial(CheckExposure, owner=call.vnf_id, expected=expected)
        _on_cluster(call, params, check)


def _expected(
    call: CnfHook,
    params: ExposureParams,
    services: Sequence[Service] | None,
    cloud: bool,
) -> tuple[Exposure, ...]:
    """What can be known of the exposures before the Services exist."""
    if services is None:
        namespace = call.additional_params.get("namespace") or "default"
        return params.announced(call.vnf_id, namespace)
    return params.exposures(call.vnf_id, services, cloud)


def _check_modified(call: CnfHook) -> None:
    """Refuse a request before it is stored."""
    if cnf_exposure.ATTRIBUTE not in call.patch:
        return
    with attached(call.advice):
        params = _params(call, _wrong(call))
        check = partial(CheckModified, cnf=call.cnf(), params=params)
        _on_cluster(call, params, check)


def _expose(call: CnfHook) -> None:
    with attached(call.advice):
        params = _params(call, _wrong(call))
        _on_cluster(call, params, partial(Expose, cnf=call.cnf(), params=params))


def _expose_first(call: CnfHook) -> None:
    _expose(call)
    call.keep(cnf_exposure.attribute_of(call.additional_params))


def _unexpose(call: CnfHook) -> None:
    with attached(call.advice):
        try:
            _remove(call)
        except Exception as error:
            if not call.is_forceful:
                raise
            # The text of another error may have secrets.
            ours = isinstance(error, errors.K8sMgmtError)
            what = str(error) if ours else type(error).__name__
            LOG.warning("CNF %s may stay exposed: %s", call.vnf_id, what)


def _remove(call: CnfHook) -> None:
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
    except NoCluster as error:
        # A cluster that is gone has no exposures any more. One that only has another
        # address than the CNF's VIM has them.
        if error.fields["lives"]:
            raise
        LOG.warning("CNF %s: nothing is removed: %s", call.vnf_id, error)


def _nothing(call: CnfHook) -> None:
    """Nothing to do in this hook."""


# Those that work on the cluster; the others of a pair have nothing to do there.
_FOLLOWED_BY = {
    "instantiate_start": "instantiate_end",
    "modify_information_start": "modify_information_end",
}
HOOKS: Mapping[str, Callable[[CnfHook], None]] = {
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


_REFUSED = Advice(
    (FAIL,),
    "Send `fail` for this operation, then a PATCH with a corrected "
    f"metadata.{ATTRIBUTE}.",
)
_LATER = Advice(
    (RETRY, FAIL),
    "`retry` continues from here; after `fail`, the next heal or modification of the "
    "CNF does.",
    refused=_REFUSED,
)
_ROLLBACK = Advice((ROLLBACK,), "Another `rollback` continues from here.")
_BOTH = {
    "instantiate_start": replace(NO_VM_YET, refused=UNCHANGED_SEND_ROLLBACK),
    "instantiate_end": Advice(
        (RETRY, ROLLBACK),
        "`retry` continues from here, `rollback` removes the CNF.",
        refused=Advice(
            (ROLLBACK,),
            "Send `rollback` for this operation, which removes the CNF, then a "
            "corrected request.",
        ),
    ),
    "instantiate_rollback_start": _ROLLBACK,
    "terminate_start": Advice(
        (RETRY, FAIL),
        "`retry` continues from here; after `fail`, a FORCEFUL request continues "
        "without.",
    ),
    # Unlike that of a cluster, a retry in the v1 API calls it again (_scale_vnf_post).
    "scale_end": _LATER,
    "heal_end": _LATER,
}
#: A modification has neither a retry nor a rollback.
V1: Mapping[str, Advice] = {
    **_BOTH,
    "modify_information_start": Advice(
        (FAIL,),
        "Send `fail` for this operation; when that is fixed, or with a corrected "
        "request, modify the CNF again.",
        refused=UNCHANGED_SEND_FAIL,
    ),
    "modify_information_end": Advice(
        (FAIL,),
        "Tacker has stored what the request wants. Send `fail` for this operation; "
        "the next heal or modification of the CNF continues.",
        refused=_REFUSED,
    ),
}
#: What a modification wants is stored when it has succeeded.
V2: Mapping[str, Advice] = {
    **_BOTH,
    "scale_rollback_end": _ROLLBACK,
    "modify_information_start": replace(CHECK, refused=UNCHANGED_SEND_FAIL),
    "modify_information_end": Advice(
        (RETRY, ROLLBACK),
        "`retry` continues from here; `rollback` gives the CNF its former exposures.",
        refused=Advice(
            (ROLLBACK,),
            "Send `rollback` for this operation, which gives the CNF its former "
            "exposures, then a corrected request.",
        ),
    ),
    "modify_information_rollback_end": _ROLLBACK,
    "change_current_package_end": _LATER,
    "change_current_package_rollback_end": _ROLLBACK,
}


def token(access: Mapping[str, Any], ca_certificate: Any) -> str:
    """Return a VIM's token, or get one from its OpenID provider as Tacker does.

    :param access: the VIM's access information.
    :param ca_certificate: PEM, by which Tacker verifies the provider, too.
    :raises VimError: the provider gives none.
    """
    if "oidc_token_url" not in access:
        return str(access.get("bearer_token") or "")
    login = [
        access.get(name)
        for name in ("oidc_token_url", "username", "password", "client_id")
    ]
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(str(ca_certificate or ""))
            file.flush()
            return str(
                oidc_utils.get_id_token_with_password_grant(
                    *login,
                    client_secret=access.get("client_secret"),
                    ssl_ca_cert=file.name if ca_certificate else None,
                )
            )
    except Exception as error:
        # Tacker's text has the provider's answer.
        raise errors.VimError(
            detail="The OpenID provider of the CNF's VIM gives no token "
            f"({type(error).__name__})."
        ) from None
