# SPDX-License-Identifier: Apache-2.0
"""References in the requests of the v1 API, hook by hook."""

import contextlib
import types

import pytest
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt.hooks.advice import Advice
from tacker_k8s_mgmt.hooks.v1 import stack, vim_registry
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_config import cfg
from tacker import context as tacker_context
from tacker import objects
from tacker.vnfm import keystone

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.v1 import driver as terminate
from tacker_k8s_mgmt.hooks.v1 import driver as v1_driver
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.request import reader
from tests.contract.key_manager import BYTES_ID, PASSWORD, TEXT_ID, by_id
from tests.helpers.requests import VNF
from tests.helpers.samples import changed, request

objects.register_all()
CONTEXT = tacker_context.get_admin_context()
VIM = "vim-of-the-vnf"


def registry(cloud, *, default):
    """Tacker's ``VimClient.get_vim``: the VNF's VIM is not the default one.

    :param default: the password of the user of the default VIM.
    """
    access = {
        "auth_url": f"{cloud.url}/v3",
        "username": "u",
        "password": PASSWORD,
        "project_name": "p",
        "user_domain_name": "d",
        "project_domain_name": "d",
        "cert_verify": "True",
    }

    def get_vim(self, context, vim_id=None, region_name=None):
        password = PASSWORD if vim_id == VIM else default
        return {
            "vim_auth": {**access, "password": password},
            "vim_id": vim_id or "the default one",
            "vim_type": "openstack",
            "tenant": "project",
            "extra": {},
        }

    return get_vim


@pytest.fixture
def instance(cloud, monkeypatch, directory):
    monkeypatch.setattr(
        vnflcm_utils.vim_client.VimClient,
        "get_vim",
        registry(cloud, default="pa55-of-another-user"),
    )
    config.register(cfg.CONF)
    group = config.GROUP
    cfg.CONF.set_override("secret_directory", str(directory), group)
    body = changed(
        {
            "worker_node.password": {"secret_ref": by_id(TEXT_ID).target},
            "ansible.password": {"file": f"{directory}/one"},
        }
    )
    info = types.SimpleNamespace(additional_params=request(body), vnfc_resource_info=[])
    vim = types.SimpleNamespace(
        vim_id=VIM, access_info={"region": "RegionTwo"}, extra={}
    )
    cloud.services["key-manager"].append("RegionTwo")
    saved = []
    yield types.SimpleNamespace(
        id=VNF,
        tenant_id="project",
        vim_connection_info=[vim],
        instantiated_vnf_info=info,
        vnf_metadata={"of": "others"},
        saved=saved,
        save=lambda: saved.append("saved"),
    )
    cfg.CONF.clear_override("secret_directory", group)


GO_ON, DO_THIS = Advice((), "continue"), Advice((), "Do this.")


def hook(instance, name="heal_start"):
    return V1Hook(name, CONTEXT, instance)


class TestRequests:
    """As the v1 hooks read them."""

    def test_references_are_resolved_with_the_vims_credentials(self, instance):
        read = hook(instance).request(wrong=GO_ON)
        assert read.workers.password.get_secret_value() == "pä55-of-the-nodes"
        assert read.server_account.password.get_secret_value() == "file-pa55"

    def test_whether_it_is_a_cluster_is_known_without_them(self, instance, cloud):
        assert V1Instance(CONTEXT, instance).is_cluster
        assert cloud.asked == []

    def test_those_of_vms_are_not_needed_to_terminate(self, instance, cloud):
        read = hook(instance).request(wrong=GO_ON, server_only=True)
        assert read.server_account.password.get_secret_value() == "file-pa55"
        assert cloud.asked == []

    def test_one_that_leads_nowhere_is_reported_with_the_way_out(self, instance):
        cfg.CONF.set_override("secret_directory", "", config.GROUP)
        with pytest.raises(errors.ParamError) as caught:
            hook(instance).request(wrong=DO_THIS)
        (problem,) = caught.value.problems
        assert problem.startswith("ansible.password: is not below the directory")
        assert str(caught.value).endswith(
            " If the request is right, fix what it refers to and send `retry`. "
            "If not: Do this."
        )

    def test_but_not_with_a_retry_that_calls_no_hook(self, instance):
        cfg.CONF.set_override("secret_directory", "", config.GROUP)
        request = types.SimpleNamespace(additional_params={})
        with pytest.raises(errors.ParamError) as caught:
            v1_driver.MgmtDriver().scale_end(CONTEXT, instance, request)
        assert "retry" not in str(caught.value)

    def test_nor_where_the_request_is_wrong_as_well(self, instance):
        cfg.CONF.set_override("secret_directory", "", config.GROUP)
        body = instance.instantiated_vnf_info.additional_params
        body[reader.ATTRIBUTE]["vim_name"] = 5
        with pytest.raises(errors.ParamError) as caught:
            hook(instance).request(wrong=DO_THIS)
        assert len(caught.value.problems) == 2
        assert "retry" not in str(caught.value)


class TestTerminate:
    """By the v1 hooks: never by half, and never stuck."""

    @pytest.fixture
    def asked(self, instance, monkeypatch):
        """A driver; which of its hooks came as far as its work."""
        done = []

        def ended(_vnf, _vims, site):
            done.append(site)
            return ()

        monkeypatch.setattr(V1Instance, "checkpoint", lambda *_: None)
        monkeypatch.setattr(vim_registry, "VimRegistry", lambda *_: None)
        monkeypatch.setattr(
            V1Hook, "site", lambda *_: contextlib.nullcontext("the site")
        )
        monkeypatch.setattr(terminate, "terminate_start", lambda *_: ())
        monkeypatch.setattr(terminate, "terminate_end", ended)
        monkeypatch.setattr(V1Hook, "run", lambda *_, **__: done.append("run"))

        def call(request):
            del done[:]
            driver, infos = v1_driver.MgmtDriver(), instance.vim_connection_info
            driver.terminate_start(CONTEXT, instance, request)
            if request is not None:
                # So does Tacker's terminate_vnf, but not its rollback.
                instance.vim_connection_info = []
            driver.terminate_end(CONTEXT, instance, request)
            instance.vim_connection_info = infos
            return done

        return call

    def lost(self):
        cfg.CONF.set_override("secret_directory", "", config.GROUP)

    def request(self, kind, **ours):
        return types.SimpleNamespace(
            termination_type=kind,
            additional_params={reader.ATTRIBUTE: ours} if ours else {},
        )

    def in_barbican(self, instance):
        given = instance.instantiated_vnf_info.additional_params[reader.ATTRIBUTE]
        given["ansible"]["password"] = {"secret_ref": by_id(BYTES_ID).target}

    def test_with_the_servers_login_all_goes(self, asked, cloud, instance):
        cloud.silent.set()  # that of the VMs is in Barbican
        assert asked(self.request("GRACEFUL")) == ["run", "the site", "run"]
        assert instance.saved == []

    @pytest.mark.parametrize("kind", ["GRACEFUL", "FORCEFUL"])
    def test_barbican_is_asked_as_the_vnfs_own_vim(self, asked, cloud, instance, kind):
        self.in_barbican(instance)
        assert asked(self.request(kind)) == ["run", "the site", "run"]
        payloads = [one for one in cloud.asked if BYTES_ID in one]
        assert payloads
        assert all(payload.startswith("/RegionTwo/") for payload in payloads)

    def test_so_it_is_for_a_login_that_the_request_brings(self, asked, cloud):
        login = {"password": {"secret_ref": by_id(BYTES_ID).target}}
        request = self.request("GRACEFUL", ansible=login)
        assert asked(request) == ["run", "the site", "run"]
        assert any(BYTES_ID in one for one in cloud.asked)

    def test_what_is_kept_for_that_goes_in_the_end(self, asked, instance, monkeypatch):
        self.in_barbican(instance)
        others = instance.vnf_metadata
        during = []
        monkeypatch.setattr(
            V1Hook, "run", lambda *_, **__: during.append(instance.vnf_metadata)
        )
        asked(self.request("GRACEFUL"))
        assert during == [others, {**others, **self.kept()}]
        assert instance.vnf_metadata == others == {"of": "others"}
        assert instance.saved == ["saved"] * 2

    def kept(self):
        return {"k8s_mgmt_login_vim": VIM, "k8s_mgmt_login_region": "RegionTwo"}

    @pytest.mark.parametrize("region", ["RegionTwo", None])
    def test_the_login_at_the_end_is_with_that_vim_in_its_region(
        self, instance, monkeypatch, region
    ):
        instance.vim_connection_info[0].access_info = region and {"region": region}
        V1Instance(CONTEXT, instance).keep_login_vim()
        instance.vim_connection_info = []
        sessions = []

        def log_in(access):
            sessions.append(access)
            return types.SimpleNamespace(session=1)

        monkeypatch.setattr(
            keystone.Keystone, "initialize_client", lambda _, **access: log_in(access)
        )
        assert stack.login(V1Instance(CONTEXT, instance)) == (1, region or "")
        assert [access["password"] for access in sessions] == [PASSWORD]
        V1Instance(CONTEXT, instance).forget_login_vim()
        assert instance.vnf_metadata == {"of": "others"}

    def test_it_stays_for_a_retry(self, asked, instance, monkeypatch):
        self.in_barbican(instance)
        driver, request = v1_driver.MgmtDriver(), self.request("GRACEFUL")
        driver.terminate_start(CONTEXT, instance, request)
        instance.vim_connection_info = []

        def fail(*_, **__):
            raise errors.VimError(detail="It is still used.")

        with monkeypatch.context() as broken:
            broken.setattr(V1Hook, "run", fail)
            with pytest.raises(errors.VimError):
                driver.terminate_end(CONTEXT, instance, request)
        assert instance.vnf_metadata == {"of": "others", **self.kept()}
        driver.terminate_end(CONTEXT, instance, request)
        assert instance.vnf_metadata == {"of": "others"}

    def test_without_it_nothing_goes(self, asked):
        self.lost()
        with pytest.raises(errors.ParamError) as caught:
            asked(self.request("GRACEFUL"))
        assert "ansible.password: is not below" in str(caught.value)
        assert "leaves the cluster's directory" in str(caught.value)

    def test_the_request_may_bring_another(self, asked):
        self.lost()
        request = self.request("GRACEFUL", ansible={"password": "new"})
        assert asked(request) == ["run", "the site", "run"]

    def test_a_forceful_one_and_a_rollback_go_on_without(self, asked, caplog):
        self.lost()
        for one in (self.request("FORCEFUL"), None):
            assert asked(one) == ["run", None, "run"]
            assert "stays on the Ansible server" in caplog.text
            caplog.clear()
