# SPDX-License-Identifier: Apache-2.0
"""Faults of the calls of ports: before or after their effect, or as a conductor's end.

Every call goes through a :class:`Gate`, which counts them. It also records calls that
change the cluster without its lock.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt import errors

#: Attributes of a site that are ports.
_PORTS = ("workdir", "playbooks", "vims")
#: Methods of a site that return a port.
_CONNECTING = ("cluster", "manifests", "balancer", "etcd", "pod_network", "helm")
#: Calls that change the cluster or its directory, so that they need its lock.
_CHANGES = {
    "workdir": ("write", "remove", "clear"),
    "playbooks": ("run",),
    "cluster": (
        *("cordon", "uncordon", "drain", "force_evict", "remove_nodes"),
        *("mark", "publish", "move_cluster_info"),
    ),
    "balancer": ("call",),
    "site": ("record_host_keys",),
}


class ConductorDied(BaseException):
    """The process of the hook was killed."""


@dataclass(frozen=True)
class Fault:
    """What happens to one call of a port.

    :param at: the number of the call in its hook.
    :param after: the call takes effect first; of a playbook's run, half of it does.
    :param dies: the conductor is killed.
    """

    at: int
    after: bool = False
    dies: bool = False


@dataclass(frozen=True)
class Trouble:
    """All that goes wrong during one hook.

    :param away: ports that fail at each call.
    """

    faults: tuple[Fault, ...] = ()
    away: frozenset[str] = frozenset()


NONE = Trouble()


def _error(port: str, call: str) -> Exception:
    """What this port usually raises."""
    if port == "playbooks" and call == "run":
        return errors.PlaybookFailed(
            playbook="a.yml", host="a", rc=2, failures=["a: task: no"], log="l"
        )
    if port == "balancer" and call == "call":
        return errors.LoadBalancerError(host="b", verb="v", reason="fault")
    if port == "vims":
        return errors.VimError(detail="fault in Tacker's registry.")
    if call == "drain":
        return errors.DrainError(failed=1, outcomes=["a pod is kept"])
    if call == "lock":
        return errors.LockedError(path="p", host="a", owner="another")
    if call in ("machines", "resources"):
        return errors.RemoteError(detail="Heat does not answer.")
    return errors.ConnectionLost(
        user="u", host=port, port=22, seconds=1, command=call, reason="fault"
    )


class Gate:
    """Counts the calls of one hook, and makes some of them fail.

    :ivar calls: names of the calls, in order.
    :ivar fired: names of those that failed.
    :ivar midway: whether the run of a playbook ends after its first host.
    :ivar violations: what an operation must not have done.
    """

    def __init__(self) -> None:
        self.trouble = NONE
        self.calls: list[str] = []
        self.fired: list[str] = []
        self.locked = self.lock_failed = self.midway = False
        self.violations: list[str] = []

    def open(self, trouble: Trouble) -> None:
        """Begin a hook."""
        self.trouble = trouble
        self.calls, self.fired = [], []
        self.locked = self.lock_failed = self.midway = False

    def through(self, port: str, call: str, effect: Callable[[], Any]) -> Any:
        """Make one call."""
        name = f"{port}.{call}"
        number = len(self.calls)
        self.calls.append(name)
        self._see_lock(port, call)
        fault = self._fault(number, port)
        if fault is None or fault.after:
            self.midway = fault is not None and name == "playbooks.run"
            result = effect()
            self._note_lock(name)
        if fault is None:
            return result
        self.fired.append(name)
        if fault.dies:
            raise ConductorDied
        self.lock_failed = self.lock_failed or name == "site.lock"
        raise _error(port, call)

    def _fault(self, number: int, port: str) -> Fault | None:
        if port in self.trouble.away:
            return Fault(number)
        return next((one for one in self.trouble.faults if one.at == number), None)

    def _see_lock(self, port: str, call: str) -> None:
        # At the end of a cluster its lock is no reason to keep the directory.
        ends = call in ("remove", "clear")
        allowed = self.locked or (ends and self.lock_failed)
        if call in _CHANGES.get(port, ()) and not allowed:
            self.violations.append(f"{port}.{call} without the cluster's lock")

    def _note_lock(self, name: str) -> None:
        if name == "site.lock":
            self.locked = True


class Ported:
    """A port, or a site that has some, behind a gate."""

    def __init__(self, target: Any, port: str, gate: Gate) -> None:
        self._target, self._port, self._gate = target, port, gate

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        is_site = self._port == "site"
        if is_site and name in _PORTS:
            return Ported(value, name, self._gate)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            def effect() -> Any:
                return value(*args, **kwargs)

            if is_site and name in _CONNECTING:
                # A login is counted, and so is each command.
                made = self._gate.through(name, "login", effect)
                return Ported(made, name, self._gate)
            return self._gate.through(self._port, name, effect)

        return call


class Immediately:
    """An executor whose work is done when it is submitted, so that calls have an order.

    A killed conductor does not wait for a result.
    """

    def __init__(self, _workers: int = 1) -> None:
        pass

    def __enter__(self) -> "Immediately":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *args: Any) -> "_Done":
        try:
            return _Done(work(*args))
        except Exception as error:
            return _Done(error=error)


class _Done:
    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self._value, self._error = value, error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value
