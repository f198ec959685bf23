# SPDX-License-Identifier: Apache-2.0
"""SSH host keys, in memory and in files, as OpenSSH's ``known_hosts`` has them.

A key is trusted on first use and refused when it changes. Lines that cannot be used
(comments, markers, patterns) are kept as they are. The keys in memory are a text, which
the caller loads and stores. The files have the keys of hosts that outlive clusters.
"""

import base64
import fcntl
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO
from urllib.parse import quote

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.request import host_keys

# A host's name or address, also with a zone, or behind a bastion. No comma, blank, line
# feed, bracket or wildcard: those make several names, lines or patterns of it.
_NAME = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:%-]*")
_KIND = re.compile(r"[a-z][A-Za-z0-9@.-]*")
_KEY = re.compile(r"[A-Za-z0-9+/]+=*")
_REVOKED = "@revoked"


def host_name(host: str, port: int) -> str:
    """Return the host as OpenSSH writes it: ``[host]:port`` for ports other than 22."""
    return host if port == 22 else f"[{host}]:{port}"


def behind(host: str, bastion: str, port: int) -> str:
    """Return the name of a host behind a bastion.

    Hosts behind different bastions may have the same private address.

    :param port: the bastion's.
    """
    return f"{host}%{bastion}%{port}"


def _spelled(entry: str) -> str:
    """Return a host of ``known_hosts`` in one spelling, with its port if it has one."""
    host, end, port = entry.removeprefix("[").partition("]:")
    host = host.lower().removesuffix(".")
    with suppress(ValueError):
        host = network_plugins.shortest(host)
    return f"[{host}]:{port}" if end else host


def _earlier_name(host: str) -> str:
    """Return the name that releases without the bastion's port recorded."""
    name, _, port = host.rpartition("%")
    return name if "%" in name and port.isdecimal() else host


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
    :param former: keys that count for hosts of which none is recorded here. They are
        recorded here, too, once such a host has shown one of them.
    """

    #: Whether the first key of a host is recorded.
    learns = True

    def __init__(
        self,
        text: str = "",
        label: str = "known_hosts",
        former: Sequence["HostKeys"] = (),
    ) -> None:
        self.label = label
        self._former = tuple(former)
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
        kinds = {kind for keys in self._known(host, port) for kind, _ in keys}
        kinds = kinds or set(host_keys.kinds(given))
        if "ssh-rsa" in kinds:
            kinds |= {"rsa-sha2-512", "rsa-sha2-256"}
        return sorted(offered, key=lambda kind: kind not in kinds)

    def trust(
        self, host: str, port: int, key_type: str, key: str, given: Iterable[str] = ()
    ) -> bool:
        """Record the first key of a host, or compare with what is recorded.

        :param key: the public key in base64.
        :param given: keys and fingerprints (:mod:`tacker_k8s_mgmt.request.accounts`);
            if there are any, the first key must be among them.
        :returns: False if other keys of the host are recorded, or none is and its key
            is not among *given*.
        :raises UnknownHostError: neither a recorded nor a given key to compare with,
            and these keys do not learn.
        :raises RevokedKeyError: the key is revoked for this host.
        :raises HostNameError: the name is not one that can be recorded.
        """
        given = tuple(given)
        name = self._checked_name(host, port)
        self._check_keys([(key_type, key)])
        if place := self.revoked(host, port, key):
            raise errors.RevokedKeyError(host=host, recorded=place)
        with self._lock:
            known = self._known(host, port)
            if known:
                is_known = all((key_type, key) in keys for keys in known)
                if is_known and self.learns and not self.of(host, port):
                    keys = dict.fromkeys(key for keys in known for key in keys)
                    self._lines += [f"{name} {kind} {text}" for kind, text in keys]
                return is_known
            if not given and not self.learns:
                raise errors.UnknownHostError(host=host, recorded=self.label)
            if given and not host_keys.is_among(key_type, key, given):
                return False
            if self.learns:
                self._lines.append(f"{name} {key_type} {key}")
            return True

    def knows(self, host: str, port: int) -> bool:
        """Return whether a key of the host is recorded."""
        return bool(self.of(host, port))

    def recorded_in(self, host: str, port: int) -> str:
        """Return where keys of the host are recorded; "" for nowhere."""
        if self.knows(host, port):
            return self.label
        name = _earlier_name(host)
        return " and ".join(
            keys.label
            for keys in self._former
            if keys.knows(host, port) or keys.knows(name, port)
        )

    def revoked(self, host: str, port: int, key: str) -> str:
        """Return where a key is marked as revoked for the host; "" for nowhere.

        For a name with wildcards or exceptions it is, whatever they are: they may be
        hostile, and a key that is revoked for some hosts is not to be trusted. Nor does
        a host escape by another spelling of its name.
        """
        written = {host, _earlier_name(host), host.partition("%")[0]}
        addresses = written | set(map(_spelled, written))
        names = {*addresses, *(host_name(name, port) for name in addresses)}
        for line in list(self._lines):
            marker, entries, _, shown = [*line.split(), "", "", ""][:4]
            if marker == _REVOKED and shown == key:
                if set(entries) & set("*?!"):
                    return self.label
                every = [e for one in entries.split(",") for e in (one, _spelled(one))]
                if any(_matches(entry, name) for entry in every for name in names):
                    return self.label
        places = (keys.revoked(host, port, key) for keys in self._former)
        return next(filter(None, places), "")

    def only_revoked(self) -> "HostKeys":
        """Return these without the keys of hosts, for a host whose keys are given."""
        text = "".join(
            f"{line}\n" for line in self._lines if line.split()[0] == _REVOKED
        )
        former = [keys.only_revoked() for keys in self._former]
        return HostKeys(text, self.label, former)

    def _known(self, host: str, port: int) -> list[list[tuple[str, str]]]:
        """Return the host's keys in each place that counts for it."""
        if own := self.of(host, port):
            return [own]
        name = _earlier_name(host)
        former = (keys.of(host, port) or keys.of(name, port) for keys in self._former)
        return [keys for keys in former if keys]

    def _checked_name(self, host: str, port: int) -> str:
        if not _NAME.fullmatch(host):
            raise self._refusal("A host's name", "one name or address")
        return host_name(host, port)

    def _check_keys(self, keys: Iterable[tuple[str, str]]) -> None:
        if not all(_KIND.fullmatch(kind) and _KEY.fullmatch(key) for kind, key in keys):
            raise self._refusal("An SSH host key", "a kind and a key in base64")

    def _refusal(self, what: str, wanted: str) -> errors.RemoteError:
        # The text is not repeated: it may be of any length and form.
        return errors.HostNameError(what=what, wanted=wanted, recorded=self.label)

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
        name = self._checked_name(host, port)
        new = [(kind, key) for kind, key in keys]
        self._check_keys(new)
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


#: The name of host key files: below ``[k8s_mgmt] state_path``, and per cluster.
KNOWN_HOSTS = "known_hosts"
_APART = "known_hosts.d"


def paths(state_path: str, project_id: str, vnf_id: str) -> tuple[str, str]:
    """Return the file of a project, and the operator's own that counts for all.

    A request of one project must not have a say in which hosts another one trusts.

    :param project_id: "" where it is not known: then the file is the VNF instance's.
    """
    owner = f"project-{project_id}" if project_id else f"vnf-{vnf_id}"
    own = os.path.join(state_path, _APART, quote(owner, safe=""))
    return own, os.path.join(state_path, KNOWN_HOSTS)


class KeyFile:
    """A ``known_hosts`` file of Ansible servers and bastions on the conductor's host.

    These hosts outlive clusters, so their keys are kept with the journals, not in a
    cluster's directory. Concurrent hooks share the file, so access is locked.

    :param path: the file.
    :param former: a file whose keys count, too, until this one has some of a host; it
        is never written. Earlier releases recorded all keys there.
    """

    def __init__(self, path: str, former: str = "") -> None:
        self._path = path
        self._former = former

    def load(self) -> HostKeys:
        """Return the recorded keys."""
        former = self._read_former()
        with self._locked() as file:
            return HostKeys(file.read(), self._path, former)

    def add(self, keys: HostKeys) -> None:
        """Store the keys that were learnt since *keys* was loaded."""
        with self._locked() as file:
            known = file.read()
            recorded = {line.strip() for line in known.splitlines()}
            learnt = (line.strip() for line in keys.text().splitlines())
            new = [line for line in learnt if line not in recorded]
            # The last line of a file that was edited by hand may lack its newline.
            start = "\n" if new and known and not known.endswith("\n") else ""
            file.write(start + "".join(f"{line}\n" for line in new))

    def _read_former(self) -> tuple[RecordedKeys, ...]:
        if not self._former:
            return ()
        return (RecordedKeys(_read(self._former), self._former),)

    @contextmanager
    def _locked(self) -> Iterator[TextIO]:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


class ReadOnlyKeyFile(KeyFile):
    """The same file, which is neither created nor changed."""

    def load(self) -> RecordedKeys:
        """Return the recorded keys; none if there is no file."""
        return RecordedKeys(_read(self._path), self._path, self._read_former())

    def add(self, keys: HostKeys) -> None:
        """Leave the file as it is."""


def load_all(state_path: str) -> HostKeys:
    """Return the keys in all files; a host must show one that each file has of it.

    :raises OSError: a file cannot be read.
    """
    found = [os.path.join(state_path, KNOWN_HOSTS)]
    apart = os.path.join(state_path, _APART)
    with suppress(FileNotFoundError):  # no operation has recorded a key yet
        found += sorted(entry.path for entry in os.scandir(apart))
    keys = [RecordedKeys(_read(path), path) for path in found]
    return HostKeys("", found[0], keys)


def _read(path: str) -> str:
    """Return the text of a file; "" if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return file.read()
    except FileNotFoundError:
        return ""
