# SPDX-License-Identifier: Apache-2.0
"""From a VNF instance, its open operation and a wanted verb to a request of SOL003.

What Tacker would refuse is refused here, with the way that exists instead.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.hooks.advice import FAIL, RETRY, ROLLBACK, Verb
from tacker_k8s_mgmt.hooks.instance_view import ENDED, FAILED_TEMP
from tacker_k8s_mgmt.model.yaml_text import dig, mapping
from tacker_k8s_mgmt.tools.tacker import records, table
from tacker_k8s_mgmt.tools.tacker.client import Answer, Refused, Request, Silent, Tacker
from tacker_k8s_mgmt.tools.tacker.records import APIS, Api, Instance, Occurrence

#: Seconds in which the conductor of the v2 API may still hold an instance whose
#: operation has ended, and Tacker's error until then (``OtherOperationInProgress``).
HELD = 10.0
_IS_HELD = "Other LCM operation"
_MAYBE = (
    "It is not known whether Tacker has taken the request: look at `openstack vnflcm "
    "op list` before you send it again."
)
#: What a filter may have as a value: Tacker's two parsers quote differently.
_PLAIN = re.compile(r"[0-9A-Za-z._-]+")
_ABSENT = (403, 404)


def find_instance(tacker: Tacker, name: str) -> Instance:
    """The VNF instance of this id or name, of either API.

    :raises TackerError: there is none, or there are several of this name.
    """
    refused: list[Refused] = []
    found = _in_each(tacker, name, _of_id, refused) if records.is_id(name) else []
    found = found or _in_each(tacker, name, _of_name, refused)
    if len(found) == 1:
        return _shown(tacker, found[0].api, found[0].id)
    if found:
        listed = ", ".join(f"{one.id} ({one.api.name})" for one in found)
        raise TackerError(
            detail=f"{len(found)} VNF instances are called {name}: {listed}.",
            hint="Name it by its id.",
        )
    if refused:
        raise refused[0]
    raise TackerError(
        detail=f"Tacker shows no VNF instance {name} to this user, in neither API.",
        hint="`openstack vnflcm list` (v2: with --os-tacker-api-version 2) names them.",
    )


def _in_each(
    tacker: Tacker,
    name: str,
    find: Callable[[Tacker, Api, str], list[Instance]],
    refused: list[Refused],
) -> list[Instance]:
    """What is found in both APIs.

    :param refused: gets why one is closed to the user, or not there.
    """
    found: list[Instance] = []
    for api in APIS:
        try:
            found += find(tacker, api, name)
        except Refused as error:
            if error.status not in _ABSENT:
                raise
            refused.append(error)
    return found


def _of_id(tacker: Tacker, api: Api, instance_id: str) -> list[Instance]:
    try:
        return [_shown(tacker, api, instance_id)]
    except Refused as error:
        if error.status != 404:
            raise
        return []


def _of_name(tacker: Tacker, api: Api, name: str) -> list[Instance]:
    query = {"filter": f"(eq,vnfInstanceName,{name})"} if _PLAIN.fullmatch(name) else {}
    rows = tacker.rows(api.instances, api.version, query)
    listed = [records.instance(api, row) for row in rows]
    # The v2 API does not sort what it divides into pages.
    return list({one.id: one for one in listed if one.name == name}.values())


def _shown(tacker: Tacker, api: Api, instance_id: str) -> Instance:
    path = f"{api.instances}/{instance_id}"
    return records.instance(api, tacker.document(path, api.version))


def open_operations(tacker: Tacker, instance: Instance) -> list[Occurrence]:
    """The operations that are not over, the latest first.

    Both of Tacker's lists are asked for one instance, and looked through all the same.
    """
    api = instance.api
    query = {"filter": f"(eq,vnfInstanceId,{instance.id})"}
    rows = tacker.rows(api.operations, api.version, query)
    listed = [records.occurrence(api, row) for row in rows]
    unfinished = {
        one.id: one
        for one in listed
        if one.instance == instance.id and one.state not in ENDED
    }
    return sorted(unfinished.values(), key=lambda one: one.started, reverse=True)


def ready(tacker: Tacker, instance: Instance) -> None:
    """Check that Tacker takes an operation on the instance now.

    :raises TackerError: it does not, with what to do first.
    """
    if instance.state != records.INSTANTIATED:
        raise TackerError(
            detail=f"{instance.title} is {instance.state or 'of unknown state'}, and "
            "not instantiated."
        )
    found = open_operations(tacker, instance)
    if not found:
        return
    failed = [one for one in found if one.state == FAILED_TEMP]
    if not failed:
        raise TackerError(
            detail=f"Another operation is at work: {records.listed(found)}.",
            hint=f"`tacker-k8s-mgmt runs follow {instance.id}`, on a conductor's host, "
            "shows how far it is.",
        )
    one = shown_operation(tacker, failed[0])
    verbs = table.advised(instance.api.name, one.kind, one.error)
    raise TackerError(
        detail=f"{records.listed([one])} and has to be dealt with first.",
        hint=ways(instance, verbs),
    )


def ways(instance: Instance, verbs: Sequence[Verb]) -> str:
    """The command lines of verbs for the operation that has failed."""
    name = _as_word(instance)
    return " or ".join(f"`tacker-k8s-mgmt cluster {v.value} {name}`" for v in verbs)


def _as_word(instance: Instance) -> str:
    """Its name where a shell takes it as it is, else its id."""
    return instance.name if _PLAIN.fullmatch(instance.name) else instance.id


def shown_operation(tacker: Tacker, one: Occurrence) -> Occurrence:
    """An operation with its parameters and error, which lists leave out."""
    return records.occurrence(one.api, tacker.document(one.path, one.api.version))


def failed_operation(
    tacker: Tacker, instance: Instance, verb: Verb, wanted: str | None = None
) -> Occurrence:
    """The operation in FAILED_TEMP that a verb is for.

    :param wanted: its id; None for the only one.
    :raises TackerError: there is none or are several, or Tacker has no such verb for
        it.
    """
    found = open_operations(tacker, instance)
    failed = [one for one in found if one.state == FAILED_TEMP]
    failed = [one for one in failed if wanted in (None, one.id)]
    if not failed:
        others = records.listed(found) or "no operation is open"
        raise TackerError(
            detail=f"{instance.title} has no operation {wanted or ''} in FAILED_TEMP: "
            f"{others}.".replace("  ", " ")
        )
    if len(failed) > 1:
        raise TackerError(
            detail=f"{instance.title} has several: {records.listed(failed)}.",
            hint="Name one with --operation.",
        )
    one = shown_operation(tacker, failed[0])
    if one.state != FAILED_TEMP:
        raise TackerError(detail=f"{records.listed([one])} by now.")
    verbs = table.verbs_for(instance.api.name, one.kind, one.error)
    if verb not in verbs:
        raise TackerError(
            detail=f"Tacker's {instance.api.name} API has no {verb.value} of "
            f"{one.kind} {_why(verb, one)}({one.id}).",
            hint=f"{ways(instance, verbs)}.",
        )
    return one


def _why(verb: Verb, one: Occurrence) -> str:
    if verb is RETRY and one.kind in table.HANDLED[one.api.name, verb]:
        return "that the driver would see: it would be COMPLETED with the VMs left out "
    return ""


def handling(one: Occurrence, verb: Verb) -> Request:
    return Request("POST", f"{one.path}/{verb.value}", one.api.version)


def send(tacker: Tacker, request: Request) -> Answer:
    """Send a request, again while the last operation still lets go of the instance.

    :raises TackerError: Tacker refuses it, or does not answer.
    """
    end = time.monotonic() + HELD
    while True:
        try:
            return tacker.send(request)
        except Refused as error:
            held = error.status == 409 and _IS_HELD in str(error)
            if not held or time.monotonic() > end:
                raise
        except Silent as error:
            # Sent again, it might be done twice.
            raise Silent(hint=_MAYBE, **error.fields) from error
        time.sleep(1)


#: The state in which an operation is over, as a verb has it; others: COMPLETED.
WANTED: Mapping[Verb, str] = {ROLLBACK: records.ROLLED_BACK, FAIL: records.FAILED}


def heal(
    instance: Instance,
    vnfcs: Sequence[str],
    cause: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> Request:
    named: dict[str, Any] = {"vnfcInstanceId": list(vnfcs)}
    named |= {"cause": cause} if cause else {}
    return _operation(instance, "heal", {**named, **_additional(parameters)})


def scale(
    instance: Instance,
    steps: Mapping[str, Any],
    parameters: Mapping[str, Any] | None = None,
) -> Request:
    """The request that scales by these steps."""
    return _operation(instance, "scale", {**steps, **_additional(parameters)})


def upgrade(instance: Instance, vnfd_id: str, parameters: Mapping[str, Any]) -> Request:
    """The request that changes the package.

    :param parameters: ``additionalParams`` beside what Tacker requires.
    :raises TackerError: the API has no such operation.
    """
    if table.CHANGE_VNFPKG not in table.OPERATIONS[instance.api.name]:
        raise TackerError(
            detail=f"Tacker's {instance.api.name} API has no change of the package, so "
            f"{instance.title} cannot be upgraded."
        )
    required = {"upgrade_type": "RollingUpdate", "vdu_params": []}
    given = {"vnfdId": vnfd_id, "additionalParams": {**required, **parameters}}
    return _operation(instance, "change_vnfpkg", given)


def modify(instance: Instance, metadata: Mapping[str, Any]) -> Request:
    """The request that changes entries of the metadata."""
    api, changed = instance.api, {"metadata": dict(metadata)}
    return Request("PATCH", instance.path, api.version, changed, kind=api.patch)


#: Where an instantiation names its user data, which an upgrade names again.
_USER_DATA = ("lcm-operation-user-data", "lcm-operation-user-data-class")


def user_data(tacker: Tacker, instance: Instance) -> dict[str, str]:
    """What the instantiation has named as its user data; empty if nothing is known."""
    api = instance.api
    query = {"filter": f"(eq,vnfInstanceId,{instance.id})"}
    rows = tacker.rows(api.operations, api.version, query)
    every = [records.occurrence(api, row) for row in rows]
    ours = [one for one in every if one.instance == instance.id]
    made = [one for one in ours if one.kind == table.INSTANTIATE]
    for one in sorted(made, key=lambda one: one.started, reverse=True)[:1]:
        shown = tacker.document(one.path, api.version)
        given = mapping(dig(shown, "operationParams", "additionalParams"))
        return {k: given[k] for k in _USER_DATA if isinstance(given.get(k), str)}
    return {}


def refuse_wrong(instance: Instance, request: Request) -> None:
    """Check a body by Tacker's schemas, and its settings of nodes.

    :raises TackerError: Tacker, or the driver, would refuse it.
    """
    # Imported late: it brings the model of all parameters.
    from tacker_k8s_mgmt.tools.csar import body, tacker_api

    found = body.read(request.body, tacker_api.APIS[instance.api.name])
    if found.problems:
        raise TackerError(detail=f"{'; '.join(found.problems)}.")


def _additional(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"additionalParams": dict(parameters)} if parameters else {}


def _operation(instance: Instance, verb: str, content: Mapping[str, Any]) -> Request:
    return Request("POST", f"{instance.path}/{verb}", instance.api.version, content)
