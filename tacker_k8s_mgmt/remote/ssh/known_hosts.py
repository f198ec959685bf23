# SPDX-License-Identifier: Apache-2.0
"""SSH host keys, held in memory as the text of an OpenSSH ``known_hosts`` file.

The caller loads and stores the text. A key is trusted on first use and refused when it
changes. Lines that cannot be used (comments, markers, patterns) are kept as they are.
"""

import base64
import hashlib
import hmac
import threading
from collections.abc import Callable, Iterable, Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.request import host_keys


def host_name(host: str, port: int) -> str:
    """Return the host as OpenSSH writes it: ``[host]:port`` for ports other than 22."""
    return host if port == 22 else f"[{host}]:{port}"


def damage(text: str) -> str:
    """Return why a text is no ``known_hosts`` file; "" if it may be one.

    As this project writes it: with at least one key, and whole lines.
    """
    if not text.strip():
        return "it is empty"
    if not text.endswith("\n"):
        return "its last line has no end"
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

    #: Whether the first key of a host is recorded.
    learns = True

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
        """Return the key types with the recorded ones first, as OpenSSH requests them.

        Otherwise a host with several keys might present one that is not recorded.

        :param given: see :meth:`trust`; their types come first if none is recorded.
        """
        kinds = {kind for kind, _ in self.of(host, port)}
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
            if there are any, the first key must be among them.
        :returns: False if other keys of the host are recorded, or none is and its key
            is not among *given*.
        :raises UnknownHostError: neither a recorded nor a given key to compare with,
            and these keys do not learn.
        """
        given = tuple(given)
        with self._lock:
            known = self.of(host, port)
            if known:
                return (key_type, key) in known
            if not given and not self.learns:
                raise errors.UnknownHostError(host=host, recorded=self.label)
            if given and not host_keys.is_among(key_type, key, given):
                return False
            if self.learns:
                self._lines.append(f"{host_name(host, port)} {key_type} {key}")
            return True

    def knows(self, host: str, port: int) -> bool:
        """Return whether a key of the host is recorded."""
        return bool(self.of(host, port))

    def of(self, host: str, port: int) -> list[tuple[str, str]]:
        """Return type and key (base64) of every recorded key of the host."""
        name = host_name(host, port)
        fields = (line.split() for line in list(self._lines))
        return [
            (kind, key)
            for names, kind, key, *_ in filter(_is_usable, fields)
            if any(_matches(entry, name) for entry in names.split(","))
        ]

    def record(self, host: str, port: int, keys: Sequence[Sequence[str]]) -> None:
        """Replace the host's keys by these (type and key of each), if there are any."""
        name = host_name(host, port)
        new = [(kind, key) for kind, key in keys]
        if new and new != self.of(host, port):
            with self._lock:
                self._drop(lambda entry: _matches(entry, name))
                self._lines += [f"{name} {kind} {key}" for kind, key in new]

    def forget(self, host: str) -> None:
        """Remove every key of a rebuilt or deleted host, on all ports."""
        with self._lock:
            self._drop(
                lambda entry: _matches(entry, host) or entry.startswith(f"[{host}]:")
            )

    def _drop(self, is_dropped: Callable[[str], bool]) -> None:
        """Remove host names from all lines, and lines without any name left."""
        kept = (_without(line, is_dropped) for line in self._lines)
        self._lines = [line for line in kept if line]


class RecordedKeys(HostKeys):
    """Host keys that are never added to; a host without a known key is refused."""

    learns = False


def _is_usable(fields: Sequence[str]) -> bool:
    """Return whether a line is a host key, not a comment or a marker."""
    return len(fields) >= 3 and not fields[0].startswith(("#", "@"))


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


def _without(line: str, is_dropped: Callable[[str], bool]) -> str:
    """Return the line without the dropped host names, or "" if none is left."""
    if not _is_usable(line.split()):
        return line
    names, rest = line.split(None, 1)
    kept = [name for name in names.split(",") if not is_dropped(name)]
    if len(kept) == len(names.split(",")):
        return line
    return f"{','.join(kept)} {rest}" if kept else ""
