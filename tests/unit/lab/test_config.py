# SPDX-License-Identifier: Apache-2.0
"""The services' configuration files."""

import configparser
import string

import pytest

from lab import environments
from lab.services import compute, config, images, network, openstack
from lab.services.control import EVERY, SERVICES
from lab.settings import PORTS, Settings, url

TEMPLATES = [path for path in config.TEMPLATES.rglob("*") if path.is_file()]

PASTE = """\
[composite:vnflcm_v1]
noauth = request_id catch_errors vnflcmaapp_v1
keystone = request_id catch_errors authtoken keystonecontext vnflcmaapp_v1

[filter:keystonecontext]
paste.filter_factory = tacker.auth:TackerKeystoneContext.factory
"""


@pytest.fixture
def lab(tmp_path):
    settings = Settings(tmp_path / "state", tmp_path / "cache")
    stock = environments.path(settings, "tacker") / "etc/tacker/api-paste.ini"
    stock.parent.mkdir(parents=True)
    stock.write_text(PASTE)
    return settings


@pytest.mark.parametrize(
    "template", TEMPLATES, ids=[str(t.relative_to(config.TEMPLATES)) for t in TEMPLATES]
)
def test_a_template_names_only_what_there_is(template, lab):
    text = template.read_text()
    found = config.render(text, config.values(lab))
    assert "$" not in found
    assert string.Template(text).is_valid()


def test_every_file_that_a_service_is_started_with_is_written(lab):
    config.write(lab)
    stamp = environments.path(lab, "tacker") / ".project"
    stamp.write_text("1")
    for make, _ in EVERY.values():
        for path in make(lab).files:
            assert path.exists()


def test_services_listen_on_the_loopback_address_only(lab):
    config.write(lab)
    assert "bind-address = 127.0.0.1" in (lab.etc / "my.cnf").read_text()
    assert "127.0.0.1:5672" in (lab.etc / "rabbitmq.conf").read_text()
    tacker = configparser.RawConfigParser(strict=False)
    tacker.read(lab.etc / "tacker.conf")
    assert tacker["DEFAULT"]["bind_host"] == "127.0.0.1"
    assert int(tacker["DEFAULT"]["bind_port"]) == PORTS["tacker"]


def test_the_second_conductor_shares_no_lock_with_the_first(lab):
    config.write(lab)
    first, both = (configparser.RawConfigParser(strict=False) for _ in range(2))
    first.read(lab.etc / "tacker.conf")
    both.read([lab.etc / "tacker.conf", lab.etc / "second.conf"])
    places = (
        ("DEFAULT", "host"),
        ("DEFAULT", "state_path"),
        ("coordination", "backend_url"),
        ("oslo_concurrency", "lock_path"),
    )
    for section, name in places:
        assert both[section][name] != first[section][name]
    shared = ("vnf_package", "vnf_package_csar_path")
    assert both[shared[0]][shared[1]] == first[shared[0]][shared[1]]


def test_sessions_are_closed_in_pipelines_with_keystone():
    changed = config.with_closed_sessions(PASTE)
    assert "keystonecontext close_session vnflcmaapp_v1" in changed
    assert "noauth = request_id catch_errors vnflcmaapp_v1" in changed
    assert changed.count("[filter:close_session]") == 1


def test_a_paste_file_of_another_make_is_noticed():
    with pytest.raises(ValueError, match="keystonecontext"):
        config.with_closed_sessions("[pipeline:main]\npipeline = app\n")


@pytest.mark.parametrize("kind", ["compute", "image", "network"])
def test_what_openstack_clients_ask_runs_in_every_lab_and_is_in_the_catalogue(
    kind, lab
):
    (stand_in, path) = {
        "compute": (compute, "/v2.1"),
        "image": (images, ""),
        "network": (network, ""),
    }[kind]
    make, _ = SERVICES[stand_in.NAME]
    assert make(lab).name == stand_in.NAME
    addresses = {one: address for _, one, address in openstack.SERVICES}
    assert addresses[kind] == f"{url(stand_in.NAME)}{path}"
