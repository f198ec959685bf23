# SPDX-License-Identifier: Apache-2.0
"""Whether a CNF may use a cluster: its own login has to be of use there.

Anyone may write the address of another project's cluster into a request. A cluster is
asked over TLS, verified by the CA that the driver has recorded, not by the request's.
That it knows a token is not enough: by a webhook or a provider of OpenID, it may know
those of all users of the site.
"""

import http.client
import json
import re
import ssl
from collections.abc import Iterable, Mapping
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.vim import ClusterIdentity
from tacker_k8s_mgmt.remote import https

# A list: a tenant's account may list namespaces, and need not get this one.
_NAMESPACE = "/api/v1/namespaces?fieldSelector=metadata.name%3Dkube-system"
# Only the cluster's administrators may read these.
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?limit=1"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750
_SECONDS = 30.0
_LONGEST_NAME = 63
#: Statuses that say nothing about the login.
_BUSY = (http.client.TOO_MANY_REQUESTS, *range(500, 600))


class LoginNotAccepted(errors.TackerError):
    """A cluster does not accept the login of a CNF's VIM."""

    message = (
        "The cluster at {endpoint} does not accept the login of the CNF's VIM{what}."
    )
    default_hint = (
        "Use a VIM with a login of that cluster that may create Services in the CNF's "
        "namespace: its registered VIM, or the token of a tenant or a person."
    )


class OtherCluster(errors.TackerError):
    """Another cluster answers at the address of a recorded one."""

    message = "The API at {endpoint} is not that of the cluster of VNF instance {vnf}."
    default_hint = "Heal the cluster, or register it again, if its address has changed."


def check(
    vnf_id: str, known: ClusterIdentity, token: str, namespaces: Iterable[str]
) -> None:
    """Check that a token may create Services in a cluster.

    :param vnf_id: the cluster's VNF instance.
    :param namespaces: in each of these.
    :raises LoginNotAccepted: it may not.
    :raises OtherCluster: another cluster answers at its address.
    :raises RemoteError: it does not answer.
    """
    status, seen = _uid(known, token)
    if status == _OTHER or (known.uid and seen not in ("", known.uid)):
        raise OtherCluster(endpoint=known.endpoint, vnf=vnf_id)
    if status not in (http.client.OK, http.client.FORBIDDEN):
        raise LoginNotAccepted(endpoint=known.endpoint, what="")
    for namespace in sorted(namespaces):
        if not _may_create_services(known, token, namespace):
            what = f" for Services in namespace {namespace[:_LONGEST_NAME]!r}"
            raise LoginNotAccepted(endpoint=known.endpoint, what=what)


def identify(entry: Mapping[str, Any]) -> ClusterIdentity | None:
    """Return which cluster an entry of ``vimConnectionInfo`` leads to.

    :returns: None if it is not one that the driver can have made: it has to have an
        administrator's token of the cluster that answers.
    :raises RemoteError: the cluster does not answer.
    """
    interface, access = entry.get("interfaceInfo"), entry.get("accessInfo")
    if not isinstance(interface, Mapping) or not isinstance(access, Mapping):
        return None
    found = (interface.get("endpoint"), interface.get("ssl_ca_cert"))
    token = access.get("bearer_token")
    if not all(isinstance(text, str) and text for text in (*found, token)):
        return None
    known = ClusterIdentity(*map(str, found))
    if not _is_plain(known):
        return None
    status, uid = _uid(known, str(token))
    if status != http.client.OK or not uid:
        return None
    if _ask(known, _BINDINGS, str(token))[0] != http.client.OK:
        return None
    return ClusterIdentity(known.endpoint, known.ca_certificate, uid)


def _is_plain(known: ClusterIdentity) -> bool:
    """Whether endpoint and certificate can be those that the driver writes.

    Behind a path, a pod of a tenant's could answer: by the API server's proxy.
    """
    try:
        endpoint = untrusted.url_parts(known.endpoint)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(
            cadata=known.ca_certificate
        )
    except (ValueError, ssl.SSLError):
        return False
    return endpoint.scheme == "https" and not endpoint.path.strip("/")


def _may_create_services(known: ClusterIdentity, token: str, namespace: str) -> bool:
    wanted = {"verb": "create", "resource": "services", "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wanted},
    }
    status, body = _ask(known, _REVIEWS, token, json.dumps(review))
    if status != http.client.CREATED:
        return False
    try:
        return untrusted.parse_json(body)["status"]["allowed"] is True
    except (ValueError, KeyError, TypeError) as error:
        raise _silent(known, "its answer is not a review of an access") from error


_OTHER = 0  # in place of a status: the certificate is not of the recorded CA


def _uid(known: ClusterIdentity, token: str) -> tuple[int, str]:
    # API servers take a request without a token, as of a text with a blank in it, for
    # that of an anonymous user, whom they forbid most but do not refuse.
    if not _TOKEN.fullmatch(token):
        return http.client.UNAUTHORIZED, ""
    status, body = _ask(known, _NAMESPACE, token)
    if status == http.client.FORBIDDEN and b"system:anonymous" in body:
        return http.client.UNAUTHORIZED, ""
    if status != http.client.OK:
        return status, ""
    try:
        items = untrusted.parse_json(body)["items"]
        found = [
            str(item["metadata"]["uid"])
            for item in items
            if item["metadata"]["name"] == "kube-system"
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise _silent(known, "its answer is not a list of namespaces") from error
    return status, next(iter(found), "")


def _ask(
    known: ClusterIdentity, path: str, token: str, sent: str | None = None
) -> tuple[int, bytes]:
    """Return status and body of an answer.

    :param sent: JSON to post; None for a GET.
    """
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    try:
        status, body = https.ask(
            f"{known.endpoint.rstrip('/')}{path}",
            headers,
            sent,
            ca_certificate=known.ca_certificate,
            seconds=_SECONDS,
        )
    except ssl.SSLCertVerificationError:
        return _OTHER, b""
    except ssl.SSLError as error:
        # Also of a certificate of the CA that is none.
        raise _silent(known, error.reason or "TLS failed") from error
    except https.TooLongError as error:
        raise _silent(known, str(error)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _silent(known, type(error).__name__) from error
    except ValueError:
        # A token or an address that is none in HTTP; the text may have the token.
        return http.client.UNAUTHORIZED, b""
    if status in _BUSY:
        raise _silent(known, f"HTTP status {status}")
    return status, body


def _silent(known: ClusterIdentity, reason: str) -> errors.RemoteError:
    return errors.RemoteError(
        detail=f"The cluster at {known.endpoint}, the VIM of the CNF, could not be "
        f"asked whether it accepts the CNF's login: {reason}.",
        hint="See that the conductor reaches that address.",
    )
