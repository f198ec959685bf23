# SPDX-License-Identifier: Apache-2.0
"""Files of a VNF package, which tenants make, as a hook reads them."""

import os

import pytest

from tacker_k8s_mgmt.model.load_balancer import InstallOption
from tacker_k8s_mgmt.remote import site
from tacker_k8s_mgmt.request.installation import LoadBalancer
from tacker_k8s_mgmt.tools.csar import request_check
from tests.helpers import certificates
from tests.helpers.requests import VNF, params

SCRIPT = "# tacker-k8s-mgmt load-balancer contract: 2\n"


class Package(site.Vnf):
    """A VNF instance with a package in a directory."""

    def __init__(self, root, **changes):
        super().__init__(VNF, params(**changes))
        self.root = root

    def _list_stack(self):
        return "stack", ()

    def _package_root(self):
        return str(self.root)


@pytest.fixture
def package(tmp_path):
    (tmp_path / "package" / "Scripts").mkdir(parents=True)
    (tmp_path / "secret").write_text(f"{SCRIPT}# s3cret of the conductor\n")
    return Package(tmp_path / "package")


def script_of(package):
    wanted = package._params.load_balancer
    path = package.root / wanted.script_path
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_the_script_of_the_package_is_used(package):
    script_of(package).write_text(SCRIPT)
    assert package.package_findings() == ()
    assert package._script() == SCRIPT.encode()


def test_the_script_has_to_know_what_the_structure_asks_of_it(package, monkeypatch):
    wanted, path = package._params.load_balancer, script_of(package)
    path.write_text(SCRIPT)
    further = InstallOption("further", 1, "{actual} {wanted}", contract=3)
    monkeypatch.setattr(LoadBalancer, "options", (further,))
    (finding,) = package.package_findings()
    assert "a script for external_lb_param.further has the line" in finding
    files = {wanted.script_path: path.read_bytes()}
    assert [*request_check.script(package._params, files)] == [finding]


@pytest.mark.parametrize("to", ["../../secret", "/etc/passwd"])
def test_a_link_of_the_script_does_not_lead_out(package, to):
    script_of(package).symlink_to(to)
    with pytest.raises(OSError, match="leads out of the package"):
        package._script()
    assert "has no file" in package.package_findings()[0]


def test_a_pipe_a_directory_or_a_large_file_is_no_script(package):
    path = script_of(package)
    os.mkfifo(path)
    assert "has no file" in package.package_findings()[0]
    path.unlink()
    path.mkdir()
    assert "has no file" in package.package_findings()[0]
    path.rmdir()
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(OSError, match="large"):
        package._script()


def test_links_in_an_applications_files_do_not_lead_out(package):
    directory = package.root / "charts"
    directory.mkdir()
    (directory / "Chart.yaml").write_text("name: a\n")
    (directory / "values.yaml").symlink_to("../../secret")
    with pytest.raises(OSError, match="leads out of the package"):
        package.package_files("charts")
    (directory / "values.yaml").unlink()
    (package.root / "linked").symlink_to("..")
    with pytest.raises(OSError, match="leads out of the package"):
        package.package_files("linked/secret")
    assert package.package_files("charts") == {"Chart.yaml": b"name: a\n"}
    with pytest.raises(FileNotFoundError):
        package.package_files("none")


class TestCertificates:
    """CA certificates of private registries."""

    REGISTRY = {
        "connection_type": 1,
        "server": "r.example.org",
        "certificate_path": "Files/ca.crt",
    }

    @pytest.fixture
    def certified(self, tmp_path):
        def made(content):
            made = Package(tmp_path, private_registry_connection_info=[self.REGISTRY])
            script_of(made).write_text(SCRIPT)
            if content is not None:
                (tmp_path / "Files").mkdir()
                (tmp_path / "Files" / "ca.crt").write_bytes(content)
            return made

        return made

    def test_one_that_nodes_can_use(self, certified):
        made = certified(certificates.PEM)
        assert made.package_findings() == ()
        place = "/etc/containerd/certs.d/r.example.org/tacker-k8s-mgmt.crt"
        assert made.registry_certificates() == {place: certificates.PEM}

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            pytest.param(None, "the VNF package has no file Files/ca.crt", id="none"),
            pytest.param(b"", "is no certificate in PEM", id="empty"),
            pytest.param(b"\xff" * 99, "is no certificate in PEM", id="binary"),
            pytest.param(
                certificates.PEM + b"-----BEGIN PRIVATE KEY-----\n",
                "has a private key",
                id="key",
            ),
            pytest.param(certificates.PEM * 1000, "has more than", id="large"),
        ],
    )
    def test_what_is_none_is_found_before_anything_changes(
        self, certified, content, why
    ):
        (finding,) = certified(content).package_findings()
        place = "private_registry_connection_info.0.certificate_path: "
        assert finding.startswith(place)
        assert why in finding
