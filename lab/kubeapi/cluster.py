# SPDX-License-Identifier: Apache-2.0
"""One stand-in cluster: the store, and the controllers that run on it in one thread."""

import contextlib
import ipaddress
import sys
import threading
import traceback
from collections.abc import Sequence

from . import access, custom, store, workloads
from .access import Tokens
from .admission import encode
from .eviction import TaintEviction, budget_status
from .nodes import LEASE_NAMESPACE, HollowKubelets, NodeMonitor
from .objects import (
    Obj,
    is_ready,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    selector_matches,
    with_metadata,
)
from .objects import owner_reference as reference_to
from .pods import PodLife
from .resources import (
    BUDGETS,
    CLUSTER_ROLES,
    ENDPOINTS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ApiError,
    Resource,
)
from .settings import Settings
from .store import Keeper, Store

TOKEN_SECRET = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_ACCOUNT_UID = "kubernetes.io/service-account.uid"


def fill_accounts(store: Store, tokens: Tokens, ca_certificate: str) -> None:
    """One round over namespaces and token Secrets."""
    for namespace in store.all(NAMESPACES):
        name = name_of(namespace)
        if is_terminating(namespace):
            continue
        if store.find(SERVICE_ACCOUNTS, name, "default") is None:
            store.create(SERVICE_ACCOUNTS, name, {"metadata": {"name": "default"}})
    for secret in store.all(SECRETS):
        if secret["type"] == TOKEN_SECRET:
            _fill_secret(store, tokens, ca_certificate, secret)


def _fill_secret(
    store: Store, tokens: Tokens, ca_certificate: str, secret: Obj
) -> None:
    """Fill the Secret of an account, delete one whose account is not there."""
    namespace = namespace_of(secret) or ""
    annotations = secret["metadata"].get("annotations") or {}
    name = annotations.get(_ACCOUNT_NAME, "")
    account = store.find(SERVICE_ACCOUNTS, namespace, name)
    if account is None:
        store.delete(SECRETS, secret)
        return
    if "token" in (secret.get("data") or {}):
        return
    texts = {
        "token": tokens.of_secret(account, secret),
        "ca.crt": ca_certificate,
        "namespace": namespace,
    }
    filled = {key: encode(text) for key, text in texts.items()}
    annotations = {**annotations, _ACCOUNT_UID: account["metadata"]["uid"]}
    metadata = with_metadata(secret, annotations=annotations)["metadata"]
    data = {**(secret.get("data") or {}), **filled}
    store.replace(SECRETS, secret, metadata=metadata, data=data)


def fill_endpoints(store: Store) -> None:
    """One round over all Services that have a selector."""
    for service in store.all(SERVICES):
        if service["spec"].get("selector"):
            _endpoints(store, service)


def _endpoints(store: Store, service: Obj) -> None:
    namespace, spec = namespace_of(service), service["spec"]
    addresses = [
        {
            "ip": pod["status"]["podIP"],
            "nodeName": pod["spec"]["nodeName"],
            "targetRef": {
                "kind": "Pod",
                "name": name_of(pod),
                "namespace": namespace,
                "uid": pod["metadata"]["uid"],
            },
        }
        for pod in store.all(PODS, namespace)
        if is_ready(pod) and selector_matches(spec["selector"], labels_of(pod))
    ]
    ports = [
        {"port": _target_port(p), "protocol": p["protocol"]}
        for p in spec.get("ports", [])
    ]
    subsets = [{"addresses": addresses, "ports": ports}] if addresses else []
    found = store.find(ENDPOINTS, namespace, name_of(service))
    if found is None:
        metadata = {
            "name": name_of(service),
            "ownerReferences": [reference_to(service)],
        }
        found = store.create(ENDPOINTS, namespace, {"metadata": metadata})
    store.replace(ENDPOINTS, found, subsets=subsets)


def _target_port(port: Obj) -> int:
    target = port["targetPort"]
    return target if isinstance(target, int) else port["port"]


def empty_namespaces(store: Store) -> None:
    """One round over all namespaces."""
    for namespace in store.all(NAMESPACES):
        if not is_terminating(namespace):
            continue
        kinds = [kind for kind in store.kinds.values() if kind.namespaced]
        name = name_of(namespace)
        # Objects that cannot be listed cannot be deleted: the namespace waits for them.
        known = [kind for kind in kinds if not custom.unreadable(store, kind)]
        for kind in known:
            for obj in store.all(kind, name):
                store.delete(kind, obj)
        if known == kinds and not any(store.all(kind, name) for kind in kinds):
            store.remove(NAMESPACES, namespace)


_PERIOD = 0.1  # seconds between two rounds of the controllers
_ROUNDS_PER_SAVE = 5


class Cluster:
    """Store, tokens and controllers.

    :param keeper: keeps the store; without one it is lost at the end.
    :param hollow_nodes: nodes whose kubelets are inside this process.
    """

    def __init__(
        self,
        settings: Settings,
        keeper: Keeper | None = None,
        hollow_nodes: Sequence[str] = (),
    ) -> None:
        self.settings = settings
        self.store = Store(settings.service_network)
        self._keeper = keeper
        self._saving = threading.Lock()
        state = keeper.load() if keeper else None
        key = store.fill(self.store, state) if state else ""
        self.tokens = Tokens(self.store, key)
        self._saved_key = key
        self._bootstrap()
        custom.step(self.store)
        self._hollow = HollowKubelets(self.store, settings, hollow_nodes)
        self._hollow.register()
        self._monitor = NodeMonitor(self.store, settings.node_grace)
        self._evictions = TaintEviction(self.store)
        self._pods = PodLife(self.store, settings)
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _bootstrap(self) -> None:
        for name in ("default", "kube-system", "kube-public", LEASE_NAMESPACE):
            self._ensure(NAMESPACES, None, {"metadata": {"name": name}})
        for role in access.all_roles():
            self._ensure(CLUSTER_ROLES, None, role)
        network = ipaddress.ip_network(self.settings.service_network)
        api = {
            "metadata": {"name": "kubernetes"},
            "spec": {
                "clusterIP": str(network[1]),
                "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
            },
        }
        self._ensure(SERVICES, "default", api)

    def _ensure(self, resource: Resource, namespace: str | None, obj: Obj) -> None:
        with contextlib.suppress(ApiError):
            self.store.create(resource, namespace, obj)

    def step(self) -> None:
        """One round of every controller."""
        with self.store.lock:
            self._hollow.step()
            self._monitor.step()
            fill_accounts(self.store, self.tokens, self.settings.ca_certificate)
            custom.step(self.store)
            access.create_default_roles(self.store)
            empty_namespaces(self.store)
            workloads.run_workloads(self.store)
            workloads.run_jobs(self.store)
            self._evictions.step()
            self._pods.step()
            fill_endpoints(self.store)
            for budget in self.store.all(BUDGETS):
                status = budget_status(self.store, budget)
                self.store.replace(BUDGETS, budget, status=status)

    def save(self) -> None:
        """Have the store kept, if anything but heartbeats changed since the last time.

        :raises OSError, EtcdError: it was not.
        """
        if self._keeper is None:
            return
        with self._saving:
            with self.store.lock:
                key = self.tokens.signing_key
                kept = (self.store.saved_version, self._saved_key)
                if kept == (self.store.version, key):
                    return
                state = store.dump(self.store, key)
            self._keeper.save(state)
            self._saved_key = key
            with self.store.lock:
                # A heartbeat moved it along if it came after the last other change.
                newer = max(self.store.saved_version, state["version"])
                self.store.saved_version = newer

    def _run(self) -> None:
        rounds, trouble = 0, ""
        while not self.stopping.wait(_PERIOD):
            rounds += 1
            try:
                self.step()
                if rounds % _ROUNDS_PER_SAVE == 0:
                    self.save()
            except Exception:  # one bad object must not stop the cluster
                if traceback.format_exc() != trouble:
                    trouble = traceback.format_exc()
                    print(trouble, file=sys.stderr, flush=True)

    def start(self) -> None:
        """Run the controllers in a thread of their own."""
        self._thread.start()

    def stop(self, keep: bool = True) -> None:
        """End the controllers and all watches.

        :param keep: save the state first.
        """
        self.stopping.set()
        self._thread.join()
        if keep:
            self.save()
