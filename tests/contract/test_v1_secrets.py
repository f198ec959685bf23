"""References in the requests of the v1 API, hook by hook."""

import contextlib
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.cluster import params
from tacker_k8s_mgmt.hooks import keystone, requests, v1
from tests.contract.key_manager import PASSWORD, TEXT_ID, by_id
from tests.unit.cluster.samples import changed, request


@pytest.fixture
def instance(cloud, monkeypatch, directory):
    access = {
        "auth_url": f"{cloud.url}/v3",
        "username": "u",
        "password": PASSWORD,
        "project_name": "p",
        "user_domain_name": "d",
        "project_domain_name": "d",
        "cert_verify": "True",
        "region": "RegionOne",
    }
    vim = {"access_info": access}
    monkeypatch.setattr(keystone.vnflcm_utils, "_get_vim", lambda *_: vim)
    config.register(keystone.cfg.CONF)
    group = config.GROUP
    keystone.cfg.CONF.set_override("secret_directory", str(directory), group)
    body = changed(
        {
            "worker_node.password": {"secret_ref": by_id(TEXT_ID).target},
            "ansible.password": {"file": f"{directory}/one"},
        }
    )
    info = types.SimpleNamespace(additional_params=request(body))
    yield types.SimpleNamespace(
        id="vnf",
        tenant_id="project",
        vim_connection_info=[],
        instantiated_vnf_info=info,
    )
    keystone.cfg.CONF.clear_override("secret_directory", group)


class TestRequests:
    """As the v1 hooks read them."""

    def test_references_are_resolved_with_the_vims_credentials(self, instance):
        secrets = keystone.secrets_of(None, instance)
        read = requests.parse(instance, None, "go on", secrets)
        assert read.workers.password.get_secret_value() == "pä55-of-the-nodes"
        assert read.server_account.password.get_secret_value() == "file-pa55"

    def test_whether_it_is_a_cluster_is_known_without_them(self, instance, cloud):
        assert requests.is_cluster(instance)
        assert cloud.asked == []

    def test_those_of_vms_are_not_needed_to_terminate(self, instance, cloud):
        secrets = keystone.secrets_of(None, instance)
        read = requests.merged(instance, None, "go on", secrets, ("ansible",))
        assert read.server_account.password.get_secret_value() == "file-pa55"
        assert cloud.asked == []

    def test_one_that_leads_nowhere_is_told_with_the_way_out(self, instance):
        keystone.cfg.CONF.set_override("secret_directory", "", config.GROUP)
        secrets = keystone.secrets_of(None, instance)
        with pytest.raises(errors.ParamError) as caught:
            requests.merged(instance, None, "Do this.", secrets)
        (problem,) = caught.value.problems
        assert problem.startswith("ansible.password: is not below the directory")
        assert str(caught.value).endswith(
            " If the request is right, mend what it refers to and send `retry`. "
            "If not: Do this."
        )

    def test_but_not_with_a_retry_that_calls_no_hook(self, instance):
        keystone.cfg.CONF.set_override("secret_directory", "", config.GROUP)
        secrets = keystone.secrets_of(None, instance)
        with pytest.raises(errors.ParamError) as caught:
            requests.merged(instance, None, "Do this.", secrets, retried=False)
        assert "retry" not in str(caught.value)

    def test_nor_where_the_request_is_wrong_as_well(self, instance):
        keystone.cfg.CONF.set_override("secret_directory", "", config.GROUP)
        body = instance.instantiated_vnf_info.additional_params
        body[params.ATTRIBUTE]["vim_name"] = 5
        secrets = keystone.secrets_of(None, instance)
        with pytest.raises(errors.ParamError) as caught:
            requests.merged(instance, None, "Do this.", secrets)
        assert len(caught.value.problems) == 2
        assert "retry" not in str(caught.value)


class TestTerminate:
    """By the v1 hooks: never by half, and never stuck."""

    @pytest.fixture
    def asked(self, instance, monkeypatch):
        """A driver; which of its hooks came as far as its work."""
        done = []
        monkeypatch.setattr(v1.checkpoint, "save", lambda *_: None)
        monkeypatch.setattr(v1.vim, "VimRegistry", lambda *_: None)
        monkeypatch.setattr(
            v1._Hook, "site", lambda *_: contextlib.nullcontext("the site")
        )
        monkeypatch.setattr(
            v1, "TerminateStart", lambda *_: types.SimpleNamespace(steps=tuple)
        )
        monkeypatch.setattr(
            v1,
            "TerminateEnd",
            lambda _vnf, _vims, site: types.SimpleNamespace(
                steps=lambda: done.append(site) or ()
            ),
        )
        monkeypatch.setattr(v1._Hook, "run", lambda *_: done.append("run"))
        monkeypatch.setattr(v1._Hook, "__init__", lambda *_: None)

        def call(request):
            del done[:]
            driver = v1.MgmtDriver()
            driver.terminate_start(None, instance, request)
            driver.terminate_end(None, instance, request)
            return done

        return call

    def lost(self):
        keystone.cfg.CONF.set_override("secret_directory", "", config.GROUP)

    def request(self, kind, **ours):
        return types.SimpleNamespace(
            termination_type=kind,
            additional_params={params.ATTRIBUTE: ours} if ours else {},
        )

    def test_with_the_servers_login_all_goes(self, asked, cloud):
        cloud.silent.set()  # that of the VMs is in Barbican
        assert asked(self.request("GRACEFUL")) == ["run", "the site", "run"]

    def test_without_it_nothing_goes(self, asked):
        self.lost()
        with pytest.raises(errors.ParamError) as caught:
            asked(self.request("GRACEFUL"))
        assert "ansible.password: is not below" in str(caught.value)
        assert "leaves the inventory directory" in str(caught.value)

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
