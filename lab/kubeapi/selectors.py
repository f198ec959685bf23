# SPDX-License-Identifier: Apache-2.0
"""Label selectors, field selectors and LabelSelector objects against an object."""

import re
from collections.abc import Mapping
from typing import Any

from .errors import bad_request
from .objects import Obj, dig

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
