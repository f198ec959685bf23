# SPDX-License-Identifier: Apache-2.0
"""Questions about a site, and answers to them that were given beforehand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tacker_k8s_mgmt.cloud.draft import Answers, Values

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
    """

    option: str
    text: str
    default: str = ""
    choices: tuple[str, ...] = ()
    problem: Callable[[str], str] = lambda answer: ""


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


def secret(option: str, text: str) -> Question:
    """The question for a reference to a secret."""

    def problem(answer: str) -> str:
        try:
            reference(f"--{option}", answer)
        except ValueError as error:
            return str(error) if answer else ""
        return ""

    return Question(option, text, problem=problem)
