# SPDX-License-Identifier: Apache-2.0
"""A cluster whose request holds no secret: they lie in Barbican and in files."""

import contextlib
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from lab import client, settings
from lab.cloud import base
from tacker_k8s_mgmt.tools.csar import parts
from tests.integration.conftest import (
    PROXY_SECRET,
    SERVER_ACCOUNT,
    VM_ACCOUNT,
    Cluster,
    Lab,
)

pytestmark = pytest.mark.lab

#: The user data of the samples, which have the image's own user take a password.
CLOUD_INIT = parts.samples() / "cloud-init.yaml"
USER = base.STOCK_ACCOUNT.name
NOWHERE = f"http://127.0.0.1:9311/v1/secrets/{uuid.uuid4()}"
GRACEFUL = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    scratch = tmp_path_factory.mktemp("stock")
    user_data = scratch / "cloud-init.yaml"
    text = re.sub("<fill in: .*>", lambda _: hashed(), CLOUD_INIT.read_text())
    user_data.write_text(text)
    return Lab(scratch, stock=True, more=["--user-data", str(user_data)])


@pytest.fixture(scope="module")
def in_barbican(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a secret: the password of the VMs."""
    file = tmp_path_factory.mktemp("secret") / "password"
    file.write_text(VM_ACCOUNT.password)
    store = ["openstack", "secret", "store", "--name", "nodes", "--file", str(file)]
    url = client.command([*store, "-f", "value", "-c", "Secret href"]).strip()
    yield url
    with contextlib.suppress(RuntimeError):  # it is gone, if all went well
        forget(url)


def hashed() -> str:
    """The password of the VMs as the sample of user data wants it."""
    argv = ["openssl", "passwd", "-6", "-stdin"]
    return client.command(argv, stdin=VM_ACCOUNT.password).strip()


def forget(url: str) -> None:
    """Delete a secret in Barbican."""
    client.command(["openstack", "secret", "delete", url])


@pytest.fixture(scope="module")
def in_files() -> Iterator[Path]:
    """The directory with the password of the Ansible server and the proxy's URL."""
    place = settings.from_environment().data / "tacker" / "secrets"
    files = {
        "server": f"{SERVER_ACCOUNT.password}\n",
        "proxy": f"http://someone:{PROXY_SECRET}@10.99.0.1:3128\n",
    }
    for name, text in files.items():
        (place / name).write_text(text)
    yield place
    for name in files:
        (place / name).unlink()


def named(cluster: Cluster, url: str, place: Path) -> None:
    """Put references in the place of all secrets."""
    ours = cluster.parameters
    ours["ansible"]["password"] = {"file": "server"}
    for group in ("master_node", "worker_node"):
        ours[group].update(username=USER, password={"secret_ref": url})
    login = {"ssh_username": USER, "ssh_password": {"secret_ref": url}}
    ours["external_lb_param"].update(login)
    ours["proxy"]["http_proxy"] = {"file": f"{place}/proxy"}
    del cluster.body["additionalParams"]["key_name"]
    cluster.assert_no_secret_in(json.dumps(cluster.body))


def rows_about(vnf_id: str) -> str:
    """Every row of Tacker's database that has a VNF instance's id somewhere."""
    port = settings.PORTS["mariadb"]
    login = {"user": "lab", "password": settings.PASSWORD, "database": "tacker"}
    with (
        contextlib.closing(
            pymysql.connect(host=settings.ADDRESS, port=port, **login)
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SHOW TABLES")
        found = []
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT * FROM `{table}`")  # noqa: S608
            found += [repr(row) for row in cursor.fetchall()]
    return "\n".join(row for row in found if vnf_id in row)


class TestSecretReferences:
    @pytest.fixture(scope="class")
    def cluster(self, lab: Lab, in_barbican: str, in_files: Path) -> Iterator[Cluster]:
        with lab.instance("named", secret=True) as made:
            named(made, in_barbican, in_files)
            yield made

    def test_unresolvable_reference_is_reported_before_a_vm_exists(
        self, lab, in_barbican, in_files
    ):
        with lab.instance("lost", secret=True) as cluster:
            named(cluster, in_barbican, in_files)
            cluster.parameters["master_node"]["password"] = {"secret_ref": NOWHERE}
            outside = {"file": "/etc/shadow"}
            cluster.parameters["external_lb_param"]["ssh_password"] = outside
            error = cluster.instantiate("FAILED_TEMP")
            assert "2 problem(s)" in error
            assert "master_node.password: Barbican has no such secret" in error
            assert "external_lb_param.ssh_password: is not below" in error
            assert cluster.stacks() == []
            cluster.handle("rollback", "ROLLED_BACK")

    def test_the_cluster_is_made(self, cluster):
        cluster.instantiate()
        assert len(cluster.ready_nodes()) == 3
        assert all(cluster.ready_nodes().values())

    def test_tacker_keeps_the_references_only(self, cluster, in_barbican, in_files):
        rows = rows_about(cluster.id)
        assert in_barbican in rows
        assert f"{in_files}/proxy" in rows
        cluster.assert_no_secret_in(rows)
        shown = json.dumps([cluster.show(), cluster.occurrence()])
        assert in_barbican in shown
        cluster.assert_no_secret_in(shown)

    def test_no_secret_is_in_a_log(self, lab, cluster):
        cluster.assert_no_secret_in(lab.logs())

    def test_a_later_operation_finds_them_again(self, cluster):
        cluster.scale("OUT")
        assert len(cluster.ready_nodes()) == 4

    def test_it_is_not_terminated_by_half_when_one_is_gone(self, cluster, in_files):
        kept = in_files / "server"
        away = kept.rename(in_files / "elsewhere")
        error = cluster.terminate("FAILED_TEMP", **GRACEFUL)
        assert "ansible.password: is a file that is not there" in error
        assert len(cluster.ready_nodes()) == 4
        away.rename(kept)

    def test_terminate_does_not_need_those_of_the_vms(self, cluster, in_barbican):
        forget(in_barbican)
        cluster.handle("retry", "COMPLETED")
        cluster.assert_nothing_left()
