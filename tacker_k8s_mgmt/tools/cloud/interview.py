# SPDX-License-Identifier: Apache-2.0
"""The questions of ``request init``, and the instantiate request made of the answers.

A cloud, if there is one, has the defaults. An option of the command line answers a
question before it is asked; what such options name has to be in the package. What
nobody answers becomes a marked blank.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tacker_k8s_mgmt.model.nodes import ROLES, Role
from tacker_k8s_mgmt.request import reader, structure
from tacker_k8s_mgmt.request.reader import ATTRIBUTE, ClusterRequest
from tacker_k8s_mgmt.request.structure import mark
from tacker_k8s_mgmt.tools.cloud import demand, facts
from tacker_k8s_mgmt.tools.cloud.client import Cloud
from tacker_k8s_mgmt.tools.cloud.demand import Package, Vdu, Vms, vdus
from tacker_k8s_mgmt.tools.cloud.facts import Flavor, Image, Network
from tacker_k8s_mgmt.tools.csar import hot
from tacker_k8s_mgmt.tools.csar.hot import value_problems
from tacker_k8s_mgmt.tools.csar.tacker_api import V2

Values = dict[str, Any]
#: The structures without which there is no request.
_NEEDED = {
    one.alias for one in ClusterRequest.model_fields.values() if one.is_required()
}


@dataclass
class Answers:
    """What is known about a site; blanks are marked texts.

    :param level: instantiation level; "" for the VNFD's default.
    :param networks: id or name by external connection point.
    :param ansible: the structure of the same name; empty for the operator's server.
    :param login: user and references to secrets of the VMs, by the specification's
        names without a prefix.
    :param hot: parameters of the Base HOT.
    :param more: further parameters of the driver, by dotted name.
    """

    level: str = ""
    vim_name: str = ""
    networks: Mapping[str, str] = field(default_factory=dict)
    ansible: Values = field(default_factory=dict)
    login: Values = field(default_factory=dict)
    hot: Values = field(default_factory=dict)
    more: Values = field(default_factory=dict)


def body(package: Package, files: Mapping[str, bytes], answers: Answers) -> Values:
    """The request.

    :param files: of the package.
    """
    path, name = demand.user_data(files)
    script = {reader.PATH: path, reader.CLASS: name}
    return {
        "flavourId": package.flavour.id,
        **({"instantiationLevelId": answers.level} if answers.level else {}),
        "additionalParams": {
            **(script if path else {}),
            **answers.hot,
            ATTRIBUTE: _installation(package, files, answers),
        },
        "extVirtualLinks": [
            _link(package, cp, answers.networks[cp], answers.more)
            for cp in demand.external_points(package)
        ],
    }


def _installation(
    package: Package, files: Mapping[str, bytes], answers: Answers
) -> Values:
    found = demand.roles(package)
    made: Values = {}
    if answers.vim_name:
        made["vim_name"] = answers.vim_name
    if answers.ansible:
        made["ansible"] = dict(answers.ansible)
    for role, spec in ROLES.items():
        if role not in found and spec.parameter not in _NEEDED:
            continue
        made[spec.parameter] = _selection(role, found.get(role), package)
        login = {f"{spec.login}{name}": value for name, value in answers.login.items()}
        made[spec.parameter] |= login
    if Role.LOAD_BALANCER in found:
        script = demand.balancer_script(files)
        made["external_lb_param"]["script_path"] = script or mark(
            "path of the load balancer's script in the package"
        )
    for name, value in answers.more.items():
        _set(made, name, value)
    return made


def _selection(role: Role, vms: Vms | None, package: Package) -> Values:
    if vms is None or not vms.ssh_cp:
        known = ", ".join(demand.external_points(package)) or "none is external"
        meaning = f"connection point for SSH to the {role.value} VMs ({known})"
        return {"ssh_cp_name": mark(meaning)}
    has_group = vms.group and ROLES[role].groups
    return {
        **({"aspect_id": vms.group} if has_group else {}),
        "ssh_cp_name": vms.ssh_cp,
        **({"nic_cp_name": vms.nic_cp} if vms.nic_cp else {}),
    }


def _set(made: Values, dotted: str, value: Any) -> None:
    *above, last = dotted.split(".")
    for name in above:
        inner = made.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{dotted}: {name} is no structure")
        made = inner
    made[last] = value


def _link(package: Package, cp: str, network: str, more: Values) -> Values:
    data: Values = {"layerProtocol": "IP_OVER_ETHERNET"}
    config: Any = [{"cpProtocolData": [data]}]
    if package.api is V2:
        family = str(more.get("address_family", "ipv4")).upper()
        addresses = [{"type": family, "numDynamicAddresses": 1}]
        data["ipOverEthernet"] = {"ipAddresses": addresses}
        config = {cp: {"cpProtocolData": [data]}}
    return {
        "id": f"net_{cp}",
        "resourceId": network,
        "extCps": [{"cpdId": cp, "cpConfig": config}],
    }


#: The name of a cluster that nobody names.
UNNAMED = "kubernetes-cluster"
#: Answers which Ansible server it is: that of the conductor's tacker.conf.
OPERATORS = "-"
#: Options that answer a question each, with their help.
OPTIONS: Mapping[str, str] = {
    "name": "name of the cluster, for its directory and its VIM",
    "vim-name": "name of the cluster's VIM in Tacker",
    "level": "instantiation level",
    "key-name": "key pair of the VMs in Nova",
    "vm-user": "user on the VMs, which the image creates",
    "vm-private-key": "that user's key: path, file:NAME or URL in Barbican",
    "vm-password": "that user's password: file:NAME or URL in Barbican",
    "ansible-host": "address or name of the Ansible server, or - to leave it to the "
    "conductor's tacker.conf",
    "ansible-user": "user on the Ansible server",
    "ansible-private-key": "that user's key: path, file:NAME or URL in Barbican",
    "ansible-password": "that user's password: file:NAME or URL in Barbican",
    "kubespray": "directory of kubespray on the Ansible server",
    "venv": "virtual environment with Ansible there",
    "directory": "directory there for this cluster alone",
}


@dataclass(frozen=True)
class Question:
    """One question.

    :param option: the option that answers it, without hyphens in front.
    :param text: what is wanted; also the text of the blank.
    :param choices: suggestions; any other answer is accepted as well.
    :param problem: why an answer cannot be taken; "" if it can.
    :param without: what Enter does where there is no default.
    """

    option: str
    text: str
    default: str = ""
    choices: tuple[str, ...] = ()
    problem: Callable[[str], str] = lambda answer: ""
    without: str = "fill in later"


#: Returns the answer; "" if it is not known.
Ask = Callable[[Question], str]


@dataclass
class Given:
    """Answers of the command line.

    :param values: by option.
    :param networks: by connection point; "" stands for all others. So are the images
        and flavours by VDU.
    :param hot: by parameter of the Base HOT.
    :param more: further parameters of the driver, by dotted name.
    :param with_secrets: whether logins without a reference stay without a blank,
        because their passwords are asked for later.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    flavors: Mapping[str, str] = field(default_factory=dict)
    hot: Mapping[str, str] = field(default_factory=dict)
    more: Values = field(default_factory=dict)
    with_secrets: bool = False


@dataclass(frozen=True)
class Site:
    """The result.

    :param build: options for ``csar build`` that fit the package to the cloud, each
        with its values.
    """

    answers: Answers
    build: Mapping[str, Sequence[str]]


def reference(option: str, text: str) -> str | dict[str, str]:
    """A secret as a request has it: its place, never the secret.

    :param option: that was given or asked for.
    :raises ValueError: it is none.
    """
    kind, _, name = text.partition(":")
    if kind == "file" and name:
        return {"file": name}
    if kind in ("http", "https"):
        return {"secret_ref": text}
    if option.endswith("-private-key") and text.startswith(("/", "./")):
        return text
    raise ValueError(
        f"{option}: this would put a secret into the request; give file:NAME, the URL "
        "of a secret in Barbican or, for a private key, its path on the conductor (or "
        "--literal-secrets, which asks for passwords)"
    )


def secret(option: str, text: str, without: str) -> Question:
    """The question for a reference to a secret.

    :param without: see :class:`Question`.
    """

    def problem(answer: str) -> str:
        try:
            reference(f"--{option}", answer)
        except ValueError as error:
            return str(error) if answer else ""
        return ""

    return Question(option, text, problem=problem, without=without)


#: The samples' parameter for a key pair.
KEY_NAME = "key_name"


def problems(package: Package, given: Given) -> Iterator[str]:
    """Names that nothing would read, and values that Heat would refuse."""
    parameters = package.base.top.parameters
    machines = [vdu.name for vdu in vdus(package)]
    points = demand.external_points(package)
    level = [given.values["level"]] if "level" in given.values else []
    every: tuple[tuple[str, str, Iterable[str], Collection[str]], ...] = (
        ("level", "instantiation level", level, package.flavour.levels),
        ("network", "external connection point", given.networks, points),
        ("image", "VDU", given.images, machines),
        ("flavor", "VDU", given.flavors, machines),
        ("hot", "parameter of the Base HOT", given.hot, parameters),
    )
    for option, kind, names, known in every:
        if unknown := sorted(set(names) - {"", *known}):
            listed = ", ".join(sorted(known)) or "none"
            yield (
                f"--{option}: there is no {kind} {', '.join(unknown)} (there are: "
                f"{listed})"
            )
    values = dict(given.hot)
    if "key-name" in given.values:
        values.setdefault(KEY_NAME, given.values["key-name"])
    for name in sorted(values.keys() & parameters.keys()):
        for why in hot.value_problems(parameters[name], values[name]):
            yield f"--hot {name}: {why}"


# What the samples' VNFDs have: kubespray's own minimums are too small for real use.
_COMFORT: Mapping[Role | None, tuple[int, int]] = {
    role: (2, 4096) if spec.groups else (1, 2048) for role, spec in ROLES.items()
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
        if wrong := list(problems(self._package, self._given)):
            raise ValueError("\n".join(wrong))
        name = self._known("name", "name of the cluster", UNNAMED)
        level = self._level()
        image = self._images()
        self._flavors()
        networks = self._networks()
        user = self._known(
            "vm-user",
            "user name on the VMs, which the image creates",
            facts.login(image) if image else "",
        )
        login = self._login("vm", f"the user {user} on the VMs")
        hot = {**self._key(is_needed="private_key" in login), **self._parameters()}
        answers = Answers(
            level=level,
            vim_name=self._known("vim-name", "name of the cluster's VIM", name),
            networks=networks,
            ansible=self._ansible(name),
            login={"username": user, **login},
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
        return value or self._ask(question) or structure.mark(text)

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
        every = self._cloud.networks() if self._cloud else []
        fit = [n for n in every if _fits(n) and not self._package.makes(n.name)]
        choices = [network.name for network in fit]
        before = choices[0] if len(choices) == 1 else ""
        found = {}
        for cp in demand.external_points(self._package):
            text = f"network of {cp}, its id or name"
            given = self._given.networks.get(cp) or self._given.networks.get("")
            named = given or self._ask(
                Question(f"network {cp}=", text, before, tuple(choices))
            )
            before = named or before
            known = [n.id for n in fit if named in (n.id, n.name)]
            # An id is unique; of two networks with one name the operator has to choose.
            value = known[0] if len(known) == 1 else named
            found[cp] = value or structure.mark(_with(text, choices))
        return found

    def _images(self) -> Image | None:
        """Name images for VDUs; returns that of the nodes."""
        every = self._cloud.images() if self._cloud else []
        fit = [image for image in every if facts.distribution(image)]
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
        roles = {vms.vdu: role for role, vms in demand.roles(self._package).items()}
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
        vms = demand.roles(self._package).get(Role.LOAD_BALANCER)
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
            named = self._ask(question) or structure.mark(text)
        if named != packaged:
            self._build.setdefault(f"--{kind}", []).append(f"{vdu.name}={named}")
        return named

    def _key(self, *, is_needed: bool) -> Values:
        """The Base HOT's parameter for the key pair, if it has one.

        :param is_needed: whether the login on the VMs is by key.
        """
        has_parameter = KEY_NAME in self._hot
        if "key-name" not in self._given.values and not (is_needed and has_parameter):
            return {}
        pairs = self._cloud.keypairs() if self._cloud else []
        text = "key pair of the VMs, by its name in Nova"
        default = pairs[0] if len(pairs) == 1 else ""
        named = self._known("key-name", _with(text, pairs), default, pairs)
        if not has_parameter:
            self._build["--key-name"] = [named]
            return {}
        return {KEY_NAME: named}

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
        if key := self._ask(secret(f"{who}-private-key", text, "by password")):
            return {"private_key": reference(f"--{who}-private-key", key)}
        other = (
            f"password of {whose}: file:NAME below secret_directory on the conductor, "
            "or the URL of a secret in Barbican"
        )
        if password := self._ask(secret(f"{who}-password", other, "fill in later")):
            return {"password": reference(f"--{who}-password", password)}
        return {"private_key": structure.mark(text)}


def _problem(schema: Mapping[str, Any], answer: str) -> str:
    """Why an answer cannot be the value of a parameter; no answer is a blank."""
    return "; ".join(value_problems(schema, answer)) if answer else ""


def _fits(network: Network) -> bool:
    return network.is_open and network.is_up and bool(network.subnets)


def _is_comfortable(flavor: Flavor, cores: int, ram: int) -> bool:
    is_large = flavor.disk == 0 or flavor.disk >= _DISK
    return flavor.vcpus >= cores and flavor.ram >= ram and is_large


def _with(text: str, choices: Sequence[str]) -> str:
    return f"{text} (there are: {', '.join(choices)})" if choices else text
