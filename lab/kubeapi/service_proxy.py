# SPDX-License-Identifier: Apache-2.0
"""Requests that the API server passes on to the pods of a Service.

Which pod would serve is found out as in Kubernetes
(``pkg/registry/core/service/storage``, ``ResourceLocation``); the pod's answer is that
of a stand-in.
"""

from .errors import ApiError, not_found
from .objects import Obj, dig
from .resources import ENDPOINTS, SERVICES
from .store import Store

_ANSWER = b"served by a stand-in\n"


def answer(store: Store, namespace: str | None, name: str) -> bytes:
    """The answer of a pod.

    :param name: ``NAME``, ``NAME:PORT`` or ``SCHEME:NAME:PORT``.
    :raises ApiError: 404, there is no such Service; 503, no such port or no ready pod.
    """
    parts = name.split(":")
    service, port = (parts[1], parts[2]) if len(parts) == 3 else ([*parts, ""])[:2]
    found = store.find(SERVICES, namespace, service)
    if found is None:
        raise not_found(SERVICES, service)
    if port and not any(_is(one, port) for one in found["spec"].get("ports", ())):
        raise _unavailable(f'no service port {port} found for service "{service}"')
    endpoints = store.find(ENDPOINTS, namespace, service) or {}
    if not dig(endpoints, "subsets", []):
        raise _unavailable(f'no endpoints available for service "{service}"')
    return _ANSWER


def _is(port: Obj, wanted: str) -> bool:
    return wanted in (str(port["port"]), port.get("name"))


def _unavailable(text: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", text)
