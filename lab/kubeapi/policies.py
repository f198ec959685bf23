# SPDX-License-Identifier: Apache-2.0
"""ValidatingAdmissionPolicies, with the part of CEL that they are written in here.

As the API server does it (``plugin/policy/validating``): an error of an expression
refuses the object, unless another operand of ``&&`` or ``||`` decides.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import errors
from .objects import Obj, name_of
from .resources import Resource

_WORD = re.compile(
    r"\s*(?:(?P<text>'[^']*')|(?P<number>[0-9]+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>&&|\|\||==|!=|[!().,]))"
)
_LITERALS = {"true": True, "false": False, "null": None}
_Values = Mapping[str, Any]
_Expression = Callable[[_Values], Any]


class CelError(Exception):
    """An expression that cannot be read, or has no value."""


def evaluate(text: str, values: _Values) -> Any:
    """The value of an expression.

    :raises CelError: it has none.
    """
    parser = _Parser(text)
    expression = parser.either()
    if parser.words:
        raise CelError(f"not known here: {parser.words[0]}")
    return expression(values)


def check(
    policies: Iterable[Obj],
    bindings: Iterable[Obj],
    resource: Resource,
    namespace: Obj | None,
    obj: Obj,
    old: Obj | None = None,
) -> None:
    """Refuse what a bound policy does not allow.

    :raises ApiError: 422.
    """
    by_name = {name_of(policy): policy for policy in policies}
    for binding in bindings:
        spec = binding["spec"]
        policy = by_name.get(spec["policyName"])
        if policy is None or "Deny" not in spec["validationActions"]:
            continue
        scopes = (policy["spec"]["matchConstraints"], spec.get("matchResources") or {})
        if not all(_matches(one, resource, namespace, old) for one in scopes):
            continue
        for validation in policy["spec"]["validations"]:
            why = _objection(validation, obj, old)
            if why:
                raise _refusal(resource, obj, policy, binding, why)


def _objection(validation: Obj, obj: Obj, old: Obj | None) -> str:
    expression = validation["expression"]
    try:
        holds = evaluate(expression, {"object": obj, "oldObject": old})
    except CelError as error:
        return f"expression '{expression}' resulted in error: {error}"
    message = validation.get("message") or f"failed expression: {expression}"
    return "" if holds is True else str(message)


def _refusal(
    resource: Resource, obj: Obj, policy: Obj, binding: Obj, why: str
) -> errors.ApiError:
    message = (
        f"ValidatingAdmissionPolicy '{name_of(policy)}' with binding "
        f"'{name_of(binding)}' denied request: {why}"
    )
    name = obj["metadata"].get("name", "")
    text = f'{resource.qualified_name} "{name}" is forbidden: {message}'
    about = {"name": name, "group": resource.group, "kind": resource.plural}
    return errors.ApiError(422, "Invalid", text, **about, causes=[{"message": message}])


def _matches(
    scope: Obj, resource: Resource, namespace: Obj | None, old: Obj | None
) -> bool:
    wanted = (scope.get("namespaceSelector") or {}).get("matchLabels") or {}
    labels = (namespace or {"metadata": {}})["metadata"].get("labels") or {}
    if wanted and not wanted.items() <= labels.items():
        return False
    rules = scope.get("resourceRules")
    operation = "UPDATE" if old else "CREATE"
    return not rules or any(
        {"*", resource.group} & set(rule["apiGroups"])
        and {"*", resource.plural} & set(rule["resources"])
        and {"*", operation} & set(rule["operations"])
        for rule in rules
    )


class _Parser:
    """Recursive descent over the words of an expression."""

    def __init__(self, text: str) -> None:
        self.words: list[str] = []
        place = 0
        while text[place:].strip():
            found = _WORD.match(text, place)
            if not found:
                raise CelError(f"not known here: {text[place:]}")
            self.words.append(found[0].strip())
            place = found.end()

    def either(self) -> _Expression:
        return self._joined("||", True, lambda: self._joined("&&", False, self._term))

    def _take(self, *wanted: str) -> str:
        if self.words and (not wanted or self.words[0] in wanted):
            return self.words.pop(0)
        if not wanted:
            raise CelError("the expression ends too early")
        return ""

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise CelError(f"{sign} is missing")

    def _joined(
        self, sign: str, decides: bool, read: Callable[[], _Expression]
    ) -> _Expression:
        parts = [read()]
        while self._take(sign):
            parts.append(read())
        if len(parts) == 1:
            return parts[0]

        def value(values: _Values) -> bool:
            failed = None
            for part in parts:
                try:
                    if bool(part(values)) is decides:
                        return decides
                except CelError as error:
                    failed = error
            if failed:
                raise failed
            return not decides

        return value

    def _term(self) -> _Expression:
        left = self._value()
        sign = self._take("==", "!=", "in")
        if not sign:
            return left
        right = self._value()
        compare: dict[str, Callable[[Any, Any], bool]] = {
            "==": lambda a, b: bool(a == b),
            "!=": lambda a, b: bool(a != b),
            "in": lambda a, b: a in b,
        }
        return lambda values: compare[sign](left(values), right(values))

    def _value(self) -> _Expression:
        word = self._take()
        if word == "!":
            negated = self._value()
            return lambda values: not negated(values)
        if word == "(":
            inner = self.either()
            self._need(")")
            return inner
        if word.startswith("'"):
            return lambda values: word[1:-1]
        if word.isdigit():
            return lambda values: int(word)
        if word in _LITERALS:
            return lambda values: _LITERALS[word]
        if word == "has":
            self._need("(")
            path = self._value()
            self._need(")")
            return lambda values: _has(path, values)
        return self._followed(lambda values: _field(values, word))

    def _followed(self, base: _Expression) -> _Expression:
        while self._take("."):
            name = self._take()
            base = self._all(base) if name == "all" else _member(base, name)
        return base

    def _all(self, base: _Expression) -> _Expression:
        self._need("(")
        variable = self._take()
        self._need(",")
        inner = self.either()
        self._need(")")
        return lambda values: all(
            inner({**values, variable: item}) for item in base(values)
        )


def _member(base: _Expression, name: str) -> _Expression:
    def value(values: _Values) -> Any:
        found = _field(base(values), name)
        if found is None:
            # The API server has dropped it when it read the object.
            raise _missing(name)
        return found

    return value


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, Mapping) or name not in value:
        raise _missing(name)
    return value[name]


def _missing(name: str) -> CelError:
    return CelError(f"no such key: {name}")


def _has(path: _Expression, values: _Values) -> bool:
    """Whether a field is there; only the last one of a path may be missing."""
    try:
        path(values)
    except CelError as error:
        if str(error).startswith("no such key"):
            return False
        raise
    return True
