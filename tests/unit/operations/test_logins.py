# SPDX-License-Identifier: Apache-2.0
"""Whose login changes when a scale or heal request brings other credentials."""

import yaml

from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    SIX,
    grown,
    heal_end,
    heal_start,
    rebuild,
    scale_in,
    scale_out,
)
from tests.helpers.requests import changed_params

OLD, NEW = "n0de-secret", "another-one"
WORKERS = changed_params(worker_node={"password": NEW})


def passwords(site: FakeSite) -> dict[str, str]:
    return logins(site.files["hosts.yaml"])


def logins(text: str) -> dict[str, str]:
    hosts = yaml.safe_load(text)["all"]["hosts"]
    return {name: host["ansible_password"] for name, host in hosts.items()}


def test_workers_that_are_there_keep_theirs_when_one_joins():
    site = grown(6)
    scale_out(site, "server-6", wanted=WORKERS)
    assert passwords(site) == {MASTER: OLD, FIVE: OLD, FIFTY_FIVE: OLD, SIX: NEW}


def test_a_later_operation_without_changes_leaves_each_its_own():
    site = grown(6)
    scale_out(site, "server-6", wanted=WORKERS)
    scale_in(site, "server-5")
    assert passwords(site) == {MASTER: OLD, FIFTY_FIVE: OLD, SIX: NEW}


def test_without_new_vms_the_changed_login_is_that_of_all_workers():
    site = grown()
    scale_in(site, "server-5", wanted=WORKERS)
    assert passwords(site) == {MASTER: OLD, FIFTY_FIVE: NEW}


def test_changed_logins_are_those_that_the_removal_uses():
    site = grown()
    site.inventories.clear()
    wanted = changed_params(
        worker_node={"password": NEW}, master_node={"password": NEW}
    )
    scale_in(site, "server-5", wanted=wanted)
    assert logins(site.inventories[0]) == {MASTER: NEW, FIVE: NEW, FIFTY_FIVE: NEW}


def test_that_of_the_control_plane_changes_with_the_request():
    site = grown()
    wanted = changed_params(master_node={"password": NEW})
    scale_in(site, "server-5", wanted=wanted)
    assert passwords(site) == {MASTER: NEW, FIFTY_FIVE: OLD}


def test_a_healed_worker_gets_the_new_one_and_the_others_keep_theirs():
    site = grown()
    heal_start(site, "server-5", wanted=WORKERS)
    heal_end(site, *rebuild(site, "server-5"), wanted=WORKERS)
    assert passwords(site) == {MASTER: OLD, FIVE: NEW, FIFTY_FIVE: OLD}
