"""The cluster's API, asked with ``kubectl`` on a control-plane node.

There the administrator's credentials are, and the API server is reachable whatever lies
between the nodes and us. Warnings on standard error are no failures, and a failure is
never taken for "there is none".
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import Session
from tacker_k8s_mgmt.remote.waiting import Backoff

ADMIN_CONFIG = "/etc/kubernetes/admin.conf"
ACCOUNT = "tacker-k8s-mgmt-admin"
NAMESPACE = "kube-system"

_REQUEST_LIMIT = 20  # seconds for one request to the API server
_COMMAND_LIMIT = 60.0  # seconds for kubectl, which may make several
_TOKEN_LIMIT = 60.0  # seconds until the cluster has filled in the token


@dataclass(frozen=True)
class ClusterNode:
    """A Node object.

    :param reason: why it is not Ready, in the kubelet's words; "" if it is.
    """

    name: str
    ready: bool
    reason: str
    internal_ip: str
    kubelet_version: str


@dataclass(frozen=True)
class ClusterAccess:
    """An administrator's access to the API.

    :param ca_certificate: PEM; what the API server's certificate is verified with.
    """

    token: SecretStr
    ca_certificate: str


class KubeControl:
    """The cluster behind one control-plane node.

    :param session: a session with that node; its user may use sudo.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def nodes(self) -> tuple[ClusterNode, ...]:
        """Return the cluster's nodes, by name.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: its answer could not be understood.
        """
        answer = self._json("get", "nodes")
        try:
            found = [_node(item) for item in answer["items"]]
        except (KeyError, TypeError) as error:
            raise self._unclear("get nodes", error) from error
        return tuple(sorted(found, key=lambda node: node.name))

    def admin_access(self, limit: float = _TOKEN_LIMIT) -> ClusterAccess:
        """Make our service account, if it is not there, and return its access.

        It is bound to cluster-admin, since CNFs of any kind are deployed through it.
        The token comes from a Secret: since Kubernetes 1.24 an account alone has none.

        :param limit: seconds until the cluster has to have issued the token.
        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: no token within the limit.
        """
        waiting = Backoff(limit)
        while True:
            self._kubectl("apply", "-f", "-", stdin=json.dumps(_MANIFEST))
            access = _access(self._token_secret())
            if access is not None:
                return access
            if waiting.spent():
                raise errors.ClusterError(
                    detail=f"Secret {NAMESPACE}/{ACCOUNT} holds no token after "
                    f"{limit:g} s.",
                    hint="Look whether kube-controller-manager runs, and retry.",
                )
            waiting.pause()

    def _token_secret(self) -> Mapping[str, Any]:
        """Return the Secret, or nothing if there is none.

        The token controller removes it if it does not know the account yet.
        """
        what = ("get", "secret", ACCOUNT, "-n", NAMESPACE, "--ignore-not-found")
        return self._json(*what)

    def _json(self, *args: str) -> dict[str, Any]:
        text = self._kubectl(*args, "-o", "json")
        if not text.strip():
            return {}
        try:
            answer = json.loads(text)
        except ValueError as error:
            raise self._unclear(" ".join(args), error) from error
        return answer if isinstance(answer, dict) else {}

    def _kubectl(self, *args: str, stdin: str | None = None) -> str:
        options = ["--kubeconfig", ADMIN_CONFIG, f"--request-timeout={_REQUEST_LIMIT}s"]
        return self._session.run(
            ["kubectl", *options, *args],
            stdin=stdin,
            timeout=_COMMAND_LIMIT,
            sudo=True,
        ).stdout

    def _unclear(self, command: str, error: Exception) -> errors.ClusterError:
        # Not the answer itself: it may hold the token.
        return errors.ClusterError(
            detail=f"The answer to `kubectl {command}` on {self._session.host} could "
            f"not be understood ({type(error).__name__})."
        )


def _node(item: Mapping[str, Any]) -> ClusterNode:
    status = item.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    ready = conditions.get("Ready")
    reason = ""
    if ready is None:
        reason = "its kubelet has not reported yet"
    elif ready["status"] != "True":
        words = (ready.get("reason"), ready.get("message"))
        reason = ": ".join(filter(None, words)) or f"Ready is {ready['status']}"
    return ClusterNode(
        name=item["metadata"]["name"],
        ready=not reason,
        reason=reason,
        internal_ip=next(
            (
                one["address"]
                for one in status.get("addresses", ())
                if one["type"] == "InternalIP"
            ),
            "",
        ),
        kubelet_version=status.get("nodeInfo", {}).get("kubeletVersion", ""),
    )


def _access(secret: Mapping[str, Any]) -> ClusterAccess | None:
    """Return what the Secret holds, or None while it is incomplete."""
    data = secret.get("data") or {}
    try:
        token = base64.b64decode(data["token"], validate=True).decode()
        certificate = base64.b64decode(data["ca.crt"], validate=True).decode()
    except (KeyError, TypeError, binascii.Error, UnicodeDecodeError):
        return None
    if not token or not certificate:
        return None
    return ClusterAccess(SecretStr(token), certificate)


_MANIFEST: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [
                {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
            ],
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": ACCOUNT,
                "namespace": NAMESPACE,
                "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
            },
        },
    ],
}
