# SPDX-License-Identifier: Apache-2.0
"""Tacker's database in a hook that takes long: sessions, lost connections, limits."""

import re
import threading
import uuid
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tacker_k8s_mgmt.hooks.v1.hook import V1Hook

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_db import exception as db_exception
from pydantic import SecretStr
from sqlalchemy import event, text
from tacker import context as tacker_context
from tacker import objects
from tacker.db import api
from tacker.db.nfvo import nfvo_db_plugin
from tacker.nfvo import nfvo_plugin

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database, vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.model.vim import HelmLogin, VimSpec
from tests.contract.v1_instances import create_row, saved_instance


@pytest.fixture
def context():
    """That of a request, which has asked the database already."""
    made = tacker_context.Context(user_id="u", tenant_id="tenant", is_admin=True)
    made.session.execute(text("SELECT 1"))
    assert made.session.in_transaction()
    return made


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(database._repeated, "retry_interval", 0)


def lost():
    return db_exception.DBConnectionError(Exception("Lost connection to server"))


class Registry(nfvo_db_plugin.NfvoPluginDb):
    """Tacker's, on its own tables; the cluster's API is not asked.

    :ivar losses: how many connections are still lost, after the work was stored.
    """

    def __init__(self):
        self.losses = 0
        self.contexts = []

    def _lose(self, context):
        self.contexts.append(context)
        if self.losses:
            self.losses -= 1
            raise lost()

    def get_vims(self, context, **kwargs):
        found = super().get_vims(context, **kwargs)
        self._lose(context)
        return found

    def create_vim(self, context, vim):
        body = {**vim["vim"], "id": str(uuid.uuid4()), "placement_attr": {}}
        made = super().create_vim(context, body)
        self._lose(context)
        return made

    def update_vim(self, context, vim_id, vim):
        return Changing().update_vim(context, vim_id, vim)


class Changing(nfvo_plugin.NfvoPlugin):
    """Tacker's plugin itself, which asks the API only about other credentials."""

    def __init__(self):
        pass


@pytest.fixture
def plugin(monkeypatch):
    made = Registry()
    monkeypatch.setattr(vim_registry, "_plugin", lambda: made)
    return made


@pytest.fixture
def instance():
    return saved_instance()


@pytest.fixture
def spec():
    # Tacker takes each name once.
    return VimSpec(
        str(uuid.uuid4()), "https://192.0.2.9:6443", SecretStr("t0ken"), "CA"
    )


def test_a_hook_ends_the_transaction_of_the_request(context, instance):
    V1Hook("instantiate_end", context, instance).begin()
    assert not context.session.in_transaction()


def test_a_transaction_whose_connection_is_lost_is_given_up(context, monkeypatch):
    def commit():
        raise lost()

    monkeypatch.setattr(context.session, "commit", commit)
    database.release(context)
    assert not context.session.in_transaction()
    assert context.session.execute(text("SELECT 1")).scalar() == 1


def test_registering_leaves_the_requests_session_alone(context, plugin, instance, spec):
    database.release(context)
    registry = vim_registry.VimRegistry(V1Instance(context, instance))
    assert not registry.name_taken(spec.name)
    assert registry.register(spec)
    assert registry.registered()
    assert not context.session.in_transaction()
    assert context not in plugin.contexts
    assert {one.tenant_id for one in plugin.contexts} == {"tenant"}
    assert not any(one.session.in_transaction() for one in plugin.contexts)


def test_tacker_changes_the_addresses_of_helm_and_nothing_else(
    context, plugin, instance, spec
):
    registry = vim_registry.VimRegistry(V1Instance(context, instance))
    login = HelmLogin(("192.0.2.4",), SecretStr("pa55"))
    made = registry.register(replace(spec, helm=login))
    before = plugin.get_vim(context, made, mask_password=False)
    assert registry.update_helm_hosts(("192.0.2.7",))
    assert not registry.update_helm_hosts(("192.0.2.7",))
    after = plugin.get_vim(context, made, mask_password=False)
    assert after["extra"]["helm_info"].pop("masternode_ip") == ["192.0.2.7"]
    assert before["extra"]["helm_info"].pop("masternode_ip") == ["192.0.2.4"]
    changed = {key for key in before if before[key] != after[key]}
    assert changed <= {"updated_at"}


@pytest.mark.parametrize("losses", [1, 3])
def test_a_connection_that_is_lost_costs_nothing(
    context, plugin, instance, spec, losses
):
    registry = vim_registry.VimRegistry(V1Instance(context, instance))
    plugin.losses = losses
    made = registry.register(spec)
    assert [one.vim_id for one in registry.registered()] == [made]


def test_a_vim_that_was_stored_when_the_connection_broke_is_the_one(
    context, plugin, instance, spec, monkeypatch
):
    create = plugin.create_vim
    monkeypatch.setattr(vim_registry, "is_current", lambda *_: True)

    def break_once(own, body):
        monkeypatch.setattr(plugin, "create_vim", create)
        plugin.losses = 1
        return create(own, body)

    monkeypatch.setattr(plugin, "create_vim", break_once)
    made = vim_registry.VimRegistry(V1Instance(context, instance)).register(spec)
    mark = f"Kubernetes cluster of VNF instance {instance.id}"
    stored = [
        registered["id"]
        for registered in plugin.get_vims(context)
        if registered["description"] == mark
    ]
    assert stored == [made]


def test_a_database_that_stays_away_is_an_error(context, plugin, instance):
    plugin.losses = 99
    with pytest.raises(db_exception.DBConnectionError):
        vim_registry.VimRegistry(V1Instance(context, instance)).registered()


def test_a_cluster_that_never_answers_tacker_is_an_error(
    context, plugin, instance, spec, monkeypatch
):
    answer = threading.Event()
    monkeypatch.setattr(plugin, "create_vim", lambda *_: answer.wait())
    monkeypatch.setattr(vim_registry, "_LIMIT", 0.2)
    with pytest.raises(errors.VimError, match=r"as VIM .*: There is no answer"):
        vim_registry.VimRegistry(V1Instance(context, instance)).register(spec)
    answer.set()


def test_what_is_raised_within_the_limit_is_raised(context):
    def fail(_):
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        database.ask(context, fail, limit=30)


# --- Deadlocks


@contextmanager
def deadlocks(number, table="vnf_instances"):
    """The next changes of a table are rolled back by the database, which does so.

    oslo.db raises this of MySQL's error 1213 and PostgreSQL's 40P01; Tacker's own code
    runs, in a transaction of its own.
    """
    left = [number]

    def refuse(connection, cursor, statement, parameters, context, executemany):
        if left[0] and statement.startswith(f"UPDATE {table} "):
            left[0] -= 1
            raise db_exception.DBDeadlock(Exception("1213 Deadlock found"))

    engine = api.get_engine()
    event.listen(engine, "before_cursor_execute", refuse)
    try:
        yield left
    finally:
        event.remove(engine, "before_cursor_execute", refuse)


@pytest.fixture
def stored(context):
    """A VNF instance as Tacker has it, in its tables."""
    made = create_row(context, vnf_metadata={"mine": "1"})
    # create() drops what it does not know.
    made.vnf_metadata = {"mine": "1"}
    made.save()
    database.release(context)
    return made


def again(stored):
    """The same, read by another request."""
    own = tacker_context.Context(user_id="u", tenant_id="tenant", is_admin=True)
    return objects.VnfInstance.get_by_id(own, stored.id)


def test_tacker_itself_repeats_no_change(stored):
    stored.task_state = "scale-out"
    with deadlocks(1), pytest.raises(db_exception.DBDeadlock):
        stored.save()
    assert again(stored).task_state is None


def test_a_change_of_an_object_is_repeated(stored):
    stored.task_state = "scale-out"
    stored.vnf_metadata = {**stored.vnf_metadata, "ours": "2"}
    with deadlocks(2) as left:
        database.save(stored)
    assert left == [0]
    read = again(stored)
    assert read.task_state == "scale-out"
    assert read.vnf_metadata == {"mine": "1", "ours": "2"}
    assert not stored.obj_what_changed()


def test_a_deadlock_that_does_not_end_is_an_error(stored):
    stored.task_state = "scale-out"
    with deadlocks(99) as left, pytest.raises(db_exception.DBDeadlock):
        database.save(stored)
    assert left == [99 - 1 - database._RETRIES]
    assert again(stored).task_state is None


def test_a_question_is_asked_again_after_a_deadlock(context, stored):
    def change(own):
        one = objects.VnfInstance.get_by_id(own, stored.id)
        one.task_state = "heal"
        one.save()

    with deadlocks(1) as left:
        database.ask(context, change)
    assert left == [0]
    assert again(stored).task_state == "heal"


CHANGES = {
    "the way to the VIM": V1Instance.keep_login_vim,
    "the end of an error": V1Instance.clear_error,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_hooks_store_is_stored_in_spite_of_a_deadlock(stored, change):
    stored.task_state = "ERROR"
    vim = objects.VimConnectionInfo(vim_id="vim", vim_type="openstack", access_info={})
    stored.vim_connection_info = [vim]
    stored.save()
    with deadlocks(1) as left:
        change(V1Instance(None, stored))
    assert left == [0]
    assert not stored.obj_what_changed()


def test_hooks_store_tackers_objects_in_one_way():
    """By V1Instance.save(), except within a question, which is repeated itself."""
    hooks = Path(database.__file__).parents[1]
    found = {
        (path.name, call)
        for path in hooks.rglob("*.py")
        for call in re.findall(r"[\w.]+\.save\(\)", path.read_text())
    }
    assert found == {
        ("instance.py", "row.save()"),
        ("instance.py", "self.save()"),
        ("group_sizes.py", "instance.save()"),
    }
