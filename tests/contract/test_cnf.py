# SPDX-License-Identifier: Apache-2.0
"""The driver of CNFs, as the installed Tacker loads and calls it."""

import contextlib
import copy
import hashlib
import inspect
import types
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest
import yaml

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_config import cfg
from pydantic import SecretStr
from tacker import context as tacker_context
from tacker import objects
from tacker.common import driver_manager, exceptions, oidc_utils
from tacker.sol_refactored import objects as v2_objects
from tacker.sol_refactored.api.schemas import vnflcm_v2
from tacker.sol_refactored.common import vnf_instance_utils
from tacker.vnflcm import utils as vnflcm_utils

import tacker_k8s_mgmt.cnf_exposure_mgmt
from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.features.exposure.cnf_operations import (
    CheckExposure,
    CheckModified,
    Expose,
    Unexpose,
)
from tacker_k8s_mgmt.hooks import instances as lookup
from tacker_k8s_mgmt.hooks.advice import CHECK, SEND_FAIL_FIRST
from tacker_k8s_mgmt.hooks.cnf import driver, manifests
from tacker_k8s_mgmt.hooks.cnf.v1 import TYPE
from tacker_k8s_mgmt.hooks.cnf.v2 import CnfHookV2
from tacker_k8s_mgmt.hooks.v1 import database, vim_registry
from tacker_k8s_mgmt.hooks.v1 import lookup as v1_lookup
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook
from tacker_k8s_mgmt.hooks.v1.instance import VIM_KEY, V1Instance
from tacker_k8s_mgmt.hooks.v2 import connections
from tacker_k8s_mgmt.hooks.v2 import lookup as v2_lookup
from tacker_k8s_mgmt.hooks.v2.call import HookCall, cluster_vim_id
from tacker_k8s_mgmt.hooks.v2.hook import V2Hook
from tacker_k8s_mgmt.model.vim import ClusterAccess, ClusterIdentity
from tacker_k8s_mgmt.operations.step import Step, Steps
from tacker_k8s_mgmt.remote.kubernetes import api_login
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE
from tests.contract import tacker_configuration
from tests.contract.v1_instances import GOOD, instance
from tests.helpers.cnf import CNF
from tests.helpers.requests import params

objects.register_all()

#: Never change these: packages in the field carry files with exactly these hashes.
V1_SHA256 = "982be538979674e2cdb4a2f2d3ba3364fbb27ebaf4dc19e6d351683b2415022f"
V2_SHA256 = "bb28fb19abca04133b0bb0c02e6de2768f4cca7d941c491915c2850192a712d5"
SHIMS = {
    "cnf_exposure_mgmt.py": V1_SHA256,
    "cnf_exposure_mgmt_v2.py": V2_SHA256,
}
CONTEXT = tacker_context.get_admin_context()
ENDPOINT = "https://203.0.113.9:6443"
NAME = "web-1"
ONE, TWO = (f"9f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f0{number}" for number in (1, 2))
WEB = {"services": [{"name": "web", "ports": [{"port": 80, "external_port": 8000}]}]}
ONLY_LB = {"services": [{"name": "lb"}]}
MANIFEST = """
kind: ConfigMap
metadata: {name: other}
---
kind: Service
metadata: {name: web, namespace: theirs}
spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}
"""
FILES = ["Files/kubernetes/web.yaml"]


_FIND = """
import sys
from tacker_k8s_mgmt.hooks import instances
from tacker_k8s_mgmt.hooks.cnf import driver
instances._configure(sys.argv[1:])
for name in ("one", "two"):
    print(driver.at(f"https://{name}.example:6443"))
"""


class TestLoading:
    def test_tacker_loads_it_by_its_entry_point(self):
        manager = driver_manager.DriverManager("tacker.tacker.mgmt.drivers", [TYPE])
        assert TYPE in manager

    @pytest.mark.parametrize("name", SHIMS)
    def test_shim_is_frozen(self, name):
        loaded = tacker_k8s_mgmt.cnf_exposure_mgmt.CnfExposureMgmtDriver
        path = Path(inspect.getfile(loaded)).with_name(name)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == SHIMS[name]


@pytest.fixture
def registered(monkeypatch):
    """The clusters that Tacker knows: ids and endpoints of each API."""

    def put(v1=(), v2=()):
        monkeypatch.setattr(vim_registry, "registered", lambda context: iter(v1))
        monkeypatch.setattr(v2_lookup, "registered", lambda context: iter(v2))
        known = {vnf_id: ClusterIdentity(url, "CA") for vnf_id, url in v2}
        monkeypatch.setattr(v2_lookup, "cluster_identity", known.get)

    put()
    return put


class TestCluster:
    def test_of_either_api_is_found_by_its_endpoint(self, registered):
        registered(v1=[(ONE, ENDPOINT)], v2=[(TWO, "https://lb/")])
        assert driver.at(ENDPOINT) == ONE
        assert driver.at("https://LB:443") == TWO

    @pytest.mark.parametrize(
        "written",
        ["https://[2001:DB8:0:0::9]:6443/", "HTTPS://[2001:0db8::9]:6443/api/"],
    )
    def test_is_found_by_every_spelling_of_its_endpoint(self, registered, written):
        registered(v1=[(ONE, "https://[2001:db8::9]:6443")])
        assert driver.at(written) == ONE

    def test_of_another_endpoint_is_refused_even_if_it_is_named(self, registered):
        registered(v1=[(ONE, ENDPOINT), (TWO, "https://203.0.113.8:6443")])
        with pytest.raises(driver.NoCluster) as caught:
            driver.at(ENDPOINT, TWO)
        assert f"as VNF instance {TWO}: it is that of VNF instance {ONE}" in str(
            caught.value
        )
        with pytest.raises(driver.NoCluster, match="is not a cluster that this driver"):
            driver.at("https://203.0.113.7:6443")

    def test_of_several_one_has_to_be_named(self, registered):
        registered(v1=[(ONE, ENDPOINT)], v2=[(TWO, ENDPOINT)])
        with pytest.raises(errors.TackerError, match="cluster_vnf_instance_id"):
            driver.at(ENDPOINT)
        assert driver.at(ENDPOINT, TWO) == TWO

    def test_of_several_the_one_that_accepts_the_login_is_meant(self, registered):
        registered(v1=[(ONE, ENDPOINT)], v2=[(TWO, ENDPOINT)])
        asked = []

        def check(vnf_id, is_v1):
            asked.append((vnf_id, is_v1))
            if vnf_id != TWO:
                raise api_login.LoginNotAccepted(endpoint=ENDPOINT, what="")

        assert driver.at(ENDPOINT, check=check) == TWO
        assert asked == [(ONE, True), (TWO, False)]
        with pytest.raises(api_login.LoginNotAccepted):
            driver.at(ENDPOINT, ONE, check)
        registered(v1=[(ONE, ENDPOINT)])
        with pytest.raises(api_login.LoginNotAccepted):
            driver.at(ENDPOINT, check=check)

    @pytest.mark.parametrize(
        "failure", [errors.RemoteError, errors.VimError, errors.TackerError]
    )
    def test_one_that_cannot_be_asked_does_not_hide_another(self, registered, failure):
        registered(v1=[(ONE, ENDPOINT)], v2=[(TWO, ENDPOINT)])

        def check(vnf_id, is_v1):
            if vnf_id == ONE:
                raise failure(detail="no answer")

        assert driver.at(ENDPOINT, check=check) == TWO

    def test_a_transaction_of_tackers_is_not_open_during_work(
        self, monkeypatch, tmp_path
    ):
        done: list[str] = []
        monkeypatch.setattr(config, "state_path", lambda _: str(tmp_path))
        one = instance()
        one.instantiated_vnf_info.vnfc_resource_info = []
        hook = v1_lookup.Command("a hook", CONTEXT, one)
        monkeypatch.setattr(hook, "site", mock.MagicMock())
        record = mock.Mock(command=lambda name: (hook, params()))
        monkeypatch.setattr(lookup, "record", lambda cluster: record)
        monkeypatch.setattr(
            database, "release", lambda context: done.append("released")
        )

        def operation(_):
            return Steps(Step("work", "work", lambda: done.append("work")))

        driver.work(ONE, "a hook", operation, CHECK)
        assert done == ["released", "work"]

    def test_registry_is_not_believed_without_the_instance(self, monkeypatch):
        def entry(vim_id, **changes):
            mark = f"Kubernetes cluster of VNF instance {ONE}"
            found = {"id": vim_id, "type": "kubernetes", "auth_url": ENDPOINT}
            return {**found, "description": mark, **changes}

        gone = f"Kubernetes cluster of VNF instance {TWO}"
        vims = [
            entry("forged"),
            entry("ours"),
            entry("plain", description="Kubernetes"),
            entry("none", description=None),
            entry("gone", description=gone),
            entry("ours", type="openstack"),
            entry("ours", description=f"A cluster of mine, as VNF instance {ONE}"),
        ]
        plugin = types.SimpleNamespace(get_vims=lambda context: vims)
        monkeypatch.setattr(vim_registry, "_plugin", lambda: plugin)

        def by_id(context, vnf_id):
            if vnf_id != ONE:
                raise exceptions.VnfInstanceNotFound(id=vnf_id)
            return types.SimpleNamespace(vnf_metadata={VIM_KEY: "ours"})

        monkeypatch.setattr(objects.VnfInstance, "get_by_id", by_id)
        assert list(vim_registry.registered(CONTEXT)) == [(ONE, ENDPOINT)]


def test_clusters_of_both_apis_are_found_in_tackers_database(tmp_path):
    """By a process that has loaded nothing of Tacker before, as the script of v2."""
    config_file = tacker_configuration.configured(tmp_path)
    known = tacker_configuration.database(tmp_path, config_file)
    done = tacker_configuration.python("-c", _FIND, config_file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [known["vim"], known["v2 vim"]]


@pytest.fixture
def done(monkeypatch, registered):
    """What the hooks do to clusters, in place of doing it."""
    registered(v1=[(ONE, ENDPOINT)])
    found, occurrences = [], []

    def work(cluster, name, operation, advice, followed_by, details):
        assert details == {"cnf_name": NAME, "lcm_op_occ_id": details["lcm_op_occ_id"]}
        occurrences.append(details["lcm_op_occ_id"])
        pair = name.replace("_start", "_end")
        checks = operation.func in (CheckExposure, CheckModified)
        assert followed_by == (pair if checks else "")
        found.append((cluster, name, operation.func, operation.keywords))

    monkeypatch.setattr(driver, "work", work)
    monkeypatch.setattr(driver, "check_login", lambda *_, **__: None)
    yield found
    assert len({*occurrences}) <= 1


@pytest.fixture
def v1(monkeypatch, tmp_path, done):
    """Call a hook of the v1 API for a CNF; the package has one manifest."""
    place = tmp_path / FILES[0]
    place.parent.mkdir(parents=True)
    place.write_text(MANIFEST)
    monkeypatch.setattr(
        vnflcm_utils, "_get_vnf_package_path", lambda context, vnfd: str(tmp_path)
    )
    access = {"auth_url": ENDPOINT}
    monkeypatch.setattr(V1Instance, "vim_access", lambda _: access)
    monkeypatch.setattr(V1Hook, "begin", lambda hook: None)
    rows = [("v1,Service", "web"), ("apps/v1,Deployment", "pods")]
    listed = [types.SimpleNamespace(resource_type=t, resource_name=n) for t, n in rows]
    monkeypatch.setattr(
        objects.VnfResourceList, "get_by_vnf_instance_id", lambda *_: listed
    )
    made = tacker_k8s_mgmt.cnf_exposure_mgmt.CnfExposureMgmtDriver()

    def call(hook, keyword, request=None, stored=None, **changes):
        one = instance(stored)
        one.id, one.vnf_instance_name = CNF, NAME
        one.vim_connection_info = ["kubernetes"]
        one.vnf_metadata = {"namespace": "theirs"}
        for name, value in changes.items():
            setattr(one, name, value)
        getattr(made, hook)(context=CONTEXT, vnf_instance=one, **{keyword: request})
        return one.vnf_metadata

    return call


@pytest.fixture
def package(tmp_path):
    """Read the Services of one manifest of a package."""
    place = tmp_path / "package"
    place.mkdir()

    def read(text, name="web.yaml"):
        (place / "web.yaml").write_text(text)
        return manifests.services(str(place), [name], None)

    return read


class TestEntriesOfUsers:
    """vimConnectionInfo of the v2 API, as anyone may write it."""

    @pytest.fixture
    def instances(self, monkeypatch, tmp_path):
        """What Tacker's database has of VNF instances."""
        monkeypatch.setattr(
            vim_registry, "registered", lambda context: iter([(ONE, ENDPOINT)])
        )
        monkeypatch.setattr(v2_lookup, "_state_path", lambda: str(tmp_path))
        found = []
        types_of = [types.SimpleNamespace(id=TWO, to_dict=lambda: found[0])]
        v2_objects.register_all()
        objects_v2 = v2_objects.VnfInstanceV2
        monkeypatch.setattr(objects_v2, "get_all", lambda context: types_of)
        monkeypatch.setattr(objects_v2, "get_by_id", lambda *_: types_of[0])

        def put(entry):
            found[:] = [{"id": TWO, "vimConnectionInfo": {"x": entry}}]

        return put

    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"interfaceInfo": {}},
            {"interfaceInfo": {"endpoint": ""}},
            {"interfaceInfo": {"endpoint": ENDPOINT}},
            {"interfaceInfo": {"endpoint": ENDPOINT}, "accessInfo": {}},
            {
                "interfaceInfo": {"endpoint": ENDPOINT, "ssl_ca_cert": "x"},
                "accessInfo": {"bearer_token": "not one"},
            },
        ],
    )
    def test_neither_count_nor_make_ambiguous(self, instances, more):
        body = {"vimId": cluster_vim_id(TWO), "vimType": "ETSINFV.KUBERNETES.V_1"}
        entry = {**body, **more}
        patch = {"vimConnectionInfo": {"x": entry}}
        jsonschema.validate(patch, vnflcm_v2.VnfInfoModificationRequest_V200)
        instances(entry)
        assert driver.at(ENDPOINT) == ONE
        with pytest.raises(driver.NoCluster):
            driver.at(ENDPOINT, TWO)

    def test_do_not_move_a_cluster_that_is_recorded(self, instances, tmp_path):
        known = ClusterIdentity("https://two.example:6443", "CA", "uid")
        connections.write(str(tmp_path), TWO, known)
        entry = {"vimId": cluster_vim_id(TWO), "interfaceInfo": {"endpoint": ENDPOINT}}
        instances(entry)
        assert driver.at(ENDPOINT) == ONE
        assert driver.at("https://two.example:6443") == TWO
        with pytest.raises(driver.NoCluster):
            driver.at(ENDPOINT, TWO)

    def test_that_lead_to_a_cluster_are_recorded_at_the_first_use(
        self, instances, monkeypatch, tmp_path
    ):
        url = "https://two.example:6443"
        known = ClusterIdentity(url, "CA", "uid")
        seen = []

        def identify(entry):
            seen.append(entry)
            return known

        monkeypatch.setattr(api_login, "identify", identify)
        instances({"vimId": cluster_vim_id(TWO), "interfaceInfo": {"endpoint": url}})
        assert driver.at(url) == TWO
        assert driver.at(url) == TWO
        assert len(seen) == 1
        assert connections.read(str(tmp_path), TWO) == known

    def test_that_another_conductor_has_registered_are_recorded_again(
        self, instances, monkeypatch, tmp_path
    ):
        url = "https://moved.example:6443"
        connections.write(str(tmp_path), TWO, ClusterIdentity("https://old", "CA", "u"))
        interface = {"endpoint": url, "ssl_ca_cert": "NEW"}
        instances({"vimId": cluster_vim_id(TWO), "interfaceInfo": interface})
        monkeypatch.setattr(api_login, "identify", lambda entry: None)
        with pytest.raises(driver.NoCluster):
            driver.at(url)
        moved = ClusterIdentity(url, "NEW", "u")
        monkeypatch.setattr(api_login, "identify", lambda entry: moved)
        assert driver.at(url) == TWO
        assert connections.read(str(tmp_path), TWO) == moved

    def test_do_not_hide_another_cluster_with_an_error(
        self, instances, registered, monkeypatch
    ):
        """As one with a certificate that is none, beside one of an earlier release."""
        monkeypatch.setattr(vim_registry, "registered", lambda context: iter(()))
        listed = [(ONE, ENDPOINT), (TWO, ENDPOINT)]
        monkeypatch.setattr(v2_lookup, "registered", lambda context: iter(listed))
        known = ClusterIdentity(ENDPOINT, "CA", "uid")

        def identity(context, vnf_id):
            if vnf_id != ONE or known is None:
                raise errors.RemoteError(detail="silent")
            return known

        monkeypatch.setattr(v2_lookup, "identity", identity)
        assert driver.at(ENDPOINT) == ONE
        known = None
        with pytest.raises(errors.RemoteError, match="silent"):
            driver.at(ENDPOINT)

    def test_do_not_hide_a_record_while_the_cluster_is_silent(
        self, instances, monkeypatch, tmp_path
    ):
        known = ClusterIdentity("https://two.example:6443", "CA", "uid")
        connections.write(str(tmp_path), TWO, known)
        instances({"vimId": cluster_vim_id(TWO), "interfaceInfo": {"endpoint": "x"}})

        def identify(entry):
            raise errors.RemoteError(detail="silent")

        monkeypatch.setattr(api_login, "identify", identify)
        assert v2_lookup.identity(CONTEXT, TWO) == known


class TestRights:
    """Who may use a cluster."""

    @pytest.fixture
    def asked(self, monkeypatch):
        """The cluster of project blue; what it is asked."""
        tokens = []
        known = ClusterIdentity(ENDPOINT, "CA", "uid")

        def check(vnf_id, identity, token, namespaces):
            tokens.append(token)
            assert identity == known
            assert set(namespaces) == {"theirs"}
            if token != "g00d":
                raise api_login.LoginNotAccepted(endpoint=ENDPOINT, what="")

        monkeypatch.setattr(api_login, "check", check)
        monkeypatch.setattr(vim_registry, "project_of", lambda context, vnf_id: "blue")
        monkeypatch.setattr(vim_registry, "identity", lambda context, vnf_id: known)
        monkeypatch.setattr(v2_lookup, "identity", lambda context, vnf_id: known)
        return tokens

    def test_a_project_may_use_its_own_clusters(self, asked):
        places: dict[str, Any] = {"project": "blue", "namespaces": lambda: {"theirs"}}
        driver.check_login(ONE, True, token=lambda: "", **places)
        assert asked == []

    @pytest.mark.parametrize(
        ("is_v1", "project"),
        [(True, "red"), (True, ""), (False, "red"), (False, ""), (False, "blue")],
    )
    def test_others_need_a_login_of_the_cluster(self, asked, is_v1, project):
        places: dict[str, Any] = {"project": project, "namespaces": lambda: {"theirs"}}
        driver.check_login(ONE, is_v1, token=lambda: "g00d", **places)
        with pytest.raises(api_login.LoginNotAccepted):
            driver.check_login(ONE, is_v1, token=lambda: "b4d", **places)
        assert asked == ["g00d", "b4d"]

    def test_what_has_no_project_is_of_none(self, asked, monkeypatch):
        monkeypatch.setattr(vim_registry, "project_of", lambda context, vnf_id: "")
        places: dict[str, Any] = {"project": "", "namespaces": lambda: {"theirs"}}
        with pytest.raises(api_login.LoginNotAccepted):
            driver.check_login(ONE, True, token=lambda: "b4d", **places)

    @pytest.mark.parametrize("is_v1", [True, False])
    def test_a_cluster_that_the_driver_did_not_make_is_none(
        self, monkeypatch, asked, is_v1
    ):
        for module in (vim_registry, v2_lookup):
            monkeypatch.setattr(module, "identity", lambda context, vnf_id: None)
        places: dict[str, Any] = {"project": "red", "namespaces": lambda: {"theirs"}}
        with pytest.raises(api_login.OtherCluster):
            driver.check_login(ONE, is_v1, token=lambda: "g00d", **places)
        assert asked == []

    def test_a_vim_with_the_drivers_mark_needs_its_login(self, monkeypatch):
        """Any project may write the mark, and name its VIM in metadata."""
        made = types.SimpleNamespace(vnf_metadata={VIM_KEY: "forged"})
        monkeypatch.setattr(objects.VnfInstance, "get_by_id", lambda *_: made)
        known = {"forged": {"auth_url": ENDPOINT}}
        monkeypatch.setattr(vim_registry, "all_vims", lambda context: known)
        access = ClusterAccess(SecretStr("a tenant's"), "CA")
        monkeypatch.setattr(vim_registry, "read", lambda context, vim_id: access)
        seen = []
        monkeypatch.setattr(api_login, "identify", seen.append)
        assert vim_registry.identity(CONTEXT, TWO) is None
        assert seen == [
            {
                "interfaceInfo": {"endpoint": ENDPOINT, "ssl_ca_cert": "CA"},
                "accessInfo": {"bearer_token": "a tenant's"},
            }
        ]

    def test_where_the_cnf_is_needs_the_right(self, v1, monkeypatch):
        """In the v1 API, users may modify the metadata that say where."""
        found = []

        def check(*_, namespaces, **__):
            found.append(set(namespaces()))

        monkeypatch.setattr(driver, "check_login", check)
        start = requested(**{ATTRIBUTE: WEB, "namespace": "blue"})
        v1("instantiate_start", TestV1.REQUEST, start, vnf_metadata={"namespace": "x"})
        v1("instantiate_start", TestV1.REQUEST, requested(**{ATTRIBUTE: WEB}))
        v1("scale_end", "scale_vnf_request", vnf_metadata={"namespace": "red"})
        assert found == [{"blue"}, {"theirs"}, {"red"}]

    @pytest.mark.parametrize("hook", [n for n in driver.HOOKS if n in driver.V2])
    def test_without_one_no_hook_works_on_the_cluster(
        self, monkeypatch, registered, asked, hook
    ):
        registered(v1=[(ONE, ENDPOINT)])
        worked = []
        monkeypatch.setattr(driver, "work", lambda *given: worked.append(given))
        access = {"bearer_token": "b4d"}
        entry = {
            "vimId": "any",
            "vimType": "ETSINFV.KUBERNETES.V_1",
            "interfaceInfo": {"endpoint": ENDPOINT},
            "accessInfo": access,
        }
        one = {
            "id": CNF,
            "instantiationState": "INSTANTIATED",
            "vimConnectionInfo": {"v": entry},
            "metadata": {ATTRIBUTE: ONLY_LB},
            "instantiatedVnfInfo": {"metadata": {"namespace": "theirs"}},
        }
        patch = {"metadata": {ATTRIBUTE: ONLY_LB}}
        call = HookCall(hook, patch, one, {}, "/nonexistent")
        with contextlib.suppress(api_login.LoginNotAccepted):
            driver.perform(CnfHookV2(call))
        assert worked == []
        if asked:
            access["bearer_token"] = "g00d"
            driver.perform(CnfHookV2(call))
            assert len(worked) == 1


class TestManifests:
    @pytest.mark.parametrize(
        "text",
        [
            "kind: Service\nspec: text",
            "kind: Service\nmetadata: {name: a}\nspec: text",
            "kind: Service\nmetadata: {name: a}\nspec: {ports: [80]}",
            "kind: Service\nmetadata: {name: a, annotations: text}",
            "kind: Service\nmetadata: text",
            "kind: Service\nmetadata: {name: a}\nstatus: [1]",
            "a: [",
            "[" * 10_000,
        ],
    )
    def test_what_is_no_manifest_is_left_to_tacker(self, package, text):
        assert package(text) is None

    def test_nothing_outside_of_the_package_is_read(self, package, tmp_path):
        (tmp_path / "other.yaml").write_text(MANIFEST)
        (tmp_path / "package" / "link.yaml").symlink_to(tmp_path / "other.yaml")
        outside = ("../other.yaml", str(tmp_path / "other.yaml"), "link.yaml")
        for name in (*outside, "/dev/zero", "/proc/self/environ", 7):
            assert package("", name) is None
        (found,) = package(MANIFEST, "sub/../web.yaml")
        assert found.name == "web"


def requested(**given):
    params = {"lcm-kubernetes-def-files": FILES, **given}
    return types.SimpleNamespace(additional_params=params)


class TestV1:
    REQUEST = "instantiate_vnf_request"

    def test_before_anything_is_created_the_ports_are_checked(self, v1, done):
        v1("instantiate_start", self.REQUEST, requested(**{ATTRIBUTE: WEB}))
        ((cluster, name, operation, arguments),) = done
        assert (cluster, operation) == (ONE, CheckExposure)
        assert name == f"instantiate_start of CNF {CNF}"
        (expected,) = arguments["expected"](False)
        assert (expected.port, expected.node_port) == (8000, 30080)
        assert (arguments["owner"], expected.namespace) == (CNF, "theirs")

    def test_the_database_is_released_before_the_work(self, v1, done, monkeypatch):
        ended = []
        monkeypatch.setattr(V1Hook, "begin", lambda hook: ended.append(len(done)))
        v1("instantiate_start", self.REQUEST, requested(**{ATTRIBUTE: WEB}))
        assert (ended, len(done)) == ([0], 1)

    @pytest.mark.parametrize("given", [{"use_helm": "true"}, {"namespace": 7}])
    def test_of_a_chart_only_what_the_request_names(self, v1, done, given):
        files = {} if "use_helm" in given else {"lcm-kubernetes-def-files": ["gone"]}
        request = requested(**{ATTRIBUTE: WEB, "use_helm": "true", **files})
        v1("instantiate_start", self.REQUEST, request)
        (expected,) = done[0][3]["expected"](False)
        assert (expected.port, expected.node_port) == (8000, 0)

    def test_service_that_the_manifests_lack_is_refused_at_once(self, v1, done):
        request = requested(**{ATTRIBUTE: {"services": [{"name": "wep"}]}})
        with pytest.raises(errors.ExposureError, match="no Service wep") as caught:
            v1("instantiate_start", self.REQUEST, request)
        assert "`rollback`" in str(caught.value)
        assert done == []

    def test_wrong_parameter_is_refused(self, v1, done):
        with pytest.raises(errors.ExposureParamError, match="`rollback`") as caught:
            v1(
                "instantiate_start",
                self.REQUEST,
                requested(**{ATTRIBUTE: {"servces": 1}}),
            )
        assert "did you mean services?" in str(caught.value)
        assert done == []

    def test_services_that_tacker_lists_are_exposed(self, v1, done):
        v1("instantiate_end", self.REQUEST, requested(**{ATTRIBUTE: WEB}))
        ((_, _, operation, arguments),) = done
        assert operation is Expose
        assert arguments["cnf"].names == {"web"}
        assert arguments["cnf"].namespace == "theirs"
        assert arguments["params"].services[0].ports[0].external_port == 8000

    @pytest.mark.parametrize("hook", ["scale_end", "heal_end"])
    def test_later_operations_follow_the_stored_parameter(self, v1, done, hook):
        v1(hook, "request", stored={ATTRIBUTE: WEB})
        ((_, _, operation, arguments),) = done
        assert operation is Expose
        assert [one.name for one in arguments["params"].services] == ["web"]

    def test_metadata_come_before_the_request(self, v1, done):
        metadata = {ATTRIBUTE: '{"services": [{"name": "lb"}]}', "namespace": "theirs"}
        v1("heal_end", "request", stored={ATTRIBUTE: WEB}, vnf_metadata=metadata)
        assert [one.name for one in done[0][3]["params"].services] == ["lb"]

    def test_patch_of_a_former_life_does_not_hold_for_the_next_one(self, v1, done):
        """Tacker keeps the metadata of a terminated VNF instance."""
        patched = {ATTRIBUTE: '{"services": [{"name": "lb"}]}', "namespace": "theirs"}
        kept = v1(
            "terminate_end",
            "terminate_vnf_request",
            requested(),
            **({"stored": {ATTRIBUTE: WEB}, "vnf_metadata": patched}),
        )
        assert kept == {"namespace": "theirs"}
        assert ATTRIBUTE in patched  # a new dict, or Tacker would not store it

    @pytest.mark.parametrize("hook", ["instantiate_start", "instantiate_end"])
    def test_request_of_the_instantiation_comes_before_the_metadata(
        self, v1, done, hook
    ):
        """A VNF instance may be abandoned without the hook of its end."""
        patched = {ATTRIBUTE: '{"services": [{"name": "lb"}]}', "namespace": "theirs"}
        request = requested(**{ATTRIBUTE: WEB})
        kept = v1(hook, self.REQUEST, request, vnf_metadata=patched)
        named = [
            one.name
            for call in done
            for one in getattr(call[3].get("params"), "services", ())
        ]
        assert named == (["web"] if hook == "instantiate_end" else [])
        if hook == "instantiate_end":
            # Later operations follow the stored request.
            assert kept == {"namespace": "theirs"}

    def test_metadata_hold_where_the_request_has_none(self, v1, done):
        patched = {ATTRIBUTE: '{"services": [{"name": "lb"}]}', "namespace": "theirs"}
        kept = v1("instantiate_end", self.REQUEST, requested(), vnf_metadata=patched)
        assert [one.name for one in done[0][3]["params"].services] == ["lb"]
        assert kept == patched

    def test_it_is_removed_before_its_services_go(self, v1, done):
        v1("terminate_start", "terminate_vnf_request", stored={ATTRIBUTE: WEB})
        assert [one[2] for one in done] == [Unexpose]
        v1(
            "terminate_end",
            "terminate_vnf_request",
            requested(),
            vim_connection_info=[],
        )
        assert len(done) == 1

    def test_rollback_of_an_instantiation_removes_it(self, v1, done):
        # What the request has wrong does not matter then.
        v1("terminate_end", "terminate_vnf_request", stored={ATTRIBUTE: 7})
        assert [one[2] for one in done] == [Unexpose]

    def test_cluster_that_is_gone_does_not_keep_the_cnf(self, v1, done, registered):
        registered()
        v1("terminate_start", "terminate_vnf_request")
        assert done == []
        with pytest.raises(driver.NoCluster):
            v1("instantiate_end", self.REQUEST, requested())

    def test_cluster_that_lives_at_another_address_keeps_the_cnf(
        self, v1, done, registered
    ):
        registered(v1=[(ONE, "https://203.0.113.8:6443")])
        stored = {ATTRIBUTE: {**WEB, "cluster_vnf_instance_id": ONE}}
        with pytest.raises(driver.NoCluster, match=ONE):
            v1("terminate_start", "terminate_vnf_request", stored=stored)
        gone = {ATTRIBUTE: {**WEB, "cluster_vnf_instance_id": TWO}}
        v1("terminate_start", "terminate_vnf_request", stored=gone)
        assert done == []

    @pytest.mark.parametrize("kind", ["GRACEFUL", "FORCEFUL"])
    def test_only_a_forceful_termination_goes_on(self, v1, monkeypatch, kind):
        def fail(*_):
            raise errors.RemoteError(detail="No answer.")

        monkeypatch.setattr(driver, "work", fail)
        request = types.SimpleNamespace(termination_type=kind)
        if kind == "FORCEFUL":
            v1("terminate_start", "terminate_vnf_request", request)
            return
        with pytest.raises(errors.RemoteError, match="a FORCEFUL request continues"):
            v1("terminate_start", "terminate_vnf_request", request)

    @pytest.mark.parametrize(
        "broken",
        [(V1Instance, "vim_access"), (vim_registry, "registered"), (driver, "work")],
    )
    def test_nothing_keeps_a_forceful_termination(
        self, v1, monkeypatch, caplog, broken
    ):
        def fail(*_):
            raise exceptions.VimNotFoundException(vim_id="pa55-word")

        monkeypatch.setattr(*broken, fail)
        request = types.SimpleNamespace(termination_type="FORCEFUL")
        v1("terminate_start", "terminate_vnf_request", request)
        assert "may stay exposed" in caplog.text
        assert "pa55-word" not in caplog.text

    def test_vim_that_tacker_does_not_have_is_an_error_of_ours(self, v1, monkeypatch):
        def fail(*_):
            raise exceptions.VimNotFoundException(vim_id="gone")

        monkeypatch.setattr(V1Instance, "vim_access", fail)
        request = types.SimpleNamespace(termination_type="GRACEFUL")
        with pytest.raises(errors.VimError, match="a FORCEFUL request continues"):
            v1("terminate_start", "terminate_vnf_request", request)

    def test_login_of_the_sample_drivers_request_is_not_used(self, v1, done, caplog):
        theirs = {"lcm-kubernetes-external-lb": {"ssh_password": "pa55-word"}}
        v1("instantiate_end", self.REQUEST, requested(**theirs))
        assert len(done) == 1
        assert "is not used" in caplog.text
        assert "pa55-word" not in caplog.text


def v2_call(operation, package="", params=None, request=None, **changes):
    info = {"interfaceInfo": {"endpoint": ENDPOINT}, "vimId": "cluster"}
    one = {
        "id": CNF,
        "vnfInstanceName": NAME,
        "instantiationState": "INSTANTIATED",
        "vimConnectionInfo": {"cluster": info},
        **changes,
    }
    given = {"additionalParams": params or {}, **(request or {})}
    return HookCall(operation, given, one, {}, str(package))


class TestV2:
    def test_before_anything_is_created_the_ports_are_checked(self, tmp_path, done):
        place = tmp_path / FILES[0]
        place.parent.mkdir(parents=True)
        place.write_text(MANIFEST)
        params = {"lcm-kubernetes-def-files": FILES, "namespace": "ours"}
        driver.perform(CnfHookV2(v2_call("instantiate_start", tmp_path, params)))
        ((_, _, operation, arguments),) = done
        (expected,) = arguments["expected"](False)
        assert operation is CheckExposure
        assert (expected.namespace, expected.port) == ("ours", 30080)

    def test_parameter_is_kept_for_later_operations(self, done):
        call = v2_call("instantiate_end", params={ATTRIBUTE: WEB})
        driver.perform(CnfHookV2(call))
        assert call.instance["metadata"] == {ATTRIBUTE: WEB}
        later = v2_call("heal_end", metadata=call.instance["metadata"])
        driver.perform(CnfHookV2(later))
        assert [one[2] for one in done] == [Expose, Expose]
        assert [one.name for one in done[1][3]["params"].services] == ["web"]
        end = v2_call("terminate_end", metadata=call.instance["metadata"])
        driver.perform(CnfHookV2(end))
        assert end.instance["metadata"] == {}

    def test_request_of_the_instantiation_comes_before_the_metadata(self, done):
        params, metadata = {ATTRIBUTE: WEB}, {ATTRIBUTE: ONLY_LB, "owner": "us"}
        call = v2_call("instantiate_end", params=params, metadata=metadata)
        driver.perform(CnfHookV2(call))
        assert call.instance["metadata"] == {ATTRIBUTE: WEB, "owner": "us"}
        assert [one.name for one in done[0][3]["params"].services] == ["web"]

    def test_services_are_told_by_label_or_release(self):
        info = {"metadata": {"namespace": "ours", "release_name": "r"}}
        cnf = CnfHookV2(v2_call("heal_end", instantiatedVnfInfo=info)).cnf()
        assert (cnf.vnf_id, cnf.namespace) == (CNF, "ours")
        # Its name is known before Tacker has noted it.
        assert cnf.release == "vnf" + CNF.replace("-", "")

    def test_modification_is_checked_before_it_is_stored(self, done):
        wrong = {"metadata": {ATTRIBUTE: {"services": 1}}}
        with pytest.raises(errors.ExposureParamError, match="`fail`"):
            driver.perform(
                CnfHookV2(v2_call("modify_information_start", request=wrong))
            )
        assert done == []
        right = {"metadata": {ATTRIBUTE: ONLY_LB}}
        driver.perform(CnfHookV2(v2_call("modify_information_start", request=right)))
        driver.perform(CnfHookV2(v2_call("modify_information_end", **right)))
        assert [one[2] for one in done] == [CheckModified, Expose]

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"services": [{"name": "lb"}]}, ["lb"]),
            ({}, ["web"]),
            ({"services": None}, []),
            (None, []),
        ],
    )
    def test_modification_is_checked_as_tacker_merges_it(self, done, change, named):
        kept = {"metadata": {ATTRIBUTE: copy.deepcopy(WEB)}}
        request = {"metadata": {ATTRIBUTE: change}}
        call = v2_call("modify_information_start", request=request, **kept)
        driver.perform(CnfHookV2(call))
        after = vnf_instance_utils.json_merge_patch(
            kept["metadata"], copy.deepcopy(request["metadata"])
        )
        driver.perform(CnfHookV2(v2_call("modify_information_end", metadata=after)))
        assert [one[2] for one in done] == [CheckModified, Expose]
        for *_, arguments in done:
            assert [one.name for one in arguments["params"].services] == named

    def test_modification_is_checked_on_the_cluster_that_it_moves_the_cnf_to(
        self, done, registered
    ):
        moved = "https://203.0.113.8:6443"
        registered(v1=[(ONE, ENDPOINT), (TWO, moved)])
        vims = {"cluster": {"interfaceInfo": {"endpoint": moved}}}
        request = {"metadata": {ATTRIBUTE: {"services": []}}, "vimConnectionInfo": vims}
        driver.perform(CnfHookV2(v2_call("modify_information_start", request=request)))
        assert [one[0] for one in done] == [TWO]

    def test_other_modifications_are_not_checked_on_the_cluster(self, done):
        request = {"metadata": {"owner": "us"}}
        driver.perform(CnfHookV2(v2_call("modify_information_start", request=request)))
        assert done == []

    @pytest.mark.parametrize("hook", ["instantiate_rollback_start", "terminate_start"])
    def test_it_is_removed(self, done, hook):
        driver.perform(CnfHookV2(v2_call(hook)))
        assert [one[2] for one in done] == [Unexpose]


@pytest.mark.parametrize(
    "cluster",
    [
        lambda name: V1Hook(name, CONTEXT, instance()),
        lambda name: V2Hook(HookCall(name, {}, {"id": ONE}, {}, package=""), cfg.CONF),
    ],
    ids=["v1", "v2"],
)
def test_scaling_of_the_cnf_is_none_of_its_cluster(cluster):
    assert cluster(f"scale_end of CNF {CNF}")._details({}) == {}


def test_the_cluster_is_read_as_it_was_instantiated():
    """Also for the instantiation of a CNF, after which its work is named."""
    name = f"instantiate_start of CNF {CNF}"
    assert v1_lookup.Command(name, CONTEXT, instance(GOOD)).parameters()[0] == GOOD
    call = HookCall(name, {}, {"id": ONE}, {}, package="")
    call.store(GOOD)
    assert v2_lookup.Command(call, cfg.CONF).parameters()[0] == GOOD


@pytest.mark.parametrize("api", [driver.V1, driver.V2])
def test_every_hook_that_can_fail_has_its_advice(api):
    idle = {"terminate_end"} | {
        n for n, h in driver.HOOKS.items() if h is driver._nothing
    }
    only_v2 = {n for n in driver.HOOKS if "rollback_end" in n or "current_package" in n}
    acting = set(driver.HOOKS) - idle
    assert set(api) == (acting if api is driver.V2 else acting - only_v2)


def test_advice_names_verbs_that_tacker_has():
    """Tacker 16: those of the v1 controller and of the v2 driver."""
    texts = {
        (api, name): f"{one.text} {(one.refused or SEND_FAIL_FIRST).text}"
        for api, table in (("v1", driver.V1), ("v2", driver.V2))
        for name, one in table.items()
    }
    for (api, name), text in texts.items():
        modifies = name.startswith("modify_information")
        if api == "v1" and modifies:
            assert "`retry`" not in text
            assert "`rollback`" not in text
        if "rollback" in name:
            assert "`retry`" not in text
        if name.startswith(("heal", "terminate")):
            assert "`rollback`" not in text


def test_every_hook_of_the_sample_is_in_the_table():
    sample = Path(__file__).parents[2] / "samples/cnf/Definitions/web_df.yaml"
    read = yaml.safe_load(sample.read_text())
    hooks = read["topology_template"]["node_templates"]["VNF"]["interfaces"]["Vnflcm"]
    assert set(hooks) <= set(driver.HOOKS)
    nothing = {name for name, hook in driver.HOOKS.items() if hook is driver._nothing}
    assert set(hooks) == set(driver.HOOKS) - nothing


def test_a_vim_with_an_openid_provider_is_asked_for_a_token_as_tacker_asks(monkeypatch):
    original = oidc_utils.get_id_token_with_password_grant
    asked = mock.create_autospec(original, return_value="id-token")
    monkeypatch.setattr(oidc_utils, original.__name__, asked)
    access = {
        "oidc_token_url": "https://idp.example/token",
        "username": "tacker",
        "password": "pa55",
        "client_id": "tacker-client",
        "client_secret": "s3cret",
    }
    assert driver.token(access, "PEM") == "id-token"
    given = inspect.signature(original).bind(
        *asked.call_args.args, **asked.call_args.kwargs
    )
    names = ("token_endpoint", "username", "password", "client_id", "client_secret")
    assert [given.arguments.get(name) for name in names] == list(access.values())


def test_its_type_is_the_name_in_tacker_conf():
    made = tacker_k8s_mgmt.cnf_exposure_mgmt.CnfExposureMgmtDriver()
    assert made.get_type() == made.get_name() == "mgmt-drivers-cnf-exposure"
    assert made.get_description()
