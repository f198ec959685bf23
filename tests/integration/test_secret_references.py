"""A cluster whose request holds no secret: they lie in Barbican and in files."""

import contextlib
import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from lab import client, settings
from tests.integration.conftest import (
    PROXY_SECRET,
    SERVER_ACCOUNT,
    VM_ACCOUNT,
    Cluster,
    Lab,
)

pytestmark = pytest.mark.lab

NOWHERE = f"http://127.0.0.1:9311/v1/secrets/{uuid.uuid4()}"
GRACEFUL = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1}


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


def forget(url: str) -> None:
    """Delete a secret in Barbican."""
    client.command(["openstack", "secret", "delete", url])


@pytest.fixture(scope="module")
def in_files() -> Iterator[Path]:
    """The directory with the password of the Ansible server and the proxy's URL."""
    place = settings.from_environment().data / "tacker" / "secrets"
    place.mkdir(mode=0o700)
    (place / "ansible-server").write_text(f"{SERVER_ACCOUNT.password}\n")
    (place / "proxy").write_text(f"http://someone:{PROXY_SECRET}@10.99.0.1:3128\n")
    yield place
    shutil.rmtree(place)


def named(cluster: Cluster, url: str, place: Path) -> None:
    """Put references in the place of all secrets."""
    ours = cluster.parameters
    ours["ansible"]["password"] = {"file": f"{place}/ansible-server"}
    for group in ("master_node", "worker_node"):
        ours[group]["password"] = {"secret_ref": url}
    ours["external_lb_param"]["ssh_password"] = {"secret_ref": url}
    ours["proxy"]["http_proxy"] = {"file": f"{place}/proxy"}
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
        assert f"{in_files}/ansible-server" in rows
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
        kept = in_files / "ansible-server"
        away = kept.rename(in_files / "elsewhere")
        error = cluster.terminate("FAILED_TEMP", **GRACEFUL)
        assert "ansible.password: is a file that is not there" in error
        assert len(cluster.ready_nodes()) == 4
        away.rename(kept)

    def test_terminate_does_not_need_those_of_the_vms(self, cluster, in_barbican):
        forget(in_barbican)
        cluster.handle("retry", "COMPLETED")
        cluster.assert_nothing_left()
