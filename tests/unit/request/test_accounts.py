# SPDX-License-Identifier: Apache-2.0
"""Logins in the parameters: passwords, private keys, and what may be shown of them."""

import pytest
from pydantic import SecretStr

from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request.accounts import CREDENTIALS, Credential, Login
from tacker_k8s_mgmt.request.cross_checks import LOGINS
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.structure import attributes
from tests.helpers.samples import KEY, REMOVED, changed, parsed, problems

PATH = "/etc/tacker/k8s-mgmt/keys/site-a/worker"
PEM = KEY.replace("OPENSSH ", "ENCRYPTED ")
ACCOUNTS = ("ansible", "master_node", "worker_node", "external_lb_param")
SHAPE = (
    "must be the text of a private key (-----BEGIN ... PRIVATE KEY-----) or the "
    "path of a file with one on Tacker's conductor (beginning with / or ./)"
)


def ways(account: str) -> tuple[str, str]:
    prefix = "ssh_" if account == "external_lb_param" else ""
    return f"{account}.{prefix}password", f"{account}.{prefix}private_key"


def of(made, name: str):
    return next(one for one in made.accounts() if one.attribute == name)


@pytest.mark.parametrize(("name", "prefix"), LOGINS)
def test_each_login_has_the_same_credentials(name, prefix):
    model = attributes(ClusterRequest)[name].structure
    assert issubclass(model, Login)
    assert {
        inner: mark
        for inner, attribute in attributes(model).items()
        for mark in attribute.info.metadata
        if isinstance(mark, Credential)
    } == {f"{prefix}{inner}": mark for inner, mark in CREDENTIALS.items()}


def test_ports_of_logins():
    made = parsed({"ansible.port": 2222})
    assert {one.attribute: one.port for one in made.accounts()} == {
        **dict.fromkeys(ACCOUNTS, 22),
        "ansible": 2222,
    }


@pytest.mark.parametrize("name", ACCOUNTS)
class TestEachAccount:
    def test_a_password_is_enough(self, name):
        account = of(parsed(), name)
        assert account.password is not None
        assert account.private_key is None

    def test_a_key_is_enough(self, name):
        password, key = ways(name)
        account = of(parsed({password: REMOVED, key: KEY}), name)
        assert account.password is None
        assert account.private_key.given == SecretStr(KEY)
        assert account.private_key.attribute == key
        assert account.private_key.passphrase is None

    def test_both_may_be_given_and_the_key_may_have_a_passphrase(self, name):
        _, key = ways(name)
        account = of(parsed({key: PEM, f"{key}_passphrase": "open sesame"}), name)
        assert account.password is not None
        assert account.private_key.passphrase == SecretStr("open sesame")

    @pytest.mark.parametrize("nothing", [REMOVED, None, "", "  "])
    def test_neither_is_one_problem_that_names_both(self, name, nothing):
        password, key = ways(name)
        expected = " or ".join(way.partition(".")[2] for way in (password, key))
        assert problems(changed({password: nothing, key: nothing})) == (
            f"{name}: {expected} is missing",
        )

    def test_a_passphrase_without_a_key_is_refused(self, name):
        _, key = ways(name)
        short = key.partition(".")[2]
        assert problems(changed({f"{key}_passphrase": "open sesame"})) == (
            f"{key}_passphrase: there is no {short} that it opens",
        )

    @pytest.mark.parametrize(
        "wrong",
        [
            pytest.param("ssh-ed25519 AAAAC3Nza me@here", id="public-key"),
            pytest.param("PuTTY-User-Key-File-3: ssh-rsa\nx", id="putty"),
            pytest.param("-----BEGIN CERTIFICATE-----\nx\n", id="certificate"),
            pytest.param(KEY[:90], id="cut-off"),
            pytest.param(KEY.replace("\n", "\\n"), id="escaped-line-ends"),
            pytest.param("keys/worker", id="relative-path"),
            pytest.param(KEY.replace("secret1\n", "x\n" * 20000), id="too-long"),
        ],
    )
    def test_anything_but_a_private_key_or_a_path_is_refused(self, name, wrong):
        _, key = ways(name)
        assert problems(changed({key: wrong})) == (f"{key}: {SHAPE}",)

    def test_a_path_that_climbs_is_refused(self, name):
        _, key = ways(name)
        path = "/etc/tacker/k8s-mgmt/keys/../../shadow"
        assert problems(changed({key: path})) == (f"{key}: must not contain '..'",)


def test_a_pasted_key_gets_unix_line_ends():
    pasted = "\r\n " + KEY.replace("\n", "\r\n ") + "\t"
    account = of(parsed({"worker_node.private_key": pasted}), "worker_node")
    assert account.private_key.given == SecretStr(KEY)


def test_a_path_stays_a_path_and_is_brought_into_its_normal_form():
    account = of(parsed({"worker_node.private_key": f" {PATH}/"}), "worker_node")
    assert account.private_key.path == PATH
    assert of(parsed({"worker_node.private_key": KEY}), "worker_node").private_key


def test_each_role_has_its_account():
    made = parsed({"worker_node.username": "centos"})
    assert made.account(Role.WORKER).username == "centos"
    assert made.account(Role.CONTROL_PLANE).attribute == "master_node"
    assert made.account(Role.LOAD_BALANCER).attribute == "external_lb_param"
    assert made.server_account.username == "ansible"
    with pytest.raises(LookupError):
        parsed({"external_lb_param": REMOVED}).account(Role.LOAD_BALANCER)


class TestFileNames:
    def of_worker(self, key: str) -> str:
        made = parsed({"worker_node.private_key": key})
        return made.account(Role.WORKER).private_key.file_name

    def test_another_key_has_another_file_and_the_same_key_the_same(self):
        names = [self.of_worker(key) for key in (KEY, PEM, PATH, f"{PATH}2")]
        assert len(set(names)) == 4
        assert self.of_worker(KEY) == names[0]

    def test_file_names_are_plain_and_reveal_nothing_of_the_key(self):
        name = self.of_worker(KEY)
        assert name.startswith("ssh-key-")
        assert "/" not in name
        assert not [line for line in KEY.splitlines() if line[:8] in name]


class TestSecrets:
    GIVEN = {
        "ansible.private_key": KEY,
        "ansible.private_key_passphrase": "open sesame",
        "worker_node.private_key": PATH,
        "external_lb_param.ssh_private_key": PEM,
    }

    def test_every_line_of_a_key_and_the_passphrase_are_among_them(self):
        secrets = parsed(self.GIVEN).secrets()
        assert {*KEY.splitlines()[1:-1], "open sesame"} <= {*secrets}

    def test_what_every_key_has_and_paths_are_not(self):
        headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n"
        legacy = KEY.replace("b3Blbn", f"{headers}b3Blbn")
        secrets = parsed({**self.GIVEN, "master_node.private_key": legacy}).secrets()
        assert not [one for one in secrets if "-----" in one or ":" in one or not one]
        assert PATH not in secrets
