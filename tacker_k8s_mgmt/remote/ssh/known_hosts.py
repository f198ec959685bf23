"""What we know of other hosts' SSH keys: the text of an OpenSSH ``known_hosts`` file.

The text lives in memory; whoever made the object loads it from and stores it to where
it survives. A key is trusted on first use and refused when it changes. Lines that we
cannot use (comments, markers, patterns) are kept as they are.
"""

import base64
import hashlib
import hmac
import threading
from collections.abc import Callable, Iterable, Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.request import host_keys


def host_name(host: str, port: int) -> str:
    """Return how OpenSSH writes the host: ``[host]:port`` for ports other than 22."""
    return host if port == 22 else f"[{host}]:{port}"


def damage(text: str) -> str:
    """Why a text is not one of a ``known_hosts`` file; "" if it may be."""
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if fields and not line.startswith("#") and len(fields) < 3:
            return f"line {number} is no host key"
        if "\0" in line:
            return f"line {number} has zero bytes"
    return ""


class HostKeys:
    """Known host keys, shared by the sessions of one cluster; thread-safe.

    :param text: lines of a ``known_hosts`` file.
    :param label: where the text is recorded, for the message about a changed key.
    """

    def __init__(self, text: str = "", label: str = "known_hosts") -> None:
        self.label = label
        self._lines = [line for line in text.splitlines() if line.strip()]
        self._lock = threading.Lock()

    def text(self) -> str:
        """Return all lines, to be stored."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines)

    def preferred(
        self, host: str, port: int, offered: Iterable[str], given: Iterable[str] = ()
    ) -> list[str]:
        """Return the key types with the recorded ones first, as OpenSSH asks for them.

        Without that a host with several keys might show one that is not recorded.

        :param given: see :meth:`trust`; their types are the first ones where none is
            recorded.
        """
        kinds = {kind for kind, _ in self._known(host_name(host, port))}
        kinds = kinds or set(host_keys.kinds(given))
        if "ssh-rsa" in kinds:
            kinds |= {"rsa-sha2-512", "rsa-sha2-256"}
        return sorted(offered, key=lambda kind: kind not in kinds)

    def trust(
        self, host: str, port: int, key_type: str, key: str, given: Iterable[str] = ()
    ) -> bool:
        """Record the first key of a host, or compare with what is recorded.

        :param key: the public key in base64.
        :param given: keys and fingerprints (:mod:`tacker_k8s_mgmt.request.host_keys`);
            where there are some, the first key must be among them.
        :returns: False when the host is recorded with other keys only, or not at all
            and its key is not one of those given.
        """
        name, given = host_name(host, port), tuple(given)
        with self._lock:
            known = self._known(name)
            if known:
                return (key_type, key) in known
            if given and not host_keys.is_among(key_type, key, given):
                return False
            self._learn(f"{name} {key_type} {key}")
            return True

    def knows(self, host: str, port: int) -> bool:
        """Whether a key of the host is recorded."""
        return bool(self._known(host_name(host, port)))

    def of(self, host: str, port: int) -> list[tuple[str, str]]:
        """Type and key (base64) of every key of the host that is recorded."""
        return self._known(host_name(host, port))

    def adopt(self, host: str, port: int, other: "HostKeys") -> None:
        """Make the host's keys those that other ones have, if they have any."""
        self.record(host, port, other.of(host, port))

    def record(self, host: str, port: int, keys: Sequence[Sequence[str]]) -> None:
        """Make these the host's keys, if there are any: type and key of each."""
        name = host_name(host, port)
        theirs = [(kind, key) for kind, key in keys]
        if theirs and theirs != self._known(name):
            with self._lock:
                kept = (_without_name(line, name) for line in self._lines)
                self._lines = [line for line in kept if line]
                self._lines += [f"{name} {kind} {key}" for kind, key in theirs]

    def forget(self, host: str) -> None:
        """Drop every key of a host, on all ports: it was rebuilt or is gone."""
        with self._lock:
            kept = (_without(line, host) for line in self._lines)
            self._lines = [line for line in kept if line]

    def _learn(self, line: str) -> None:
        self._lines.append(line)

    def _known(self, name: str) -> list[tuple[str, str]]:
        """Return type and key of each line that is for this name."""
        fields = (line.split() for line in list(self._lines) if _names(line))
        return [
            (kind, key)
            for names, kind, key, *_ in fields
            if any(_matches(entry, name) for entry in names.split(","))
        ]


class RecordedKeys(HostKeys):
    """Host keys to which none is added: a host that is not recorded is refused."""

    def trust(
        self, host: str, port: int, key_type: str, key: str, given: Iterable[str] = ()
    ) -> bool:
        """Compare a host's key with what is recorded, or else with those given.

        :returns: False when it is none of them.
        :raises UnknownHostError: the host is not recorded at all, and none is given.
        """
        given = tuple(given)
        if not given and not self.knows(host, port):
            raise errors.UnknownHostError(host=host, recorded=self.label)
        return super().trust(host, port, key_type, key, given)

    def _learn(self, line: str) -> None:
        """Add nothing."""


def _names(line: str) -> list[str]:
    """Return the host names of a usable line; none for comments and markers."""
    fields = line.split()
    if len(fields) < 3 or fields[0].startswith(("#", "@")):
        return []
    return fields[0].split(",")


def _matches(entry: str, name: str) -> bool:
    if not entry.startswith("|1|"):
        return entry == name
    # A name hashed by OpenSSH's HashKnownHosts: |1|salt|HMAC-SHA1(salt, name)
    try:
        salt, digest = (base64.b64decode(part) for part in entry[3:].split("|"))
    except ValueError:
        return False
    wanted = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return hmac.compare_digest(wanted, digest)


def _without(line: str, host: str) -> str:
    """Return the line without the host's names on all ports, or "" if none is left."""
    return _kept(
        line, lambda name: _matches(name, host) or name.startswith(f"[{host}]:")
    )


def _without_name(line: str, name: str) -> str:
    """Return the line without this one name, or "" if none is left."""
    return _kept(line, lambda entry: _matches(entry, name))


def _kept(line: str, is_dropped: Callable[[str], bool]) -> str:
    names = _names(line)
    kept = [entry for entry in names if not is_dropped(entry)]
    if len(kept) == len(names):
        return line
    return f"{','.join(kept)} {line.split(None, 1)[1]}" if kept else ""
