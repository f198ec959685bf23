# SPDX-License-Identifier: Apache-2.0
"""Objects of Kubernetes as data: their parts, selectors, taints and tolerations."""

import datetime
import random
import re
from collections.abc import Mapping
from typing import Any

from . import READY_ANNOTATION
from .resources import bad_request

Obj = dict[str, Any]

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def timestamp(delta: float = 0) -> str:
    """The time ``delta`` seconds from now, as ``metav1.Time`` is written."""
    moment = datetime.datetime.now(datetime.timezone.utc)
    return (moment + datetime.timedelta(seconds=delta)).strftime(_TIME)


def precise_timestamp() -> str:
    """Now, as ``metav1.MicroTime`` is written (the times in a Lease)."""
    moment = datetime.datetime.now(datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def age(stamp: str) -> float:
    """Seconds since a ``metav1.Time``."""
    then = datetime.datetime.strptime(stamp, _TIME)
    then = then.replace(tzinfo=datetime.timezone.utc)
    return (datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()


def random_suffix(length: int) -> str:
    """The tail of a generated name; no vowels, as in Kubernetes."""
    return "".join(random.choices(_SUFFIX_LETTERS, k=length))


def dig(obj: Any, path: str, default: Any = "") -> Any:
    """The value at a dotted path; ``default`` where anything on the way is missing."""
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
        if obj is None:
            return default
    return obj


def name_of(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Obj) -> str | None:
    namespace: str | None = obj["metadata"].get("namespace")
    return namespace


def labels_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def with_metadata(obj: Obj, **changes: Any) -> Obj:
    """A copy of the object with some fields of its metadata set."""
    return {**obj, "metadata": {**obj["metadata"], **changes}}


def is_terminating(obj: Obj) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def condition(obj: Obj, kind: str) -> Obj:
    """The status condition of that type, or an empty dict."""
    conditions = dig(obj, "status.conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def is_ready(obj: Obj) -> bool:
    """Whether a node or pod is Ready; something that is being deleted never is."""
    return not is_terminating(obj) and condition(obj, "Ready").get("status") == "True"


def held_unready(obj: Obj) -> bool:
    """Whether the failure annotation prevents that it becomes Ready."""
    return bool(
        dig(obj["metadata"], "annotations", {}).get(READY_ANNOTATION) == "false"
    )


def controller_of(obj: Obj) -> Obj | None:
    """The owner reference of the controller that made the object, if any."""
    owners = obj["metadata"].get("ownerReferences") or []
    return next((o for o in owners if o.get("controller")), None)


def owner_reference(owner: Obj) -> Obj:
    """What an object that ``owner`` makes carries to name it as its controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


_TERM = re.compile(
    r"(?P<set>[^,=!\s()]+)\s+(?P<how>in|notin)\s*\((?P<members>[^)]*)\)"
    r"|!\s*(?P<absent>[^,=!\s]+)"
    r"|(?P<key>[^,=!\s]+)\s*(?P<op>!=|==|=)\s*(?P<value>[^,\s]*)"
    r"|(?P<present>[^,=!\s]+)"
)
_FIELD = re.compile(r"([^=!]+)(!=|==|=)(.*)")

# What may be selected by, beside name and namespace: k8s.io/kubernetes,
# pkg/apis/*/v1/conversion.go.
_SELECTABLE = {
    "Pod": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName"),
        *("spec.serviceAccountName", "spec.hostNetwork", "status.phase"),
        *("status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "Event": (
        *("involvedObject.kind", "involvedObject.namespace", "involvedObject.name"),
        *("involvedObject.uid", "involvedObject.apiVersion"),
        *("involvedObject.resourceVersion", "involvedObject.fieldPath"),
        *("reason", "reportingComponent", "source", "type"),
    ),
}
_BY_DEFAULT = ("metadata.name", "metadata.namespace")

Labels = Mapping[str, str]


def check_selectors(query: Mapping[str, str], kind: str) -> None:
    """Refuse what cannot be selected by.

    :raises ApiError: 400 for fields that the kind cannot be selected by, and for
        labels that are no selector.
    """
    for text in filter(None, query.get("fieldSelector", "").split(",")):
        term = _FIELD.match(text)
        if term is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
        if term[1] not in (*_BY_DEFAULT, *_SELECTABLE.get(kind, ())):
            raise bad_request(f"field label not supported: {term[1]}")
    _check_labels(query.get("labelSelector", ""))


def _check_labels(text: str) -> None:
    while text := text.strip():
        term = _TERM.match(text)
        rest = text[term.end() :].strip() if term else text
        if rest and not (term and rest.startswith(",")):
            how, _, word = rest.partition(" ")
            problem = f"'{how}', expected: ',' or 'end of string'"
            if how in ("in", "notin"):
                problem = f"'{word}' expected: '('"
            raise bad_request(f"unable to parse requirement: found {problem}")
        text = rest.removeprefix(",")


def _term_matches(term: re.Match[str], labels: Labels) -> bool:
    if term["set"]:
        members = [member.strip() for member in term["members"].split(",")]
        return (labels.get(term["set"]) in members) == (term["how"] == "in")
    if term["absent"]:
        return term["absent"] not in labels
    if term["key"]:
        equal = labels.get(term["key"]) == term["value"].strip()
        return equal == (term["op"] != "!=")
    return term["present"] in labels


def labels_match(selector: str, labels: Labels) -> bool:
    """A ``labelSelector`` query parameter; an empty one matches everything."""
    return all(_term_matches(term, labels) for term in _TERM.finditer(selector))


def fields_match(selector: str, obj: Obj) -> bool:
    """A ``fieldSelector`` query parameter; any dotted path is understood.

    It has to be exact: ``kubectl drain`` finds the pods of a node by
    ``spec.nodeName=`` and would evict other nodes' pods if it were ignored.
    """
    for text in filter(None, selector.split(",")):
        term = _FIELD.match(text)
        if term is None:
            return False
        path, operator, value = term.groups()
        if (_as_text(dig(obj, path)) == value) != (operator != "!="):
            return False
    return True


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def expression_matches(expression: Mapping[str, Any], labels: Labels) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def selector_matches(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """A LabelSelector object or a plain map of labels; an empty one matches nothing."""
    if not selector:
        return False
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        selector = {"matchLabels": selector}
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(k) == v for k, v in wanted.items()) and all(
        expression_matches(e, labels) for e in selector.get("matchExpressions") or []
    )


UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

_TOLERATED_SECONDS = 300  # how long an ordinary pod stays on a node that is lost


def taints_of(node: Obj) -> list[Obj]:
    return node["spec"].get("taints") or []


def tolerated_by(taint: Obj, tolerations: list[Obj] | None) -> list[Obj]:
    """Those of the tolerations that are about this taint."""
    return [
        toleration for toleration in tolerations or [] if _tolerates(toleration, taint)
    ]


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key")
    if toleration.get("operator") == "Exists":
        return key in (None, "", taint["key"])
    same_value = toleration.get("value", "") == taint.get("value", "")
    return bool(key == taint["key"] and same_value)


def tolerates(node: Obj, tolerations: list[Obj] | None) -> bool:
    """Whether pods with those tolerations may be put on the node."""
    return all(
        tolerated_by(taint, tolerations)
        for taint in taints_of(node)
        if taint["effect"] != "PreferNoSchedule"
    )


def daemon_tolerations(own: list[Obj] | None) -> list[Obj]:
    """What a DaemonSet's pods tolerate: its own, and what does not end them.

    Not that a node is not Ready (``NoSchedule``): to such a node no new ones come
    (k8s.io/kubernetes, ``AddOrUpdateDaemonPodTolerations``).
    """
    added = (
        (NOT_READY, "NoExecute"),
        (UNREACHABLE, "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        (UNSCHEDULABLE, "NoSchedule"),
    )
    made = [
        {"key": key, "operator": "Exists", "effect": effect} for key, effect in added
    ]
    return [*(own or []), *made]


def default_tolerations(own: list[Obj] | None) -> list[Obj]:
    """What pods tolerate for a while by default."""
    added: list[Obj] = []
    for key in (NOT_READY, UNREACHABLE):
        if not tolerated_by({"key": key, "effect": "NoExecute"}, own):
            added.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_SECONDS,
                }
            )
    return [*(own or []), *added]
