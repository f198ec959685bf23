# SPDX-License-Identifier: Apache-2.0
"""What several of the contract tests use."""

import sys

import pytest
from oslo_db import options
from tacker import conf as tacker_conf
from tacker import objects
from tacker.db import api, model_base
from tacker.sol_refactored.conductor import vnflcm_driver_v2

from tests.helpers.known_inventories import known_inventories  # noqa: F401

objects.register_all()


@pytest.fixture(scope="session", autouse=True)
def tacker_tables():
    """Tacker's tables in memory; rows need not belong to others.

    For every test: Tacker connects to its database once in a process, with what is
    configured when the first test asks for it.
    """
    options.set_defaults(tacker_conf.CONF, connection="sqlite://")
    engine = api.get_engine()
    model_base.BASE.metadata.create_all(engine)
    # In a transaction, as SQLAlchemy's own way would have it, it has no effect.
    engine.raw_connection().driver_connection.execute("PRAGMA foreign_keys = OFF")


@pytest.fixture(scope="session")
def v2_package(tmp_path_factory):
    """The v2 API's package of the flavour ``simple``."""
    from tacker_k8s_mgmt.tools.csar.build import build
    from tacker_k8s_mgmt.tools.csar.tacker_api import V2

    path = tmp_path_factory.mktemp("packages") / "simple.zip"
    return build("simple", path, api=V2).path


def _python_with(*modules):
    """A fixture: the path of a Python that has imported these modules."""

    @pytest.fixture(scope="session")
    def program():
        from tests.contract import preloaded

        with preloaded.running(modules) as path:
            yield path

    return program


python_for_hooks = _python_with(
    "tacker_k8s_mgmt.hooks.v2.driver", "tests.contract.v2_fakes"
)
python_for_user_data = _python_with(
    "tacker.sol_refactored.infra_drivers.openstack.userdata_default"
)
python_for_commands = _python_with(
    "tacker_k8s_mgmt.tools.cli", "tacker_k8s_mgmt.hooks.instances"
)


@pytest.fixture
def quick_hooks(python_for_hooks, monkeypatch):
    """Tacker starts hooks of the v2 API with a Python that has done their imports."""
    monkeypatch.setattr(sys, "executable", python_for_hooks)


@pytest.fixture
def alone():
    """Python itself is started in this test, and imports what it needs."""


@pytest.fixture
def v2_environment(tmp_path, monkeypatch):
    """A conductor's environment; its ``tacker.conf`` is there."""
    from tests.contract import v2_world

    config = tmp_path / "tacker.conf"
    (tmp_path / "secrets").mkdir(mode=0o700)
    config.write_text(
        f"[k8s_mgmt]\nstate_path = {tmp_path}/state\n"
        f"secret_directory = {tmp_path}/secrets\n"
    )
    monkeypatch.setenv("TACKER_K8S_MGMT_CONFIG", str(config))
    monkeypatch.setenv("PYTHONPATH", str(v2_world.ROOT))
    return config


@pytest.fixture
def tacker(v2_package, v2_environment, tmp_path, monkeypatch):
    """A conductor of the v2 API, to which the package was uploaded."""
    from tests.contract import v2_world

    made = v2_world.Tacker(v2_package, tmp_path)
    monkeypatch.setattr(
        vnflcm_driver_v2.openstack, "Openstack", lambda: v2_world.Heat(made)
    )
    return made


@pytest.fixture
def cloud():
    """A Keystone and a Barbican."""
    from tests.contract import key_manager

    with key_manager.running() as made:
        yield made


@pytest.fixture
def directory(tmp_path):
    """Where a secret lies in a file; beside it, one that nobody may name."""
    place = tmp_path / "secrets"
    place.mkdir()
    (place / "one").write_bytes(b"file-pa55\n")
    (tmp_path / "outside").write_text("not-yours")
    return place
