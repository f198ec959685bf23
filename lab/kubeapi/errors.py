# SPDX-License-Identifier: Apache-2.0
"""What the API answers when it refuses: ``metav1.Status`` objects as exceptions."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .resources import Resource


# Refusals that come without details, even empty ones.
_BARE = (
    *("", "BadRequest", "Unauthorized", "UnsupportedMediaType"),
    "ServiceUnavailable",
)

TOO_MANY = 429


class ApiError(Exception):
    """An answer other than success; :attr:`status` is the body that is sent."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status: Any = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": code,
        }
        if reason:
            self.status["reason"] = reason
        if details or reason not in _BARE:
            self.status["details"] = {k: v for k, v in details.items() if v}


def refused(status: int) -> ApiError:
    """What priority and fairness says, in plain text, or a server without etcd."""
    if status != TOO_MANY:
        return ApiError(status, "", "etcdserver: request timed out")
    error = ApiError(status, "TooManyRequests", "")
    error.status = b"Too many requests, please try again later.\n"
    return error


def no_such_path() -> ApiError:
    """404 for a path below a group where nothing is served."""
    text = "the server could not find the requested resource"
    return ApiError(404, "NotFound", text)


def no_such_page() -> ApiError:
    """404 for a path that belongs to no group: Go's own plain text."""
    error = ApiError(404, "NotFound", "404 page not found")
    error.status = b"404 page not found\n"
    return error


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def method_not_allowed() -> ApiError:
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", text)


def _named(
    code: int, reason: str, resource: "Resource", name: str, message: str
) -> ApiError:
    text = f'{resource.qualified_name} "{name}" {message}'
    return ApiError(
        code, reason, text, name=name, group=resource.group, kind=resource.plural
    )


def not_found(resource: "Resource", name: str) -> ApiError:
    return _named(404, "NotFound", resource, name, "not found")


def already_exists(resource: "Resource", name: str) -> ApiError:
    return _named(409, "AlreadyExists", resource, name, "already exists")


def invalid(
    kind: str, name: str, field: str, problem: str, group: str = ""
) -> ApiError:
    """422 for one field; ``problem`` begins ``Required value`` or ``Invalid value``."""
    word = problem.partition(" ")[0]
    cause = {"reason": f"FieldValue{word}", "message": problem, "field": field}
    qualified = f"{kind}.{group}" if group else kind
    text = f'{qualified} "{name}" is invalid: {field}: {problem}'
    details = {"name": name, "group": group, "kind": kind}
    return ApiError(422, "Invalid", text, **details, causes=[cause])


def conflict(resource: "Resource", name: str) -> ApiError:
    """409 for an update of an older version than the stored one."""
    text = (
        f'Operation cannot be fulfilled on {resource.qualified_name} "{name}": the '
        "object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return ApiError(
        409, "Conflict", text, name=name, group=resource.group, kind=resource.plural
    )


def precondition_failed(wanted: str, actual: str) -> ApiError:
    """409 for an update that means another object of the same name."""
    text = (
        f"Precondition failed: UID in precondition: {wanted}, "
        f"UID in object meta: {actual}"
    )
    return ApiError(409, "Conflict", text)


def another_object(resource: "Resource", name: str, wanted: str, uid: str) -> ApiError:
    """409 for a delete that means another object of the same name."""
    text = (
        f'Operation cannot be fulfilled on {resource.kind} "{name}": the UID in the '
        f"precondition ({wanted}) does not match the UID in record ({uid}). The object "
        "might have been deleted and then recreated"
    )
    return ApiError(409, "Conflict", text, name=name, kind=resource.kind)
