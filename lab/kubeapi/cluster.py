# SPDX-License-Identifier: Apache-2.0
"""One stand-in cluster: the store and everything that runs on it."""

import contextlib
import ipaddress
import sys
import threading
import traceback
from collections.abc import Sequence

from . import custom, default_roles, persistence
from .controllers import accounts, endpoints, jobs, namespaces, workloads
from .controllers.evictions import TaintEviction
from .controllers.hollow import HollowKubelets
from .controllers.nodes import LEASE_NAMESPACE, NodeMonitor
from .controllers.pods import PodLife
from .errors import ApiError
from .eviction import budget_status
from .objects import Obj
from .persistence import Keeper
from .resources import BUDGETS, CLUSTER_ROLES, NAMESPACES, SERVICES, Resource
from .settings import Settings
from .store import Store
from .tokens import Tokens

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
        key = persistence.fill(self.store, state) if state else ""
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
        for role in default_roles.all_roles():
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
            accounts.step(self.store, self.tokens, self.settings.ca_certificate)
            custom.step(self.store)
            default_roles.step(self.store)
            namespaces.step(self.store)
            workloads.step(self.store)
            jobs.step(self.store)
            self._evictions.step()
            self._pods.step()
            endpoints.step(self.store)
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
                state = persistence.dump(self.store, key)
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
