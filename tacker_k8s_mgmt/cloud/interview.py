# SPDX-License-Identifier: Apache-2.0
"""The questions of ``request init``; the cloud, if there is one, has their defaults.

An option of the command line answers a question before it is asked; what nobody answers
becomes a marked blank.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tacker_k8s_mgmt.cloud import distributions, given_checks, layout
from tacker_k8s_mgmt.cloud.checks import MINIMUMS
from tacker_k8s_mgmt.cloud.client import Cloud
from tacker_k8s_mgmt.cloud.demand import Package, Vdu, vdus
from tacker_k8s_mgmt.cloud.draft import Answers, Values
from tacker_k8s_mgmt.cloud.facts import Flavor, Image, Network
from tacker_k8s_mgmt.cloud.questions import (
    OPERATORS,
    Ask,
    Given,
    Question,
    Site,
    reference,
    secret,
)
from tacker_k8s_mgmt.csar import hot_values
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request import blanks

# What the samples' VNFDs have: kubespray's own minimums are too small for real use.
_COMFORT: Mapping[Role | None, tuple[int, int]] = {
    **dict.fromkeys(MINIMUMS, (2, 4096)),
    Role.LOAD_BALANCER: (1, 2048),
}
_DISK = 20  # GiB, for container images and logs
#: Defaults of the sample packages that fit their sample requests, and hardly a site.
_OF_SAMPLES = {"management_cidr": "10.99.0.0/24"}


class Interview:
    """One run of the questions.

    :param cloud: None to ask none.
    """

    def __init__(
        self, package: Package, cloud: Cloud | None, given: Given, ask: Ask
    ) -> None:
        self._package, self._cloud = package, cloud
        self._given, self._ask = given, ask
        self._build: dict[str, list[str]] = {}

    def site(self) -> Site:
        """Ask everything.

        :raises CloudError: the cloud cannot be asked.
        :raises ValueError: options name what the package has not, or give the Base HOT
            what Heat would refuse (all of them are in the text); or a secret is given
            itself, not by reference.
        """
        if wrong := list(given_checks.problems(self._package, self._given)):
            raise ValueError("\n".join(wrong))
        name = self._known("name", "name of the cluster", "kubernetes-cluster")
        level = self._level()
        networks = self._networks()
        image = self._images()
        self._flavors()
        login = self._login("vm", "the user on the VMs")
        hot = {**self._key(is_needed="private_key" in login), **self._parameters()}
        answers = Answers(
            level=level,
            vim_name=self._known("vim-name", "name of the cluster's VIM", name),
            networks=networks,
            ansible=self._ansible(name),
            login={
                "username": self._known(
                    "vm-user",
                    "user name on the VMs, which the image creates",
                    distributions.login(image) if image else "",
                ),
                **login,
            },
            hot=hot,
            more=dict(self._given.more),
        )
        return Site(answers, self._build)

    def _known(
        self,
        option: str,
        text: str,
        default: str = "",
        choices: Iterable[str] = (),
        problem: Callable[[str], str] = lambda answer: "",
    ) -> str:
        """The answer to a question, or a blank.

        :param problem: see :class:`.Question`.
        """
        value = self._given.values.get(option, "")
        question = Question(option, text, default, tuple(choices), problem)
        return value or self._ask(question) or blanks.mark(text)

    @property
    def _hot(self) -> Mapping[str, Mapping[str, Any]]:
        """The parameters of the Base HOT."""
        return self._package.base.top.parameters

    def _level(self) -> str:
        levels = self._package.flavour.levels
        if not levels:
            return ""

        def problem(answer: str) -> str:
            return "" if answer in ("", *levels) else f"there is no level {answer}"

        text = "instantiation level"
        return self._known("level", text, levels[0], levels, problem)

    # The cloud

    def _networks(self) -> dict[str, str]:
        fit = [n for n in self._cloud.networks() if _fits(n)] if self._cloud else []
        choices = [network.name for network in fit]
        before = choices[0] if len(choices) == 1 else ""
        found = {}
        for cp in layout.external_points(self._package):
            text = f"network of {cp}, its id or name"
            given = self._given.networks.get(cp) or self._given.networks.get("")
            named = given or self._ask(
                Question(f"network {cp}=", text, before, tuple(choices))
            )
            before = named or before
            known = [n.id for n in fit if named in (n.id, n.name)]
            # An id is unique; of two networks with one name the operator has to choose.
            value = known[0] if len(known) == 1 else named
            found[cp] = value or blanks.mark(_with(text, choices))
        return found

    def _images(self) -> Image | None:
        """Name images for VDUs; returns that of the nodes."""
        every = self._cloud.images() if self._cloud else []
        fit = [image for image in every if distributions.distribution(image)]
        node = None
        for vdu in vdus(self._package):
            named = self._chosen(
                "image",
                vdu,
                vdu.image,
                self._given.images,
                [image.name for image in every],
                [image.name for image in fit],
            )
            found = [image for image in every if named in (image.id, image.name)]
            if found and vdu.name != self._balancer:
                node = node or found[0]
        return node

    def _flavors(self) -> None:
        every = self._cloud.flavors() if self._cloud else []
        roles = {vms.vdu: role for role, vms in layout.roles(self._package).items()}
        for vdu in vdus(self._package):
            cores, ram = _COMFORT.get(roles.get(vdu.name), (1, 1))
            fit = [f for f in every if _is_comfortable(f, cores, ram)]
            self._chosen(
                "flavor",
                vdu,
                vdu.flavor,
                self._given.flavors,
                [flavor.name for flavor in every],
                [flavor.name for flavor in fit[:1]],
            )

    @property
    def _balancer(self) -> str:
        vms = layout.roles(self._package).get(Role.LOAD_BALANCER)
        return vms.vdu if vms else ""

    def _chosen(
        self,
        kind: str,
        vdu: Vdu,
        packaged: str,
        given: Mapping[str, str],
        every: Sequence[str],
        fit: Sequence[str],
    ) -> str:
        """The image or flavour of a VDU; noted for the package if it is another one."""
        named = given.get(vdu.name) or given.get("")
        if not named and (not every or packaged in every):
            return packaged
        if not named:
            text = f"{kind} of {vdu.name} (the cloud has no {packaged})"
            default = fit[0] if len(fit) == 1 else ""
            question = Question(f"{kind} {vdu.name}=", text, default, tuple(every))
            named = self._ask(question) or blanks.mark(text)
        if named != packaged:
            self._build.setdefault(f"--{kind}", []).append(f"{vdu.name}={named}")
        return named

    def _key(self, *, is_needed: bool) -> Values:
        """The Base HOT's parameter for the key pair, if it has one.

        :param is_needed: whether the login on the VMs is by key.
        """
        has_parameter = given_checks.KEY_NAME in self._hot
        if "key-name" not in self._given.values and not (is_needed and has_parameter):
            return {}
        pairs = self._cloud.keypairs() if self._cloud else []
        text = "key pair of the VMs, by its name in Nova"
        default = pairs[0] if len(pairs) == 1 else ""
        named = self._known("key-name", _with(text, pairs), default, pairs)
        if not has_parameter:
            self._build["--key-name"] = [named]
            return {}
        return {given_checks.KEY_NAME: named}

    def _parameters(self) -> Values:
        """Parameters of the Base HOT that are given or have no default of a site."""
        found: Values = {}
        for name, schema in self._hot.items():
            value: str | float = self._given.hot.get(name, "")
            is_open = (name, schema.get("default")) in _OF_SAMPLES.items()
            if not (value or is_open or name in self._package.base.required):
                continue
            text = str(schema.get("description") or name).strip()
            value = value or self._known(
                f"hot {name}=", text, problem=partial(_problem, schema)
            )
            if schema["type"] == "number" and str(value).isdecimal():
                value = int(value)
            found[name] = value
        return found

    # The Ansible server

    def _ansible(self, name: str) -> Values:
        text = "address or name of the Ansible server, or - for Tacker's operator's"
        host = self._known("ansible-host", text)
        if host == OPERATORS:
            return {}
        user = self._known("ansible-user", "user on the Ansible server", "ansible")
        return {
            "ip_address": host,
            "username": user,
            **self._login("ansible", f"the user {user} on the Ansible server"),
            "kubespray_root_path": self._known(
                "kubespray",
                "directory of kubespray on the Ansible server",
                "/opt/kubespray",
            ),
            "transferring_inventory_path": self._known(
                "directory",
                "directory on the Ansible server for this cluster alone",
                f"/home/{user}/clusters/{name}",
            ),
            "venv_path": self._known(
                "venv",
                "virtual environment with Ansible on the Ansible server",
                "/opt/kubespray-venv",
            ),
        }

    def _login(self, who: str, whose: str) -> Values:
        """References to the secrets of a login."""
        found: Values = {}
        for kind in ("private-key", "password"):
            if value := self._given.values.get(f"{who}-{kind}", ""):
                found[kind.replace("-", "_")] = reference(f"--{who}-{kind}", value)
        if found or self._given.with_secrets:
            return found
        text = (
            f"private key of {whose}: ./NAME below key_directory on the conductor, or "
            "the URL of a secret in Barbican"
        )
        if key := self._ask(secret(f"{who}-private-key", text)):
            return {"private_key": reference(f"--{who}-private-key", key)}
        other = (
            f"password of {whose}: file:NAME below secret_directory on the conductor, "
            "or the URL of a secret in Barbican"
        )
        if password := self._ask(secret(f"{who}-password", other)):
            return {"password": reference(f"--{who}-password", password)}
        return {"private_key": blanks.mark(text)}


def _problem(schema: Mapping[str, Any], answer: str) -> str:
    """Why an answer cannot be the value of a parameter; no answer is a blank."""
    return "; ".join(hot_values.problems(schema, answer)) if answer else ""


def _fits(network: Network) -> bool:
    return network.is_open and network.is_up and bool(network.subnets)


def _is_comfortable(flavor: Flavor, cores: int, ram: int) -> bool:
    is_large = flavor.disk == 0 or flavor.disk >= _DISK
    return flavor.vcpus >= cores and flavor.ram >= ram and is_large


def _with(text: str, choices: Sequence[str]) -> str:
    return f"{text} (there are: {', '.join(choices)})" if choices else text
