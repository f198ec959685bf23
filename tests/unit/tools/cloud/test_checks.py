# SPDX-License-Identifier: Apache-2.0
"""`preflight --cloud`: each thing that a cloud lacks, with the remedy."""

import copy
import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.tools.cloud import cloud_checks, demand, facts
from tacker_k8s_mgmt.tools.cloud.facts import Flavor, Image, Quota, Subnet, Vim
from tacker_k8s_mgmt.tools.csar import body as requests
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2
from tests.unit.tools.cli.bodies import installation
from tests.unit.tools.cloud.fakes import OUTER, VERSION, Cloud, package


class Case:
    """A request, the package that it is for, and a cloud."""

    def __init__(self, flavour="simple", api=V1, edit=None):
        path = parts.samples(api) / "requests" / f"instantiate-{flavour}.json"
        self.body = json.loads(path.read_text())
        self.source = package(flavour, api, edit)
        self.cloud = Cloud()
        self.cloud.types |= self.demand().types

    @property
    def given(self):
        return installation(self.body)

    def _read(self):
        parsed = reader.RequestReader().read(self.body["additionalParams"])
        return requests.read(copy.deepcopy(self.body)), parsed

    def demand(self):
        request, parsed = self._read()
        return demand.of_request(request, parsed, self.source)

    def checks(self):
        request, parsed = self._read()
        made = demand.of_request(request, parsed, self.source)
        return cloud_checks.CloudChecks(self.cloud, request, parsed, self.source, made)

    def findings(self):
        """The rows with findings: the name of each, and its findings as one text."""
        rows = self.checks().rows()
        return {row.name: "; ".join(row.findings) for row in rows if row.findings}


@pytest.fixture
def case():
    return Case()


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
@pytest.mark.parametrize("flavour", ["simple", "ha"])
def test_the_samples_fit_a_cloud_that_has_everything(api, flavour):
    case = Case(flavour, api)
    rows = list(case.checks().rows())
    assert [row.findings for row in rows if row.findings] == []
    names = [row.name for row in rows]
    assert names.count("image") == 1
    assert names.count("flavour") == 2
    wanted = {"key pair", "network", "pods' packets", "quotas of Nova", "Heat"}
    assert wanted < set(names)
    assert "quotas of Cinder" not in names


class TestDemand:
    def test_of_the_simple_sample(self, case):
        made = case.demand()
        assert {vdu.name: vdu.number for vdu in made.vdus} == {
            "masterNode": 1,
            "workerNode": 2,
            "externalLB": 1,
        }
        assert made.counts["instances"] == 4
        assert made.counts["ports"] == 8
        assert made.counts["security_groups"] == 5
        assert made.counts["security_group_rules"] == 2 + 1 + 1 + 1 + 2 + 5 * 2
        assert made.versions == {VERSION}
        assert set(made.networks.values()) == {"external"}

    @pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
    def test_of_a_level(self, api):
        case = Case("ha", api)
        case.body["instantiationLevelId"] = "instantiation_level_1"
        made = case.demand()
        numbers = {vdu.name: vdu.number for vdu in made.vdus}
        level = case.source.flavour.instances("instantiation_level_1")
        assert numbers == {name: level[name] for name in numbers}
        assert made.counts["server_groups"] == 2

    def test_an_unknown_flavour_of_the_package(self):
        files = parts.collect("ha", source=parts.samples())
        with pytest.raises(PackageError, match=r"no such flavour .*there are: ha"):
            demand.package(files, "simple")


class TestImage:
    def test_absent(self, case):
        case.cloud.image_list.clear()
        text = case.findings()["image"]
        assert "Glance has no such image" in text
        assert "csar build --image" in text

    def test_not_uploaded(self, case):
        (image,) = case.cloud.image_list
        case.cloud.image_list = [replace(image, status="queued")]
        assert "the image is queued" in case.findings()["image"]

    def test_of_a_kind_that_kubespray_refuses(self, case):
        (image,) = case.cloud.image_list
        case.cloud.image_list = [replace(image, distribution="cirros")]
        assert "its property os_distro is cirros" in case.findings()["image"]
        case.given["kubespray_vars"] = {"allow_unsupported_distribution_setup": True}
        assert case.findings() == {}

    def test_the_name_tells_where_the_property_is_absent(self, case):
        (image,) = case.cloud.image_list
        case.cloud.image_list = [replace(image, distribution="")]
        assert case.findings() == {}

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("Rocky-9-GenericCloud", "rocky"),
            ("noble-server-cloudimg-amd64", "ubuntu"),
            ("debian-12-generic", "debian"),
            ("focal-server-cloudimg-amd64", "ubuntu"),
            ("fcos-40", "coreos"),
            ("fedora-coreos-41", "coreos"),
            ("Fedora-Cloud-42", "fedora"),
            ("Windows Server", ""),
            ("my-golden-image", ""),
        ],
    )
    def test_distributions_by_name(self, name, found):
        assert facts.distribution(Image("i", name)) == found

    @pytest.mark.parametrize("distribution", ["", "house-linux"])
    def test_an_image_of_which_nothing_is_known_is_a_warning(self, case, distribution):
        (image,) = case.cloud.image_list
        own = replace(image, name="golden", distribution=distribution, id=image.name)
        case.cloud.image_list = [own]
        found = case.checks()
        assert [row.findings for row in found.rows() if row.findings] == []
        (warning,) = found.warnings
        assert warning.startswith("image: golden: kubespray may not install on it")

    def test_an_image_whose_name_says_that_it_cannot_be(self, case):
        (image,) = case.cloud.image_list
        case.cloud.image_list = [
            replace(image, name="Windows 11", distribution="", id=image.name)
        ]
        assert "its name has no distribution's" in case.findings()["image"]

    def test_login_users(self):
        assert facts.login(Image("i", "debian-12")) == "debian"
        assert facts.login(Image("i", "debian-12", login="ops")) == "ops"
        assert facts.login(Image("i", "golden")) == ""
        assert facts.login(Image("i", "fcos-40")) == "core"


class TestFlavour:
    def test_absent(self, case):
        del case.cloud.flavor_list[0]
        assert "Nova has no such flavour" in case.findings()["flavour"]

    @pytest.mark.parametrize(("ram", "good"), [(1500, False), (1600, True)])
    def test_memory_of_a_control_plane(self, case, ram, good):
        case.cloud.flavor_list[1] = Flavor("3", "m1.medium", 2, ram, 40)
        text = case.findings().get("flavour", "")
        assert bool(text) != good
        if text:
            assert "kubespray wants 1500 MB for masterNode" in text
            assert "workerNode" not in text

    def test_memory_of_a_worker(self, case):
        case.cloud.flavor_list[1] = Flavor("3", "m1.medium", 2, 1024, 40)
        assert "wants 1024 MB for workerNode" in case.findings()["flavour"]
        case.given["kubespray_vars"] = {"minimal_node_memory_mb": 512}
        assert "workerNode" not in case.findings()["flavour"]
        case.given["kubespray_vars"] = {"ignore_assert_errors": True}
        assert case.findings() == {}

    def test_the_load_balancer_is_no_node_of_kubespray(self, case):
        case.cloud.flavor_list[0] = Flavor("2", "m1.small", 1, 512, 20)
        assert case.findings() == {}

    def test_what_the_image_needs(self, case):
        (image,) = case.cloud.image_list
        case.cloud.image_list = [replace(image, min_disk=30, min_ram=3000)]
        text = case.findings()["flavour"]
        assert "its disk has 20 GiB" in text
        assert "it has 2048 MiB of memory, and the image" in text

    def test_a_flavour_without_a_disk_boots_from_a_volume(self, case):
        case.cloud.flavor_list = [replace(f, disk=0) for f in case.cloud.flavor_list]
        assert case.findings() == {}
        (image,) = case.cloud.image_list
        case.cloud.image_list = [replace(image, min_disk=1)]
        assert case.findings() == {}


class TestKeyPair:
    def test_absent(self, case):
        case.body["additionalParams"]["key_name"] = "ours"
        text = case.findings()["key pair"]
        assert "no key pair ours (there are: lab)" in text
        assert "openstack keypair create" in text
        case.cloud.keys = ["ours"]
        assert case.findings() == {}

    def test_none_is_wanted(self, case):
        case.cloud.keys = []
        del case.body["additionalParams"]["key_name"]
        rows = {row.name: row for row in case.checks().rows()}
        assert rows["key pair"].skipped == "no VM has one (key_name)"


class TestNetworks:
    def test_absent(self, case):
        case.cloud.network_list.clear()
        assert "Neutron has no such network" in case.findings()["network"]

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({"is_up": False}, "it is switched off"),
            ({"is_open": False}, "a network of another project"),
            ({"is_open": False, "is_external": True}, "with floating IPs"),
            ({"subnets": ()}, "no ipv4 subnet"),
            ({"subnets": (Subnet("s", "2001:db8::/64"),)}, "no ipv4 subnet"),
            ({"subnets": (Subnet("s", "10.233.0.0/24"),)}, "overlaps the network of"),
            (
                {"subnets": (Subnet("s", "10.233.64.0/24"),)},
                "overlaps the network of p",
            ),
            ({"port_security": False}, "has security groups or address pairs"),
        ],
    )
    def test_unfit(self, case, change, text):
        case.cloud.network_list = [replace(OUTER, **change)]
        assert text in case.findings()["network"]

    def test_port_security_that_this_neutron_has_not_is_no_problem(self, case):
        case.cloud.network_list = [replace(OUTER, port_security=None)]
        assert case.findings() == {}

    def test_packets_without_encapsulation(self, case):
        case.given["cluster"] = {"network": {"encapsulation": "none"}}
        text = case.findings()["pods' packets"]
        assert "Neutron drops the packets of pods at masterNode_CP2" in text
        pairs = [{"ip_address": "10.233.64.0/18"}]
        case.body["additionalParams"]["address_pairs"] = pairs
        assert case.findings() == {}
        case.cloud.extensions = frozenset()
        assert (
            "has no extension allowed-address-pairs"
            in (case.findings()["pods' packets"])
        )

    def test_packets_on_a_network_that_filters_nothing(self, case):
        """Nodes that talk to each other over the existing network."""
        case.given["cluster"] = {"network": {"encapsulation": "none"}}
        for name, cp in (("master_node", "masterNode_CP1"), ("worker_node", None)):
            case.given[name]["nic_cp_name"] = cp or "workerNode_CP2"
        assert "pods' packets" in case.findings()
        case.cloud.network_list = [replace(OUTER, port_security=False)]
        assert "pods' packets" not in case.findings()

    def test_gateways_of_the_networks_with_logins(self, case):
        assert case.checks().networks.gateways() == {"external": "10.99.0.1"}
        case.cloud.network_list = [replace(OUTER, subnets=())]
        assert case.checks().networks.gateways() == {}


class TestQuotas:
    def test_nova(self, case):
        case.cloud.compute = {
            "instances": Quota(10, 7),
            "cores": Quota(6, 0),
            "ram": Quota(14336, 1),
            "server_groups": Quota(-1, 100),
        }
        text = case.findings()["quotas of Nova"]
        assert "instances: the request needs 4, and of 10 there are 3 left" in text
        assert "cores: the request needs 7, and of 6" in text
        assert "MiB of ram: the request needs 14336" in text
        assert "server groups" not in text

    def test_neutron(self, case):
        case.cloud.neutron = {"ports": Quota(10, 3), "security_groups": Quota(5, 0)}
        text = case.findings()["quotas of Neutron"]
        assert text.startswith("ports: the request needs 8, and of 10 there are 7 left")
        assert "security groups" not in text

    def test_floating_ips_and_volumes_where_the_hot_has_them(self):
        more = (
            "  fip:\n    type: OS::Neutron::FloatingIP\n    properties:\n"
            "      floating_network: public\n"
            "  disk:\n    type: OS::Cinder::Volume\n    properties: { size: 200 }\n"
        )
        case = Case(edit=lambda hot: hot + more)
        case.cloud.neutron = {"floating_ips": Quota(1, 1)}
        found = case.findings()
        assert "floating ips: the request needs 1" in found["quotas of Neutron"]
        assert (
            "gigabytes of volumes: the request needs 200" in (found["quotas of Cinder"])
        )


class TestHeatAndTacker:
    def test_versions_and_types(self, case):
        case.cloud.versions = frozenset({"2016-10-14"})
        case.cloud.types.remove("OS::Heat::AutoScalingGroup")
        text = case.findings()["Heat"]
        assert f"does not read heat_template_version {VERSION}" in text
        assert "it reads: 2016-10-14" in text
        assert "does not make OS::Heat::AutoScalingGroup" in text

    @pytest.mark.parametrize(
        ("vims", "text"),
        [
            ([], "there is none: openstack vim register"),
            ([Vim("one", "openstack")], "there is none"),
            ([Vim("one", "kubernetes", True)], "is of type kubernetes"),
            ([Vim("one", "openstack", True, project="else")], "for the project else"),
        ],
    )
    def test_the_default_vim(self, case, vims, text):
        case.cloud.vim_list = vims
        assert text in case.findings()["Tacker's default VIM"]

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({"auth_url": "https://KEYSTONE.example.org:5000/v3/"}, ""),
            ({"auth_url": "http://192.0.2.1:5000/v2.0"}, ""),
            ({"domain": "default"}, ""),
            ({"auth_url": "https://other.example.org:5000/v3"}, "at https://other.exa"),
            ({"auth_url": "https://keystone.example.org/v3"}, "and this login is at h"),
            ({"domain": "tenants"}, "for the project nfv of the domain tenants, and"),
        ],
    )
    def test_the_default_vim_is_the_cloud_that_is_checked(self, case, change, text):
        (vim,) = case.cloud.vim_list
        case.cloud.vim_list = [replace(vim, **change)]
        found = case.findings().get("Tacker's default VIM", "")
        assert (text in found) if text else not found

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({}, ""),
            ({"vimType": "ETSINFV.KUBERNETES.V_1"}, "VMs need an OpenStack"),
            (
                {"interfaceInfo": {"endpoint": "https://other.example.org/v3"}},
                "one is at https://other.example.org/v3",
            ),
            ({"accessInfo": {"project": "else"}}, "one is for the project else"),
            ({"vimId": "v1"}, ""),
            ({"vimId": "v2"}, "Tacker has no VIM of the id v2"),
            ({"vimId": "v3"}, "other is for the project else"),
        ],
    )
    def test_the_vim_of_a_v1_request(self, case, change, text):
        case.cloud.vim_list = [
            Vim("lab", "openstack", project="nfv", id="v1"),
            Vim("other", "openstack", project="else", id="v3"),
        ]
        info = {
            "id": "one",
            "vimType": "ETSINFV.OPENSTACK_KEYSTONE.v_2",
            "interfaceInfo": {"endpoint": case.cloud.auth_url},
            "accessInfo": {"project": "nfv", "password": "s3cret"},
        }
        case.body["vimConnectionInfo"] = [{**info, **change}]
        found = case.findings().get("VIM of the request", "")
        assert (text in found) if text else not found
        assert "s3cret" not in found

    def test_a_v2_request_for_another_cloud(self):
        case = Case(api=V2)
        info = {
            "vimId": "of no registry",
            "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
            "interfaceInfo": {"endpoint": case.cloud.auth_url},
            "accessInfo": {"project": "nfv", "projectDomain": "tenants"},
        }
        case.body["vimConnectionInfo"] = {"vim1": info}
        assert "of the domain tenants" in case.findings()["VIM of the request"]

    def test_a_request_with_its_own_vim_needs_no_default(self):
        case = Case(api=V2)
        case.cloud.vim_list = []
        info = {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}
        case.body["vimConnectionInfo"] = {"vim1": info}
        assert case.findings() == {}

    def test_the_name_of_the_clusters_vim(self, case):
        assert case.checks().vims.name("free").findings == ()
        (text,) = case.checks().vims.name("lab").findings
        assert "choose another vim_name" in text


def test_every_service_that_does_not_answer_is_its_rows_finding(case):
    case.cloud.silent = {"Glance", "Nova", "Neutron", "Heat", "Tacker"}
    found = case.findings()
    assert set(found) == {
        *("image", "flavour", "network", "pods' packets", "quotas of Nova"),
        *("quotas of Neutron", "Heat", "Tacker's default VIM", "key pair"),
    }
    assert found["Heat"] == "The cloud's catalogue has no Heat."
