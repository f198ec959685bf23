"""What the API answers when it refuses: ``metav1.Status`` objects as exceptions."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .resources import Resource


class ApiError(Exception):
    """An answer other than success; :attr:`status` is the body that is sent."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }


def no_such_path() -> ApiError:
    """404 for a path where nothing is served."""
    text = "the server could not find the requested resource"
    return ApiError(404, "NotFound", text)


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


def invalid(resource: "Resource", name: str, message: str) -> ApiError:
    text = f'{resource.kind} "{name}" is invalid: {message}'
    return ApiError(422, "Invalid", text, name=name, kind=resource.kind)


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
    """409 for a request that means another object of the same name."""
    text = (
        f"Precondition failed: UID in precondition: {wanted}, "
        f"UID in object meta: {actual}"
    )
    return ApiError(409, "Conflict", text)
