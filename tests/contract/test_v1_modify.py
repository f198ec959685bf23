# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes through the v1 API: Tacker's own code and tables, fakes beyond."""

import types
import uuid

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_utils import timeutils
from tacker import context as tacker_context
from tacker import objects
from tacker.api.views.vnf_lcm import ViewBuilder
from tacker.common import driver_manager
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnflcm import vnflcm_driver

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.features.exposure.cnf_operations import CheckModified, Expose
from tacker_k8s_mgmt.hooks.cnf import driver as clusters
from tacker_k8s_mgmt.hooks.cnf.v1 import TYPE, CnfHookV1
from tacker_k8s_mgmt.hooks.v1 import hook as v1_context
from tacker_k8s_mgmt.hooks.v1.instance import find
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE
from tests.contract.v1_instances import GOOD, NAME, OpenSite, create_row
from tests.helpers.operations import FIFTY_FIVE, FIVE, instantiated

DISK = {"k8s_nodes:worker:label:disk": "ssd"}


@pytest.fixture
def context():
    return tacker_context.get_admin_context()


@pytest.fixture
def vnf(context):
    """An instance whose VNFCs are the servers of the fake site."""
    one = create_row(context, vnf_metadata={"owner": "us"})
    one.instantiated_vnf_info = objects.InstantiatedVnfInfo(
        context=context,
        vnf_instance_id=one.id,
        flavour_id="simple",
        ext_cp_info=[],
        instance_id="stack",
        additional_params=GOOD,
        vnfc_resource_info=[
            objects.VnfcResourceInfo(
                id=f"vnfc-{number}",
                vdu_id="some",
                compute_resource=objects.ResourceHandle(resource_id=f"server-{number}"),
            )
            for number in (4, 5, 55, 9)
        ],
    )
    one.save()
    return one.id


@pytest.fixture
def site(monkeypatch, tmp_path):
    made = instantiated()
    made.__class__ = OpenSite

    monkeypatch.setattr(v1_context, "V1Site", lambda hook, params: made)
    monkeypatch.setattr(config, "state_path", lambda _: str(tmp_path))
    return made


@pytest.fixture
def modify(context, vnf, site, monkeypatch):
    """``PATCH`` as controller, conductor and LCM driver carry it out."""
    return modifying(context, vnf, monkeypatch, NAME)


def modifying(context, vnf, monkeypatch, driver):
    manager = driver_manager.DriverManager("tacker.tacker.mgmt.drivers", [driver])
    conductor = types.SimpleNamespace(
        _mgmt_manager=manager, _load_vnf_interface=lambda *_: driver
    )
    monkeypatch.setattr(vnflcm_utils, "get_vnfd_dict", lambda *_: {})
    monkeypatch.setattr(vnflcm_utils, "get_vnf_package_path", lambda *_: "")
    vim = {"id": "v", "vim_id": "v", "vim_type": "openstack", "access_info": {}}
    monkeypatch.setattr(vnflcm_utils, "get_vim", lambda *_: vim)

    def run(metadata):
        body = {"vnfInstanceName": "cluster", "metadata": metadata}
        operation = objects.VnfLcmOpOcc(
            context=context,
            id=str(uuid.uuid4()),
            operation_state="PROCESSING",
            state_entered_time=timeutils.utcnow(),
            start_time=timeutils.utcnow(),
            vnf_instance_id=vnf,
            operation="MODIFY_INFO",
            operation_params=str(body),
            is_automatic_invocation=False,
            is_cancel_pending=False,
            tenant_id="tenant",
        )
        operation.create()
        data = {"vnf_instance_name": "cluster", "metadata": metadata}
        occurrence = {"vnf_instance_id": vnf, "id": operation.id}
        occurrence["operationParams"] = str(body)
        try:
            vnflcm_driver.VnfLcmDriver.modify_vnf(
                conductor, context, occurrence, data, {}, "vnfd"
            )
            operation.operation_state = "COMPLETED"
        except Exception:
            operation.operation_state = "FAILED_TEMP"
            raise
        finally:
            operation.save()
        return stored(context, vnf)

    return run


def stored(context, vnf):
    return dict(objects.VnfInstance.get_by_id(context, vnf).vnf_metadata)


def labels(site):
    return {name: dict(marks.labels) for name, marks in site.marks.items()}


def test_settings_there_and_back(modify, site):
    assert modify(DISK) == {"owner": "us", **DISK}
    assert labels(site) == {FIVE: {"disk": "ssd"}, FIFTY_FIVE: {"disk": "ssd"}}
    assert modify(dict.fromkeys(DISK)) == {"owner": "us"}
    assert labels(site) == {FIVE: {}, FIFTY_FIVE: {}}


def test_maintenance_of_a_vnfc(modify, site):
    entry = "k8s_nodes:vnfc:vnfc-5:maintenance"
    modify({entry: "true"})
    assert {name for name, _ in site.routes} == {FIFTY_FIVE}
    modify({entry: None})
    assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}


def test_what_is_wrong_is_refused_before_it_is_stored(context, modify, site, vnf):
    wrong = {"k8s_nodes:worker:label:k8s.io/a": "b", "k8s_nodes:vnfc:x:label:a": "b"}
    with pytest.raises(errors.StepFailed) as caught:
        modify({**wrong, **DISK})
    assert "The metadata of the VNF instance have 2 problem(s)" in str(caught.value)
    assert "Send `fail` for this operation" in str(caught.value)
    assert stored(context, vnf) == {"owner": "us"}
    assert labels(site) == {}


def test_tacker_itself_takes_nothing_but_text(context, modify, vnf, site):
    """So each setting is an entry of its own."""
    with pytest.raises(errors.StepFailed, match="k8s_nodes is no setting: write"):
        modify({"k8s_nodes": {"worker": {"label": {"a": "b"}}}})
    with pytest.raises(Exception, match="A string is required in field vnf_metadata"):
        modify({"theirs": {"a": 1}, **DISK})
    assert stored(context, vnf) == {"owner": "us"}
    assert labels(site) == {}


def shown(context, vnf):
    """The one operation, as Tacker shows it."""
    (row,) = find(context, vnf).operations(("operation", "==", "MODIFY_INFO"))
    return ViewBuilder()._get_vnf_lcm_op_occs(row)


def test_the_operation_can_be_shown(context, modify, vnf):
    """Tacker's view takes for JSON what Tacker has stored as Python."""
    modify(DISK)
    assert shown(context, vnf)["operationParams"]["metadata"] == DISK


def test_a_failed_one_is_sent_again(modify, site):
    site.faults.add("cluster.mark")
    with pytest.raises(errors.StepFailed, match="Tacker has stored what the request"):
        modify(DISK)
    modify(DISK)
    assert labels(site)[FIVE] == {"disk": "ssd"}


def test_no_cluster_is_looked_for_in_another_vnf(context, modify, vnf, monkeypatch):
    one = objects.VnfInstance.get_by_id(context, vnf)
    one.instantiated_vnf_info.additional_params = {}
    one.instantiated_vnf_info.save()

    def cluster(self, **options):
        raise AssertionError("a cluster is looked for")

    monkeypatch.setattr(v1_context.V1Hook, "cluster", cluster)
    assert modify(DISK) == {"owner": "us", **DISK}


def test_other_metadata_are_none_of_ours(modify, site):
    assert modify({"owner": "them"}) == {"owner": "them"}
    assert site.calls == []


class TestCnf:
    """The same of the driver for CNFs."""

    WANTED = {ATTRIBUTE: '{"services": [{"name": "web"}]}'}

    @pytest.fixture
    def done(self, monkeypatch):
        """What is done to the cluster, in place of doing it."""
        found = []

        def work(cluster, name, operation, advice, followed_by, details):
            services = [one.name for one in operation.keywords["params"].services]
            found.append((cluster, operation.func, services))

        monkeypatch.setattr(clusters, "work", work)
        monkeypatch.setattr(clusters, "at", lambda *arguments: "the cluster")
        monkeypatch.setattr(CnfHookV1, "endpoint", lambda call: "https://lb")
        return found

    @pytest.fixture
    def modify(self, context, vnf, monkeypatch, done):
        return modifying(context, vnf, monkeypatch, TYPE)

    def test_parameter_is_checked_as_it_will_be_stored(self, modify, done):
        assert modify(self.WANTED) == {"owner": "us", **self.WANTED}
        assert done == [
            ("the cluster", CheckModified, ["web"]),
            ("the cluster", Expose, ["web"]),
        ]
        done.clear()
        assert modify(dict.fromkeys(self.WANTED)) == {"owner": "us"}
        assert [services for *_, services in done] == [[], []]

    def test_wrong_one_is_not_stored(self, context, modify, vnf, done):
        with pytest.raises(errors.ExposureParamError, match="Send `fail`") as caught:
            modify({ATTRIBUTE: '{"servces": 1}'})
        assert "did you mean services?" in str(caught.value)
        assert stored(context, vnf) == {"owner": "us"}
        assert done == []
        assert shown(context, vnf)["operationParams"]["metadata"]

    def test_one_that_the_cluster_refuses_is_not_stored(
        self, context, modify, vnf, monkeypatch
    ):
        def refuse(*_):
            raise errors.ExposureError(["port 80/tcp is in use"], owner=vnf)

        monkeypatch.setattr(clusters, "work", refuse)
        with pytest.raises(errors.ExposureError, match="modify the CNF again"):
            modify(self.WANTED)
        assert stored(context, vnf) == {"owner": "us"}

    def test_operation_can_be_shown(self, context, modify, vnf):
        modify(self.WANTED)
        assert shown(context, vnf)["operationParams"]["metadata"] == self.WANTED

    def test_other_metadata_are_not_checked_on_the_cluster(self, modify, done):
        modify({"owner": "them"})
        assert [kind for _, kind, _ in done] == [Expose]


class TestTenants:
    BLUE = '[{"name": "blue", "quota": {"pods": 5}}]'

    def test_there_and_back(self, modify, site):
        assert modify({"k8s_tenants": self.BLUE})["k8s_tenants"] == self.BLUE
        assert ("Namespace", "", "blue") in site.objects
        assert set(site.tenant_vims) == {"blue"}
        assert modify({"k8s_tenants": None}) == {"owner": "us"}
        assert (site.objects, site.tenant_vims) == ({}, {})

    def test_all_problems_of_a_request_are_in_one_error(self, context, modify, vnf):
        wrong = {
            "k8s_nodes:worker:label:k8s.io/a": "b",
            "k8s_tenants": '[{"name": "Blue"}, {"name": "red", "colour": 1}]',
        }
        with pytest.raises(errors.StepFailed) as caught:
            modify(wrong)
        text = str(caught.value)
        assert "The metadata of the VNF instance have 3 problem(s)" in text
        assert "k8s_tenants.0.name: must be the name of a namespace" in text
        assert "k8s_tenants.1.colour: is not a known attribute" in text
        assert "k8s_nodes:worker:label:k8s.io/a has a key" in text
        assert stored(context, vnf) == {"owner": "us"}

    def test_settings_of_nodes_leave_them_alone(self, modify, site):
        modify({"k8s_tenants": self.BLUE})
        site.calls.clear()
        modify(DISK)
        assert not [call for call in site.calls if call.startswith("manifests")]


def test_what_tacker_changes_after_a_failure_locks_no_row(context, vnf):
    """``revert_update_lcm`` writes in the request's session, and does not commit."""
    instance = find(context, vnf)
    requests = instance.context
    instance.requested_metadata()
    dbapi = requests.session.connection().connection.dbapi_connection
    # So sqlite3 says that each statement is committed.
    assert dbapi.isolation_level is None
    assert instance.context is not requests
