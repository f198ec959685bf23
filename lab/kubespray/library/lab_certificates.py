"""Ansible module: a cluster's CA and certificates that it signs, made with openssl.

``directory``: where they are (``NAME.crt``, ``NAME.key``, and ``NAME.cnf``, what they
were made from; with ``naming: etcd`` ``NAME.pem`` and ``NAME-key.pem``). ``ca`` and
``ca_key`` (PEM): the CA that it has to be, of another host. ``certificates``: list of
{name, common_name, organization, addresses}. One is made again when what it is made
from changed, it ends soon, or the CA did not sign it.

Returns ``ca`` and ``ca_key`` (PEM), ``issued`` ({name: {certificate, key}}) and
``renewed`` (names; ``ca`` among them).
"""

import ipaddress
import os
import secrets
from typing import Any

from ansible.module_utils.basic import AnsibleModule

_DAYS = "3650"
_SOON = str(30 * 24 * 3600)
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """The CA in a directory."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._directory = module.params["directory"]
        etcd = module.params["naming"] == "etcd"
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
        code, _, errors = self._module.run_command(command, cwd=self._directory)
        if code and check:
            what = " ".join(command)
            self._module.fail_json(msg=f"`{what}` failed: {errors.strip()}")
        return bool(code == 0)

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
    if wanted["organization"]:
        lines.append(f"O = {wanted['organization']}")
    lines += [f"CN = {wanted['common_name']}", "[extensions]"]
    lines.append("basicConstraints = critical, CA:FALSE")
    lines.append("keyUsage = critical, digitalSignature")
    lines.append("extendedKeyUsage = serverAuth, clientAuth")
    lines.append("subjectKeyIdentifier = hash")
    lines.append("authorityKeyIdentifier = keyid")
    names = sorted({_alternative_name(a) for a in wanted["addresses"]})
    if names:
        lines.append(f"subjectAltName = {', '.join(names)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    certificate_options = {
        "name": {"type": "str", "required": True},
        "common_name": {"type": "str", "required": True},
        "organization": {"type": "str", "default": ""},
        "addresses": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(
        {
            "directory": {"type": "path", "required": True},
            "naming": {"choices": ["kubernetes", "etcd"], "default": "kubernetes"},
            "ca": {"type": "str", "default": ""},
            "ca_key": {"type": "str", "default": "", "no_log": True},
            "certificates": {
                "type": "list",
                "elements": "dict",
                "options": certificate_options,
                "default": [],
            },
        }
    )
    os.makedirs(module.params["directory"], exist_ok=True)
    os.umask(0o077)
    authority = Authority(module)
    if module.params["ca"]:
        authority.take_ca(module.params["ca"], module.params["ca_key"])
    authority.ensure_ca()
    issued = {c["name"]: authority.ensure(c) for c in module.params["certificates"]}
    os.chmod(authority.path(authority.certificate("ca")), 0o644)
    module.exit_json(
        changed=bool(authority.renewed),
        renewed=authority.renewed,
        ca=authority.read(authority.certificate("ca")),
        ca_key=authority.read(authority.key("ca")),
        issued=issued,
    )


if __name__ == "__main__":
    main()
