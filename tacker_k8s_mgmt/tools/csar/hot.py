# SPDX-License-Identifier: Apache-2.0
"""A Base HOT by itself: dead references, missing values, values that Heat refuses.

The checks of values follow ``heat/engine/parameters.py`` and ``constraints.py``: what
Heat refuses before it creates anything. Constraints that ask the cloud, such as
``nova.flavor``, are left to it.

A regular expression of a package may take for ever or all memory: both the expression
and the text are of others, and Python's ``re`` has no time limit. Neither a limit of
their lengths nor a look at the expression would be safe, so a child process, which can
be ended, compares them.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, sequence
from tacker_k8s_mgmt.request import structure
from tacker_k8s_mgmt.topology.base_hot import BaseHot, Template


def problems(hot: BaseHot) -> list[str]:
    """Dead references, and parameters without a value."""
    templates = (hot.top, *hot.nested.values())
    dead = [f"{t.name}: {text}" for t in templates for text in _dead_references(t)]
    misused = [
        f"{template.name}: {name} {text}"
        for template in templates
        for name, definition in template.resources.items()
        for text in _use_problems(hot, hot.use(definition))
    ]
    nfv = dig(hot.top.parameters, "nfv", "type") == "json"
    return [
        *dead,
        *misused,
        *([] if nfv else [f"{hot.top.name}: there is no parameter nfv of type json"]),
    ]


def unusable_words(hot: BaseHot) -> Iterator[str]:
    """What Tacker's v1 API cannot send to Heat.

    It takes ``password`` anywhere in the main template's text for a key of the template
    (``heat_client.py``, ``create``).
    """
    for kind in ("parameters", "resources"):
        for name, definition in getattr(hot.top, kind).items():
            if "password" in json.dumps({name: definition}, default=str):
                yield (
                    f"{hot.top.name}: {kind}.{name}: Tacker's v1 API fails on a "
                    "template with the word password; write passwd in user data, or "
                    "move the resource into a nested template"
                )


def _dead_references(template: Template) -> Iterator[str]:
    for name, definition in template.resources.items():
        for function, target in references(definition):
            known = (
                template.parameters if function == "get_param" else template.resources
            )
            if target not in known and not target.startswith("OS::"):
                yield f"{name} refers to {target} with {function}, which does not exist"


def references(value: Any) -> Iterator[tuple[str, str]]:
    """``(function, name)`` of every reference in *value*, at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "depends_on" and isinstance(inner, list):
                yield from ((key, str(target)) for target in inner)
            elif key in ("get_param", "get_resource", "get_attr", "depends_on"):
                yield key, str(inner[0] if isinstance(inner, list) and inner else inner)
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def parameter_paths(value: Any) -> Iterator[tuple[str, ...]]:
    """The argument of every ``get_param`` in *value* that is a path of names."""
    if isinstance(value, Mapping):
        path = value.get("get_param")
        if isinstance(path, list) and path:
            yield tuple(map(str, path))
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from parameter_paths(inner)


def _use_problems(hot: BaseHot, used: Mapping[str, Any] | None) -> Iterator[str]:
    if used is None:
        return
    nested = hot.nested.get(used["type"])
    if nested is None:
        yield f"uses {used['type']}, which is not in nested/"
        return
    given = set(mapping(used.get("properties")))
    required = {name for name, s in nested.parameters.items() if "default" not in s}
    for name in sorted(given - set(nested.parameters)):
        yield f"gives {nested.name} the parameter {name}, which it does not have"
    for name in sorted(required - given):
        yield f"does not give {nested.name} the parameter {name}"


_LIMIT = 5.0  # seconds
# Python itself ends with 1 after an error, such as that of the memory's limit.
_FITS, _DIFFERS, _INVALID = 0, 11, 12
_MEMORY = 512 * 2**20  # bytes
_CHILD = f"""
import json, re, resource, signal, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
pattern, text, seconds = json.load(sys.stdin)
# It ends without its parent, too, which may be killed meanwhile.
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.setitimer(signal.ITIMER_REAL, seconds)
try:
    compiled = re.compile(pattern)
except (re.error, OverflowError, RecursionError):
    sys.exit({_INVALID})
sys.exit({_FITS} if compiled.fullmatch(text) else {_DIFFERS})
"""
#: The answer about one that took too long, or too much memory.
TOO_MUCH = "takes too long to compare with"


def problem(pattern: str, text: str) -> str:
    """Why a text does not match a pattern whole, as a verb; "" if it does.

    A pattern that is no regular expression is no problem of the text.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input=json.dumps([pattern, text, _LIMIT + 1]).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TOO_MUCH
    verbs = {_FITS: "", _DIFFERS: "does not match", _INVALID: ""}
    return verbs.get(done.returncode, TOO_MUCH)


_BOOLEANS = frozenset(
    (*("t", "true", "on", "y", "yes", "1"), *("f", "false", "off", "n", "no", "0"))
)


def value_problems(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Why a parameter does not take a value; nothing for a marked blank.

    :param schema: of the parameter, as a HOT has it.
    :return: sentences that begin with the value.
    """
    if structure.is_in(value):
        return []
    kind = str(schema.get("type"))
    shown = "the hidden value" if schema.get("hidden") else _shown(value)
    try:
        typed = _typed(kind, value)
    except (ValueError, TypeError):
        return [f"{shown} is no {kind.replace('_', ' ')}"]
    return [
        f"{shown} {text}"
        for constraint in sequence(schema.get("constraints"))
        for text in _broken(mapping(constraint), kind, typed)
    ]


def _typed(kind: str, value: Any) -> Any:
    """A value as Heat reads it.

    :raises ValueError, TypeError: it cannot.
    """
    match kind:
        case "number":
            return _number(value)
        case "json" if isinstance(value, str) and value:
            return json.loads(value)
        case "comma_delimited_list" if isinstance(value, str):
            return [part.strip() for part in value.split(",")]
    is_wrong = {
        "boolean": str(value).strip().lower() not in _BOOLEANS,
        "comma_delimited_list": not isinstance(value, list),
        "string": isinstance(value, dict | list),
    }
    if is_wrong.get(kind):
        raise ValueError(value)
    return value


def _number(value: Any) -> float:
    if isinstance(value, int | float):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def _broken(constraint: Mapping[str, Any], kind: str, value: Any) -> Iterator[str]:
    """What a value breaks of one constraint."""
    for name, wanted in constraint.items():
        check = _CHECKS.get(name)
        if check and (why := check(wanted, kind, value)):
            more = constraint.get("description")
            yield f"{why} ({more})" if more else why


def _range(wanted: Any, kind: str, value: Any) -> str:
    if not isinstance(value, int | float):
        return ""
    return _limits(mapping(wanted), value, "is", "")


def _length(wanted: Any, kind: str, value: Any) -> str:
    if not hasattr(value, "__len__"):
        return ""
    unit = " characters" if isinstance(value, str) else " entries"
    return _limits(mapping(wanted), len(value), "has", unit)


def _limits(wanted: Mapping[str, Any], number: float, verb: str, unit: str) -> str:
    low, high = (wanted.get(name) for name in ("min", "max"))
    if isinstance(low, int | float) and number < low:
        return f"{verb} less than {low}{unit}"
    if isinstance(high, int | float) and number > high:
        return f"{verb} more than {high}{unit}"
    return ""


def _modulo(wanted: Any, kind: str, value: Any) -> str:
    step, offset = (mapping(wanted).get(name, 0) for name in ("step", "offset"))
    if not isinstance(value, int | float) or not step or value % step == offset:
        return ""
    return f"is no multiple of {step}" + (f" and {offset}" if offset else "")


def _allowed(wanted: Any, kind: str, value: Any) -> str:
    known = sequence(wanted)
    if kind == "number":
        is_known = value in map(_number, known)
    else:
        read = str.lower if kind == "boolean" else str
        given = value if isinstance(value, list) else [value]
        is_known = {read(str(one)) for one in given} <= {read(str(k)) for k in known}
    return "" if is_known else f"is none of {', '.join(map(str, known))}"


def _pattern(wanted: Any, kind: str, value: Any) -> str:
    if not isinstance(value, str):
        return ""
    why = problem(str(wanted), value)
    return f"{why} {wanted}" if why else ""


def _custom(wanted: Any, kind: str, value: Any) -> str:
    try:
        match wanted:
            case "net_cidr":
                network_plugins.network(str(value))
            case "ip_addr":
                network_plugins.address(str(value))
    except ValueError:
        return (
            "is no network such as 192.0.2.0/24"
            if wanted == "net_cidr"
            else "is no IP address"
        )
    return ""


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return text if text.isprintable() and text else repr(text)


_CHECKS: Mapping[str, Callable[[Any, str, Any], str]] = {
    "range": _range,
    "length": _length,
    "modulo": _modulo,
    "allowed_values": _allowed,
    "allowed_pattern": _pattern,
    "custom_constraint": _custom,
}
