"""Label selectors, field selectors and LabelSelector objects against an object."""

import re
from collections.abc import Mapping
from typing import Any

from .objects import Obj, dig

_TERM = re.compile(
    r"(?P<set>[^,=!\s()]+)\s+(?P<how>in|notin)\s*\((?P<members>[^)]*)\)"
    r"|!\s*(?P<absent>[^,=!\s]+)"
    r"|(?P<key>[^,=!\s]+)\s*(?P<op>!=|==|=)\s*(?P<value>[^,]*)"
    r"|(?P<present>[^,=!\s]+)"
)
_FIELD = re.compile(r"([^=!]+)(!=|==|=)(.*)")

Labels = Mapping[str, str]


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
        if (str(dig(obj, path)) == value) != (operator != "!="):
            return False
    return True


def _expression_matches(expression: Mapping[str, Any], labels: Labels) -> bool:
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
        _expression_matches(e, labels) for e in selector.get("matchExpressions") or []
    )
