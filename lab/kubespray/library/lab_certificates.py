"""Ansible module: a cluster's CA and certificates that it signs, made with openssl.

``directory``: where they are (``NAME.crt``, ``NAME.key``, and ``NAME.cnf``, what they
were made from). ``certificates``: list of {name, common_name, organization, addresses}.
One is made again when what it is made from changed, it ends soon, or the CA did not
sign it.

Returns ``ca`` (PEM), ``issued`` ({name: {certificate, key}}) and ``renewed`` (names;
``ca`` among them).
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
        self.renewed: list[str] = []

    def path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def read(self, name: str) -> str:
        with open(self.path(name)) as file:
            return file.read()

    def _openssl(self, *arguments: str, check: bool = True) -> bool:
        command = ["openssl", *arguments]
        code, _, errors = self._module.run_command(command, cwd=self._directory)
        if code and check:
            what = " ".join(command)
            self._module.fail_json(msg=f"`{what}` failed: {errors.strip()}")
        return bool(code == 0)

    def ensure_ca(self) -> None:
        """Make the CA if there is none; it is never made again."""
        if os.path.exists(self.path("ca.crt")):
            return
        self._openssl(
            *("req", "-x509", *_NEW_KEY, "-keyout", "ca.key", "-out", "ca.crt"),
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
            "certificate": self.read(f"{name}.crt"),
            "key": self.read(f"{name}.key"),
        }

    def _is_good(self, name: str, configuration: str) -> bool:
        files = [self.path(f"{name}.{kind}") for kind in ("cnf", "crt", "key")]
        if not all(map(os.path.exists, files)):
            return False
        ends_later = ("x509", "-noout", "-checkend", _SOON, "-in", f"{name}.crt")
        signed = ("verify", "-CAfile", "ca.crt", f"{name}.crt")
        return (
            self.read(f"{name}.cnf") == configuration
            and self._openssl(*ends_later, check=False)
            and self._openssl(*signed, check=False)
        )

    def _make(self, name: str) -> None:
        request = f"{name}.csr"
        self._openssl(
            *("req", "-new", *_NEW_KEY, "-keyout", f"{name}.key", "-out", request),
            *("-config", f"{name}.cnf"),
        )
        self._openssl(
            *("x509", "-req", "-in", request, "-CA", "ca.crt", "-CAkey", "ca.key"),
            *("-set_serial", f"0x{secrets.token_hex(8)}", "-days", _DAYS),
            *("-extfile", f"{name}.cnf", "-extensions", "extensions"),
            *("-out", f"{name}.crt"),
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
            "certificates": {
                "type": "list",
                "elements": "dict",
                "options": certificate_options,
                "required": True,
            },
        }
    )
    os.makedirs(module.params["directory"], exist_ok=True)
    os.umask(0o077)
    authority = Authority(module)
    authority.ensure_ca()
    issued = {c["name"]: authority.ensure(c) for c in module.params["certificates"]}
    os.chmod(authority.path("ca.crt"), 0o644)
    module.exit_json(
        changed=bool(authority.renewed),
        renewed=authority.renewed,
        ca=authority.read("ca.crt"),
        issued=issued,
    )


if __name__ == "__main__":
    main()
