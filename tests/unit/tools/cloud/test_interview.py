# SPDX-License-Identifier: Apache-2.0
"""Requests of `request init`: from answers, from the cloud, and with blanks."""

import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.structure import mark
from tacker_k8s_mgmt.tools.cloud import demand, interview
from tacker_k8s_mgmt.tools.cloud.facts import Flavor, Image
from tacker_k8s_mgmt.tools.cloud.interview import Given, Interview
from tacker_k8s_mgmt.tools.csar import body as requests
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2
from tests.unit.tools.cli.bodies import installation
from tests.unit.tools.cloud.fakes import OUTER, UBUNTU, Cloud, files, package

BARBICAN = (
    "https://barbican.example.org/v1/secrets/0e1f6f5c-5a0a-4f0e-9a55-3a1c1f1d2e3f"
)
VALUES = {
    "ansible-host": "10.99.0.5",
    "ansible-password": "file:ansible-server",
    "vm-password": BARBICAN,
}
LEVEL = "instantiation_level_1"
HOT = {"management_cidr": "192.0.2.0/24"}
KEYED = "  key_name:\n    type: string\n"


def rename_key(hot):
    """A Base HOT without the samples' parameter for the key pair."""
    return hot.replace(KEYED, KEYED.replace("key_name", "pair"))


class Conversation:
    """Takes the defaults where it has no answer, and notes the questions."""

    def __init__(self, **answers):
        self.answers = answers
        self.questions = {}

    def __call__(self, question):
        self.questions[question.option] = question
        return self.answers.get(question.option.replace("-", "_"), question.default)


def made(flavour="simple", api=V1, cloud=None, ask=None, edit=None, **given):
    """The request, and options for the package."""
    source = package(flavour, api, edit)
    ask = ask or Conversation()
    given = {"hot": HOT, **given}
    site = Interview(source, cloud, Given(**given), ask).site()
    return interview.body(source, files(flavour, api, edit), site.answers), site.build


def problems(body, api=V1):
    found = list(requests.read(body, api).problems)
    try:
        reader.RequestReader().read(body["additionalParams"])
    except ParamError as error:
        found += error.problems
    return sorted(text.partition(":")[0] for text in found)


def shape(value):
    """A document without its texts."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else None


def _values_of(document, name):
    """Every value that has this name, however deep."""
    if not isinstance(document, dict | list):
        return []
    inner = document.values() if isinstance(document, dict) else document
    found = [value for one in inner for value in _values_of(one, name)]
    return [document[name], *found] if name in document else found


SAMPLES = [(flavour, api) for flavour in ("simple", "ha") for api in (V1, V2)]


@pytest.mark.parametrize(("flavour", "api"), SAMPLES)
def test_a_request_that_has_everything(flavour, api):
    body, build = made(flavour, api, Cloud(), values=VALUES)
    assert problems(body, api) == []
    assert build == {}
    path = parts.samples(api) / "requests" / f"instantiate-{flavour}.json"
    sample = json.loads(path.read_text())
    own = installation(body)
    for name, structure in installation(sample).items():
        names = ("aspect_id", "ssh_cp_name", "nic_cp_name", "script_path")
        for key in names:
            if name != "vim_name" and key in structure:
                assert own[name][key] == structure[key]
    assert own["master_node"]["username"] == "ubuntu"
    assert own["master_node"]["password"] == {"secret_ref": BARBICAN}
    assert own["external_lb_param"]["ssh_password"] == {"secret_ref": BARBICAN}
    assert own["ansible"]["password"] == {"file": "ansible-server"}
    assert own["ansible"]["kubespray_root_path"] == "/opt/kubespray"
    links = {link["extCps"][0]["cpdId"]: link for link in body["extVirtualLinks"]}
    wanted = {link["extCps"][0]["cpdId"]: link for link in sample["extVirtualLinks"]}
    assert shape(links) == shape(wanted)
    assert {link["resourceId"] for link in links.values()} == {OUTER.id}
    if api is V2:
        protocols = _values_of(links, "ipAddresses")
        assert protocols
        assert {one["numDynamicAddresses"] for (one,) in protocols} == {1}


@pytest.mark.parametrize(("flavour", "api"), SAMPLES)
def test_offline_every_blank_is_named_by_the_checks(flavour, api):
    body, build = made(flavour, api, hot={})
    assert problems(body, api) == sorted(
        [
            "additionalParams.key_name",
            "additionalParams.management_cidr",
            "ansible.ip_address",
            "ansible.private_key",
            "external_lb_param.ssh_private_key",
            "external_lb_param.ssh_username",
            "extVirtualLinks.0.resourceId",
            "extVirtualLinks.1.resourceId",
            "extVirtualLinks.2.resourceId",
            "master_node.private_key",
            "master_node.username",
            "worker_node.private_key",
            "worker_node.username",
        ]
    )
    assert build == {}


class TestGiven:
    """Options that the package does not fit are one error."""

    def test_names_that_nothing_reads(self):
        with pytest.raises(ValueError, match="--level") as caught:
            made(
                values={**VALUES, "level": "nosuch"},
                networks={"nosuchcp": "foo", "": "outer"},
                images={"nosuchvdu": "img"},
                flavors={"workerNod": "big", "workerNode": "big"},
                hot={"nosuchparameter": "1"},
            )
        lines = str(caught.value).splitlines()
        assert [line.partition(":")[0] for line in lines] == [
            *("--level", "--network", "--image", "--flavor", "--hot")
        ]
        assert lines[1] == (
            "--network: there is no external connection point nosuchcp (there are: "
            "externalLB_CP1, masterNode_CP1, workerNode_CP2)"
        )
        assert "there is no VDU workerNod (there are: externalLB, master" in lines[3]

    def test_values_that_heat_refuses(self):
        hot = {"management_cidr": "banana", "api_port": "70000"}
        with pytest.raises(ValueError, match="--hot") as caught:
            made(values=VALUES, hot=hot)
        assert str(caught.value).splitlines() == [
            "--hot api_port: 70000 is more than 65535",
            "--hot management_cidr: banana is no network such as 192.0.2.0/24",
        ]

    def test_answers_are_held_against_the_package(self):
        ask = Conversation()
        made(ask=ask, values=VALUES, hot={})
        level, cidr = (
            ask.questions[name].problem for name in ("level", "hot management_cidr=")
        )
        assert level("nosuch") == "there is no level nosuch"
        assert "is no network" in cidr("banana")
        assert [level(""), level(LEVEL), cidr(""), cidr("192.0.2.0/24")] == [""] * 4


def test_questions_come_in_the_order_of_a_persons_thoughts():
    ask = Conversation()
    others = {
        "image_list": [Image("i9", "x")],
        "flavor_list": [Flavor("9", "x", 1, 1, 1)],
    }
    made(cloud=Cloud(**others), ask=ask, hot={}, values={})
    kinds = dict.fromkeys(option.partition(" ")[0] for option in ask.questions)
    assert list(kinds) == [
        *("name", "level", "image", "flavor", "network"),
        *("vm-user", "vm-private-key", "vm-password", "key-name", "hot"),
        *("vim-name", "ansible-host", "ansible-user", "ansible-private-key"),
        *("ansible-password", "kubespray", "directory", "venv"),
    ]


class TestNetworks:
    def test_several_are_offered_and_the_last_answer_is_the_next_default(self):
        second = replace(OUTER, id="e2", name="second")
        closed = replace(OUTER, id="e3", name="closed", is_open=False)
        inner = "vnf-3f1c-internalVL-k3j5h2g7d9s1"
        # Such as Heat names it, and as a template may.
        stacks = [replace(OUTER, id=name, name=name) for name in (inner, "internalVL")]
        cloud = Cloud(network_list=[OUTER, second, closed, *stacks])
        ask = Conversation(**{"network masterNode_CP1=": "second"})
        body, _ = made(cloud=cloud, ask=ask, values=VALUES)
        assert {link["resourceId"] for link in body["extVirtualLinks"]} == {"e2"}
        asked = ask.questions["network masterNode_CP1="]
        assert (asked.choices, asked.default) == (("external", "second"), "")

    def test_without_an_answer_the_blank_lists_them(self):
        second = replace(OUTER, id="e2", name="second")
        cloud = Cloud(network_list=[OUTER, second])
        body, _ = made(cloud=cloud, values=VALUES)
        text = body["extVirtualLinks"][0]["resourceId"]
        assert text == mark(
            "network of masterNode_CP1, its id or name (there are: external, second)"
        )

    def test_of_one_connection_point_and_of_all_others(self):
        given = {"externalLB_CP1": "public", "": "inner"}
        body, _ = made(networks=given, values=VALUES)
        found = {
            link["extCps"][0]["cpdId"]: link["resourceId"]
            for link in body["extVirtualLinks"]
        }
        assert found.pop("externalLB_CP1") == "public"
        assert set(found.values()) == {"inner"}

    def test_two_of_one_name_stay_a_name(self):
        cloud = Cloud(network_list=[OUTER, replace(OUTER, id="e2")])
        body, _ = made(cloud=cloud, networks={"": "external"}, values=VALUES)
        assert {one["resourceId"] for one in body["extVirtualLinks"]} == {"external"}


class TestPackage:
    def test_an_image_that_the_cloud_has_not_becomes_an_option(self):
        cloud = Cloud(image_list=[Image("i", "Rocky-9", distribution="rocky")])
        body, build = made(cloud=cloud, values=VALUES)
        assert build["--image"] == [
            *("masterNode=Rocky-9", "workerNode=Rocky-9", "externalLB=Rocky-9")
        ]
        assert installation(body)["worker_node"]["username"] == "rocky"

    def test_images_on_which_kubespray_installs_nothing_are_no_default(self):
        other = Image("o", "cirros", distribution="cirros")
        _, build = made(cloud=Cloud(image_list=[other]), values=VALUES)
        assert all("<fill in: image of" in text for text in build["--image"])

    def test_the_smallest_comfortable_flavour(self):
        flavors = [
            Flavor("1", "tiny", 1, 512, 1),
            Flavor("2", "thin", 2, 4096, 8),
            Flavor("3", "fit", 2, 4096, 40),
            Flavor("4", "fat", 8, 16384, 0),
        ]
        _, build = made(cloud=Cloud(flavor_list=flavors), values=VALUES)
        assert build["--flavor"] == [
            *("masterNode=fit", "workerNode=fit", "externalLB=fit")
        ]

    def test_given_images_and_flavours(self):
        given = {"images": {"": UBUNTU}, "flavors": {"workerNode": "huge"}}
        _, build = made(values=VALUES, **given)
        assert build == {"--flavor": ["workerNode=huge"]}

    @pytest.mark.parametrize("keys", [["mine"], []])
    def test_a_key_pair_is_a_parameter_of_the_base_hot(self, keys):
        values = {**VALUES, "vm-private-key": "./vm"}
        del values["vm-password"]
        body, build = made(cloud=Cloud(keys=keys), values=values)
        name = body["additionalParams"]["key_name"]
        assert name == (
            keys[0] if keys else mark("key pair of the VMs, by its name in Nova")
        )
        assert build == {}

    def test_a_key_pair_that_the_base_hot_does_not_take_is_an_option(self):
        body, build = made(edit=rename_key, values={**VALUES, "key-name": "mine"})
        assert "key_name" not in body["additionalParams"]
        assert build == {"--key-name": ["mine"]}

    def test_parameters_of_the_base_hot_without_a_default(self):
        own = "  office:\n    type: string\n    description: From where\n"
        own += "  disk:\n    type: number\n    default: 1\n"

        def edit(hot):
            return hot.replace(KEYED, own + KEYED)

        body, _ = made(edit=edit, values=VALUES)
        assert body["additionalParams"]["office"] == mark("From where")
        assert "disk" not in body["additionalParams"]
        given = {**HOT, "office": "192.0.2.0/24", "disk": "9"}
        body, _ = made(edit=edit, values=VALUES, hot=given)
        assert body["additionalParams"]["office"] == "192.0.2.0/24"
        assert body["additionalParams"]["disk"] == 9

    def test_with_passwords_no_key_pair_is_needed(self):
        body, _ = made(values=VALUES)
        assert "key_name" not in body["additionalParams"]

    def test_other_names_of_vdus_become_blanks(self):
        found = files()
        for name in list(found):
            text = found[name].replace(b"masterNode", b"boss")
            found[name] = text.replace(b"workerNode", b"bee")
        source = demand.package(found)
        site = Interview(source, None, Given(values=VALUES), Conversation()).site()
        body = interview.body(source, found, site.answers)
        assert "master_node.ssh_cp_name" in problems(body)
        text = installation(body)["master_node"]["ssh_cp_name"]
        assert "(boss_CP1, bee_CP2, externalLB_CP1)" in text


class TestSecrets:
    @pytest.mark.parametrize("option", ["vm-password", "ansible-password"])
    def test_a_literal_one_is_refused_and_not_repeated(self, option):
        with pytest.raises(ValueError, match=f"--{option}: this would put") as caught:
            made(values={**VALUES, option: "s3cret"})
        assert "s3cret" not in str(caught.value)

    def test_paths_are_for_keys_only(self):
        values = {**VALUES, "ansible-private-key": "/etc/keys/one"}
        del values["ansible-password"]
        body, _ = made(values=values)
        assert installation(body)["ansible"]["private_key"] == "/etc/keys/one"
        with pytest.raises(ValueError, match="--vm-password"):
            made(values={**VALUES, "vm-password": "/etc/keys/one"})

    def test_asked_for_one_after_the_other(self):
        ask = Conversation(vm_password="file:vm", ansible_private_key="./ansible")
        body, _ = made(ask=ask, values={"ansible-host": "a"})
        own = installation(body)
        assert own["worker_node"]["password"] == {"file": "vm"}
        assert own["ansible"]["private_key"] == "./ansible"
        assert "ansible-password" not in ask.questions

    def test_with_literal_secrets_there_is_nothing_to_fill_in(self):
        body, _ = made(values={"ansible-host": "a"}, with_secrets=True)
        own = installation(body)
        assert not {"password", "private_key"} & own["ansible"].keys()


def test_further_parameters():
    more = {"address_family": "ipv6", "cluster.network.plugin": "cilium"}
    body, _ = made(api=V2, values=VALUES, more=more)
    assert installation(body)["cluster"] == {"network": {"plugin": "cilium"}}
    config = body["extVirtualLinks"][0]["extCps"][0]["cpConfig"]
    assert '"type": "IPV6"' in json.dumps(config)
    with pytest.raises(ValueError, match="vim_name is no structure"):
        made(values=VALUES, more={"vim_name.x": 1})


def test_an_answer_without_a_question():
    ask = Conversation()
    made(ask=ask, cloud=Cloud(), values={**VALUES, "name": "blue", "level": LEVEL})
    assert not {"name", "level", "ansible-host"} & ask.questions.keys()
    assert ask.questions["vim-name"].default == "blue"
    assert ask.questions["directory"].default == "/home/ansible/clusters/blue"
