# SPDX-License-Identifier: Apache-2.0
"""Several API servers on one etcd: one of them serves, the others hand requests on.

A real API server keeps nothing to itself, so all of them serve at once. This one has
the whole state and the controllers in its memory; so the one that etcd's lease names
works, writes each change to etcd before it answers, and stops when it may not continue.
"""

import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable

from .cluster import Cluster
from .etcd import LEASE, Claim, Etcd, EtcdError, EtcdKeeper
from .resources import ApiError
from .store import Keeper

_PERIOD = 0.5  # seconds between two questions for the lease
_PATIENCE = 8.0  # seconds that a request waits for a server of the API
_ELECTION = 2.0  # seconds more than a lease until a server without etcd is not ready

Place = Cluster | str
"""The server of the API: a cluster of our own, or the URL of another API server."""


class Replica:
    """One API server's part in it, from :meth:`start` to :meth:`stop`.

    :param url: where the other API servers reach this one.
    :param make: makes a cluster of what is kept.
    """

    def __init__(self, url: str, etcd: Etcd, make: Callable[[Keeper], Cluster]) -> None:
        self._url = url
        self._etcd = etcd
        self._make = make
        self._known = threading.Condition()
        self._place: Place | None = None
        self._epoch = 0
        self._until = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Take part."""
        self._thread.start()

    def stop(self) -> None:
        """Take part no longer; another one may serve at once."""
        self._stopping.set()
        self._thread.join()
        if isinstance(self._place, Cluster):
            # Another one may serve already; what was answered is in etcd anyway.
            with contextlib.suppress(EtcdError):
                self._leave(keep=True)
            self._etcd.release()

    def place(self) -> Place:
        """The server of the API, as soon as there is one.

        :raises ApiError: 503, none for too long.
        """
        with self._known:
            if not self._known.wait_for(self._is_known, _PATIENCE) or not self._place:
                raise unavailable("etcdserver: no leader")
            return self._place

    def _is_known(self) -> bool:
        return self._place is not None and time.monotonic() < self._until

    def is_ready(self) -> bool:
        """Whether etcd has answered lately; an election alone refuses no requests."""
        return time.monotonic() < self._until + _ELECTION

    def commit(self, cluster: Cluster) -> None:
        """Have etcd keep what was changed.

        :raises ApiError: 503; what this server has in memory is forgotten then.
        """
        try:
            cluster.save()
        except EtcdError as error:
            with self._known:
                if self._place is cluster:
                    self._until = 0.0
                    self._epoch = 0
            raise unavailable(str(error)) from error

    def _run(self) -> None:
        while not self._stopping.wait(_PERIOD):
            try:
                self._look()
            except Exception:
                # The next look may succeed; meanwhile the last claim runs out.
                traceback.print_exc(file=sys.stderr)

    def _look(self) -> None:
        """Claim the API, and serve or forward by the answer."""
        sent_at = time.monotonic()
        try:
            claim = self._etcd.claim(self._url)
        except EtcdError:
            if time.monotonic() > self._until:
                self._leave()
            return
        if claim.url != self._url:
            self._leave()
            self._settle(claim.url, sent_at)
            return
        place = self._place
        if not isinstance(place, Cluster) or self._epoch != claim.epoch:
            self._leave()
            place = self._begin(claim)
        self._settle(place, sent_at)

    def _begin(self, claim: Claim) -> Cluster:
        cluster = self._make(EtcdKeeper(self._etcd, claim.epoch))
        cluster.save()
        cluster.start()
        self._epoch = claim.epoch
        print(f"serving, epoch {self._epoch}", flush=True)
        return cluster

    def _settle(self, place: Place | None, sent_at: float) -> None:
        with self._known:
            self._place, self._until = place, sent_at + LEASE
            self._known.notify_all()

    def _leave(self, keep: bool = False) -> None:
        """Serve no longer, and know no server that does."""
        with self._known:
            place, self._place, self._epoch = self._place, None, 0
        if isinstance(place, Cluster):
            print("no longer serving", flush=True)
            place.stop(keep)


def unavailable(message: str) -> ApiError:
    """503: another server, or the same a little later, may answer."""
    return ApiError(503, "ServiceUnavailable", message)
