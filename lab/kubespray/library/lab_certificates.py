#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: a cluster's CA and certificates that it signs, made with openssl.

``directory``: where they are (``NAME.crt``, ``NAME.key``, and ``NAME.cnf``, what they
were made from; with ``naming: etcd`` ``NAME.pem`` and ``NAME-key.pem``). ``ca`` and
``ca_key`` (PEM): the CA that it has to be, of another host. ``certificates``: list of
{name, common_name, organization, addresses}, the last two if any. One is made again
when what it is made from changed, it ends soon, or the CA did not sign it.

Returns ``ca`` and ``ca_key`` (PEM), ``issued`` ({name: {certificate, key}}) and
``renewed`` (names; ``ca`` among them).
"""

import ipaddress
import json
import os
import secrets
import subprocess
from typing import Any

_DAYS = "3650"
_SOON = str(30 * 24 * 3600)
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Problem(Exception):
    """Why the certificates cannot be made."""


class Authority:
    """The CA in a directory.

    :param etcd: its files have etcd's names.
    """

    def __init__(self, directory: str, etcd: bool) -> None:
        self._directory = directory
        self._patterns = ("{}.pem", "{}-key.pem") if etcd else ("{}.crt", "{}.key")
        self.renewed: list[str] = []

    def path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def read(self, name: str) -> str:
        with open(self.path(name)) as file:
            return file.read()

    def certificate(self, name: str) -> str:
        return self._patterns[0].format(name)

    def key(self, name: str) -> str:
        return self._patterns[1].format(name)

    def _openssl(self, *arguments: str, check: bool = True) -> bool:
        command = ["openssl", *arguments]
        done = subprocess.run(
            command, cwd=self._directory, capture_output=True, text=True, check=False
        )
        if done.returncode and check:
            what = " ".join(command)
            raise Problem(f"`{what}` failed: {done.stderr.strip()}")
        return done.returncode == 0

    def take_ca(self, certificate: str, key: str) -> None:
        """Have another host's CA."""
        for name, text in (
            (self.key("ca"), key),
            (self.certificate("ca"), certificate),
        ):
            if os.path.exists(self.path(name)) and self.read(name) == text:
                continue
            with open(self.path(name), "w") as file:
                file.write(text)
            self.renewed.append("ca")

    def ensure_ca(self) -> None:
        """Make the CA if there is none; it is never made again."""
        if os.path.exists(self.path(self.certificate("ca"))):
            return
        files = ("-keyout", self.key("ca"), "-out", self.certificate("ca"))
        self._openssl(
            *("req", "-x509", *_NEW_KEY, *files),
            *("-days", _DAYS, "-subj", "/CN=kubernetes"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"),
        )
        self.renewed.append("ca")

    def ensure(self, wanted: dict[str, Any]) -> dict[str, str]:
        """One certificate and its key, made again if it has to be."""
        name, configuration = wanted["name"], _configuration(wanted)
        if not self._is_good(name, configuration):
            with open(self.path(f"{name}.cnf"), "w") as file:
                file.write(configuration)
            self._make(name)
            self.renewed.append(name)
        return {
            "certificate": self.read(self.certificate(name)),
            "key": self.read(self.key(name)),
        }

    def _is_good(self, name: str, configuration: str) -> bool:
        own = (f"{name}.cnf", self.certificate(name), self.key(name))
        files = [self.path(file) for file in own]
        if not all(map(os.path.exists, files)):
            return False
        ends_later = ("x509", "-noout", "-checkend", _SOON, "-in", own[1])
        signed = ("verify", "-CAfile", self.certificate("ca"), own[1])
        return (
            self.read(f"{name}.cnf") == configuration
            and self._openssl(*ends_later, check=False)
            and self._openssl(*signed, check=False)
        )

    def _make(self, name: str) -> None:
        request = f"{name}.csr"
        authority = ("-CA", self.certificate("ca"), "-CAkey", self.key("ca"))
        self._openssl(
            *("req", "-new", *_NEW_KEY, "-keyout", self.key(name), "-out", request),
            *("-config", f"{name}.cnf"),
        )
        self._openssl(
            *("x509", "-req", "-in", request, *authority),
            *("-set_serial", f"0x{secrets.token_hex(8)}", "-days", _DAYS),
            *("-extfile", f"{name}.cnf", "-extensions", "extensions"),
            *("-out", self.certificate(name)),
        )
        os.remove(self.path(request))


def _alternative_name(address: str) -> str:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return f"DNS:{address}"
    return f"IP:{address}"


def _configuration(wanted: dict[str, Any]) -> str:
    """What openssl makes the request and the certificate from."""
    lines = ["[req]", "prompt = no", "distinguished_name = subject", "[subject]"]
    if wanted.get("organization"):
        lines.append(f"O = {wanted['organization']}")
    lines += [f"CN = {wanted['common_name']}", "[extensions]"]
    lines.append("basicConstraints = critical, CA:FALSE")
    lines.append("keyUsage = critical, digitalSignature")
    lines.append("extendedKeyUsage = serverAuth, clientAuth")
    lines.append("subjectKeyIdentifier = hash")
    lines.append("authorityKeyIdentifier = keyid")
    names = sorted({_alternative_name(a) for a in wanted.get("addresses", ())})
    if names:
        lines.append(f"subjectAltName = {', '.join(names)}")
    return "\n".join(lines) + "\n"


def work(arguments: dict[str, Any]) -> dict[str, Any]:
    """Do everything; the result for Ansible."""
    os.makedirs(arguments["directory"], exist_ok=True)
    os.umask(0o077)
    authority = Authority(arguments["directory"], arguments.get("naming") == "etcd")
    if arguments.get("ca"):
        authority.take_ca(arguments["ca"], arguments["ca_key"])
    authority.ensure_ca()
    requests = arguments.get("certificates", ())
    issued = {request["name"]: authority.ensure(request) for request in requests}
    os.chmod(authority.path(authority.certificate("ca")), 0o644)
    return {
        "changed": bool(authority.renewed),
        "renewed": authority.renewed,
        "ca": authority.read(authority.certificate("ca")),
        "ca_key": authority.read(authority.key("ca")),
        "issued": issued,
    }


def main() -> None:
    # Without Ansible's library, as lab_units, and its arguments are put there likewise.
    arguments = json.loads(r"""<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>""")
    try:
        print(json.dumps(work(arguments)))
    except (Problem, OSError) as problem:
        print(json.dumps({"failed": True, "msg": str(problem)}))


if __name__ == "__main__":
    main()
