"""What we know of other hosts' SSH keys: the text of an OpenSSH ``known_hosts`` file.

The text lives in memory; whoever made the object loads it from and stores it to where
it survives. A key is trusted on first use and refused when it changes. Lines that we
cannot use (comments, markers, patterns) are kept as they are.
"""

import base64
import hashlib
import hmac
import threading
from collections.abc import Iterable

from tacker_k8s_mgmt import errors


def host_name(host: str, port: int) -> str:
    """Return how OpenSSH writes the host: ``[host]:port`` for ports other than 22."""
    return host if port == 22 else f"[{host}]:{port}"


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

    def preferred(self, host: str, port: int, offered: Iterable[str]) -> list[str]:
        """Return the key types with the recorded ones first, as OpenSSH asks for them.

        Without that a host with several keys might show one that is not recorded.
        """
        kinds = {kind for kind, _ in self._known(host_name(host, port))}
        if "ssh-rsa" in kinds:
            kinds |= {"rsa-sha2-512", "rsa-sha2-256"}
        return sorted(offered, key=lambda kind: kind not in kinds)

    def trust(self, host: str, port: int, key_type: str, key: str) -> bool:
        """Record the first key of a host, or compare with what is recorded.

        :param key: the public key in base64.
        :returns: False when the host is recorded with other keys only.
        """
        name = host_name(host, port)
        with self._lock:
            known = self._known(name)
            if not known:
                self._lines.append(f"{name} {key_type} {key}")
            return not known or (key_type, key) in known

    def forget(self, host: str) -> None:
        """Drop every key of a host, on all ports: it was rebuilt or is gone."""
        with self._lock:
            kept = (_without(line, host) for line in self._lines)
            self._lines = [line for line in kept if line]

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

    def trust(self, host: str, port: int, key_type: str, key: str) -> bool:
        """Compare a host's key with what is recorded.

        :returns: False when the host is recorded with other keys only.
        :raises UnknownHostError: it is not recorded at all.
        """
        if not self._known(host_name(host, port)):
            raise errors.UnknownHostError(host=host, recorded=self.label)
        return super().trust(host, port, key_type, key)


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
    """Return the line without the host's names, or "" if none is left."""
    names = _names(line)
    kept = [
        entry
        for entry in names
        if not _matches(entry, host) and not entry.startswith(f"[{host}]:")
    ]
    if len(kept) == len(names):
        return line
    return f"{','.join(kept)} {line.split(None, 1)[1]}" if kept else ""
