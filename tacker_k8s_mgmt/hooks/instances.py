# SPDX-License-Identifier: Apache-2.0
"""Access to a VNF instance for commands of an operator: read-only, or to work on it.

Their process is no service of Tacker. It reads the conductor's configuration and
database as the conductor does, and needs no message queue.
"""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

# Registers the conductor's options, such as those for Barbican.
import tacker.cmd.conductor  # noqa: F401
from oslo_config import cfg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from tacker import context as tacker_context

from tacker_k8s_mgmt import config, errors, text
from tacker_k8s_mgmt.hooks.advice import Advice
from tacker_k8s_mgmt.hooks.instance_view import ClusterSummary
from tacker_k8s_mgmt.hooks.planning import ClusterPlan
from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.hooks.v1 import lookup as v1_lookup
from tacker_k8s_mgmt.hooks.v2 import lookup as v2_lookup
from tacker_k8s_mgmt.model.plan import Plan, Refusal
from tacker_k8s_mgmt.operations.state import OperationContext
from tacker_k8s_mgmt.operations.step import Operation
from tacker_k8s_mgmt.remote.readonly_site import NoSuchInstance, OpenCluster
from tacker_k8s_mgmt.status.facts import HealCommands

_AGAIN = Advice(
    (), "The same command, run again, continues from here.", refused=Advice((), "")
)


@contextmanager
def open_cluster(vnf: str, config_files: Sequence[str] = ()) -> Iterator[OpenCluster]:
    """Find a VNF instance, of either API.

    :param vnf: its id or its name.
    :param config_files: Tacker's; none: those that the conductor finds by itself.
    :raises TackerError: Tacker cannot be asked, or has no such cluster.
    :raises ParamError: this release does not accept its parameters.
    """
    _configure(config_files)
    found = record(vnf)
    hook, request = found.command("cluster check")
    with found.view(hook, request) as view:
        yield OpenCluster(
            hook.vnf_id,
            hook.vnf_name,
            found.open_operation,
            request,
            view,
            hook.metadata,
            HealCommands(hook.vnf_id, hook.api, hook.vnfcs),
        )


def listed(config_files: Sequence[str] = ()) -> list[ClusterSummary]:
    """The clusters of both APIs and of all projects, by name.

    :param config_files: as in :func:`open_cluster`.
    :raises TackerError: Tacker's database cannot be read.
    """
    _configure(config_files)
    with _readable():
        every = [*v1_lookup.listed(), *v2_lookup.listed()]
    return sorted(every, key=lambda cluster: (cluster.name, cluster.vnf_id))


def operation_state(occurrence: str, config_files: Sequence[str] = ()) -> str:
    """The state of an LCM operation occurrence, of either API.

    :param occurrence: its id.
    :param config_files: as in :func:`open_cluster`.
    :returns: "" if Tacker has none of this id.
    :raises TackerError: Tacker's database cannot be read.
    """
    _configure(config_files)
    context = tacker_context.get_admin_context()
    with _readable():
        states = (
            database.ask(context, partial(api.operation_state, occurrence=occurrence))
            for api in (v1_lookup, v2_lookup)
        )
        return next(filter(None, states), "")


def under_way(vnf_id: str, config_files: Sequence[str] = ()) -> str:
    """The id of the LCM operation occurrence that Tacker works on; "" without one.

    :param config_files: as in :func:`open_cluster`.
    :raises TackerError: Tacker's database cannot be read, or has no such VNF instance.
    """
    _configure(config_files)
    return record(vnf_id).under_way


def run(
    vnf_id: str,
    name: str,
    operation: Callable[[OperationContext], Operation],
    config_files: Sequence[str] = (),
) -> None:
    """Run an operation of this driver's own, which Tacker does not know, on a cluster.

    It is recorded in the journal and holds the cluster's lock, so that a hook which
    would change the cluster meanwhile is refused.

    :param name: the operation's, for lock, journal and errors.
    :param operation: makes it, such as a class of :mod:`tacker_k8s_mgmt.operations`.
    :param config_files: as in :func:`open_cluster`.
    :raises TackerError: also if an operation of Tacker is unfinished.
    :raises ParamError: this release does not accept the cluster's parameters.
    :raises LockedError: another operation works on the cluster.
    :raises StepFailed: a step has failed.
    """
    _configure(config_files)
    hook, request = record(vnf_id).command(name)
    _refuse_other_user(hook.state_path)
    with hook.open_cluster(request, _AGAIN) as cluster:
        cluster.site.lock()
        # Tacker's operations hold it only during their hooks. Asked before, one that
        # begins meanwhile would pass unseen.
        if unfinished := record(vnf_id).open_operation:
            raise errors.TackerError(
                detail=f"Tacker has not ended an operation on it: {unfinished}.",
                hint="Wait for its end; one that has failed is ended with `retry`, "
                "`rollback` or `fail`. Nothing was changed.",
            )
        hook.run(operation(cluster))


def plan(
    vnf: str, operation: str, body: Mapping[str, Any], config_files: Sequence[str] = ()
) -> ClusterPlan:
    """What an operation of Tacker would do to a cluster; changes nothing.

    :param vnf: the VNF instance's id or name.
    :param operation: as :mod:`tacker_k8s_mgmt.hooks.planning` names it.
    :param body: of its request.
    :param config_files: as in :func:`open_cluster`.
    :raises TackerError: Tacker cannot be asked, or has no such cluster.
    :raises ParamError: this release does not accept the cluster's parameters.
    """
    _configure(config_files)
    found = record(vnf)
    hook, _ = found.command("cluster plan")
    if found.open_operation:
        made = Plan(
            refusal=Refusal(
                "",
                f"Tacker has not ended an operation on it: {found.open_operation}. "
                "What would be done now is not what would be done then.",
            )
        )
    else:
        made = found.plan(operation, body)
    return ClusterPlan(hook.vnf_id, hook.vnf_name, hook.api, hook.state_path, made)


def change_of_package(
    vnf: str, vnfd_id: str, version: str | None, config_files: Sequence[str] = ()
) -> dict[str, Any]:
    """The body of a request that changes the VNF package, for :func:`plan`.

    :param version: of Kubernetes; None: only the package changes.
    :raises TackerError: the API of the VNF instance has no such operation.
    """
    _configure(config_files)
    found = record(vnf)
    if isinstance(found, v1_lookup.V1Record):
        raise errors.TackerError(
            detail="Tacker's v1 API has no change of the package, so the cluster "
            f"{vnf} cannot be upgraded."
        )
    return found.change_of_package(vnfd_id, version)


def _refuse_other_user(state_path: str) -> None:
    """Refuse to leave files behind that the conductor could not write.

    :raises TackerError: the state belongs to another user.
    """
    path = Path(state_path)
    while not path.exists():
        path = path.parent
    owner = path.stat().st_uid
    if owner != os.geteuid():
        raise errors.TackerError(
            detail=f"{path} belongs to another user (id {owner}).",
            hint="Run this command as that user, the conductor's.",
        )


def record(vnf: str) -> v1_lookup.V1Record | v2_lookup.V2Record:
    """A VNF instance, of either API, in Tacker's database.

    :param vnf: its id or its name.
    :raises TackerError: there is none, several have this name, or the database cannot
        be read.
    """
    with _readable():
        vnf_id = _id_of(vnf)
        try:
            return v1_lookup.V1Record(vnf_id)
        except NoSuchInstance:
            pass
        try:
            return v2_lookup.V2Record(vnf_id)
        except NoSuchInstance:
            raise _unknown(vnf) from None


def _id_of(vnf: str) -> str:
    with suppress(ValueError):
        return str(uuid.UUID(vnf))
    ids = [*v1_lookup.named(vnf), *v2_lookup.named(vnf)]
    if len(ids) > 1:
        raise errors.TackerError(
            detail=f"Several VNF instances have the name {vnf}: {', '.join(ids)}.",
            hint="Give the id.",
        )
    if not ids:
        raise _unknown(vnf)
    return ids[0]


def _unknown(vnf: str) -> errors.TackerError:
    return errors.TackerError(
        detail=f"Tacker has no VNF instance {vnf}, neither of its v1 nor of its v2 "
        "API.",
        hint="Look at the ids and names that `openstack vnflcm list` shows.",
    )


@contextmanager
def _readable() -> Iterator[None]:
    """Turn what keeps the database from being read into an error of ours."""
    try:
        yield
    except errors.K8sMgmtError:
        raise
    except Exception as error:
        # Tacker's plugins and the drivers of databases raise many kinds.
        redact = text.Redactor(text.in_url(cfg.CONF.database.connection or ""))
        raise errors.TackerError(
            detail=f"Tacker's database could not be read: {redact(_line(error))}.",
            hint="Look at [database] connection in tacker.conf.",
        ) from None


def _configure(files: Sequence[str]) -> None:
    try:
        config.read(cfg.CONF, files)
    except (cfg.Error, OSError, ValueError) as error:
        raise errors.TackerConfigError(
            detail=f"Tacker's configuration could not be read: {_line(error)}.",
            hint="It takes a user who may read it, such as the conductor's.",
        ) from error
    if not cfg.CONF.config_file:
        raise errors.TackerConfigError(
            detail="There is no tacker.conf where Tacker looks for it.",
            hint=f"Name it with --config-file, or in {config.VARIABLE}.",
        )
    config.register(cfg.CONF)
    # A service waits for its database; a command fails at once.
    cfg.CONF.set_override("max_retries", 0, group="database")
    _refuse_missing_file(cfg.CONF.database.connection or "")


def _refuse_missing_file(connection: str) -> None:
    """Check that there is a database, which SQLite would make.

    :raises TackerConfigError: its file is not there.
    """
    try:
        url = make_url(connection)
    except ArgumentError:
        # What is wrong with it is said when it is used.
        return
    name = url.database or ":memory:"
    special = name == ":memory:" or name.startswith("file:")
    if url.get_backend_name() == "sqlite" and not special and not Path(name).is_file():
        raise errors.TackerConfigError(
            detail=f"Tacker's database {name} is not there.",
            hint="Look at [database] connection in tacker.conf.",
        )


def _line(error: Exception) -> str:
    """The first line; the drivers of databases add more."""
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
