import pytest

from tacker_k8s_mgmt.cluster import kubespray
from tacker_k8s_mgmt.cluster.kubespray import Checkout, ansible_version_from, findings

GALAXY = (
    "---\nnamespace: kubernetes_sigs\nname: kubespray\nversion: {}\nreadme: README.md\n"
)
LIMITS = """---
- name: Check Ansible version
  vars:
    minimal_ansible_version: {}  # earlier ones are known to be buggy
    maximal_ansible_version: {}
"""


def checkout(version: str, least: str = "2.18.0", below: str = "2.19.0") -> Checkout:
    return Checkout.from_texts(GALAXY.format(version), LIMITS.format(least, below))


CURRENT = checkout("2.31.0")


class TestCheckout:
    def test_it_says_what_it_is(self):
        assert checkout("2.24.3", "2.15.5", "2.17.0") == Checkout(
            "2.24.3", ("2.15.5", "2.17.0")
        )

    @pytest.mark.parametrize(
        ("version", "ansible"),
        [
            ("2.24.1", ("2.15.5", "2.17.0")),
            ("2.27.1", ("2.16.4", "2.17.0")),
            ("2.28.0", ("2.16.4", "2.17.0")),
            ("2.30.0", ("2.17.3", "2.18.0")),
            ("2.31.0", ("2.18.0", "2.19.0")),
            ("3.0.0", ("2.18.0", "2.19.0")),
        ],
    )
    def test_without_a_statement_the_releases_range_holds(self, version, ansible):
        assert Checkout.from_texts(GALAXY.format(version), None).ansible == ansible

    @pytest.mark.parametrize("galaxy", [None, "", "name: kubespray\n", "version:\n"])
    def test_no_version_is_no_kubespray(self, galaxy):
        assert Checkout.from_texts(galaxy, None).version == ""

    @pytest.mark.parametrize("written", ['"2.31.0"', "'2.31.0'", "v2.31.0", "2.31.0\r"])
    def test_quotes_and_a_leading_v_do_not_matter(self, written):
        assert checkout(written).version == "2.31.0"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("ansible-playbook [core 2.18.19]\n  config file = None\n", "2.18.19"),
        ("ansible-playbook 2.9.20\n", "2.9.20"),
        ("[WARNING]: locale\nansible-playbook [core 2.19.0rc1]\n", "2.19.0rc1"),
        ("bash: ansible-playbook: command not found\n", None),
        ("", None),
    ],
)
def test_the_version_is_read_from_ansibles_own_words(text, version):
    assert ansible_version_from(text) == version


class TestFindings:
    @pytest.mark.parametrize("version", ["2.18.0", "2.18.19", "2.18.0rc1"])
    def test_a_server_as_it_should_be_has_none(self, version):
        assert findings(CURRENT, version, True) == ()

    @pytest.mark.parametrize(
        "version", ["2.17.9", "2.19.0", "2.19.0.dev0", "2.9.20", "3.0"]
    )
    def test_an_unsuitable_ansible_is_named_with_what_suits(self, version):
        assert findings(CURRENT, version, True) == (
            f"ansible-core {version} does not suit kubespray 2.31.0: install "
            "ansible-core >=2.18.0,<2.19.0 and name its virtual environment in "
            "ansible.venv_path",
        )

    def test_the_checkouts_own_range_counts_more_than_the_table(self):
        assert findings(checkout("2.31.0", "2.20.0", "2.21.0"), "2.20.3", True) == ()

    def test_releases_that_came_later_are_not_refused(self):
        assert findings(checkout("2.40.0"), "2.18.1", True) == ()

    def test_a_release_before_the_oldest_known_is_refused(self):
        (finding,) = findings(checkout("2.23.3", "2.14.0", "2.15.0"), "2.18.2", True)
        assert finding == (
            "kubespray 2.23.3 is too old: put a checkout of v2.24 or newer at "
            "ansible.kubespray_root_path"
        )

    def test_everything_that_is_missing_is_said_at_once(self):
        assert findings(Checkout.from_texts(None, None), None, False) == (
            "there is no kubespray at ansible.kubespray_root_path (galaxy.yml with a "
            "version is missing): put a checkout of v2.24 or newer there",
            "ansible-playbook was not found on the Ansible server: install "
            "ansible-core and name its virtual environment in ansible.venv_path",
            "sshpass, which Ansible needs for logins with a password, was not found on "
            "the Ansible server: install the package sshpass",
        )

    @pytest.mark.parametrize("galaxy", [None, GALAXY.format("2.23.3")])
    def test_without_a_usable_checkout_ansible_is_not_judged(self, galaxy):
        assert len(findings(Checkout.from_texts(galaxy, None), "2.9.1", True)) == 1

    @pytest.mark.parametrize(
        ("version", "written", "wanted"),
        [
            ("2.27.1", "v1.31.9", None),
            ("2.27.1", "1.31.9", "v1.31.9"),
            ("2.28.0", "1.32.8", None),
            ("2.28.0", "v1.32.8", "1.32.8"),
            ("2.31.0", 1.35, "1.35"),
        ],
    )
    def test_kube_version_is_written_as_the_release_wants_it(
        self, version, written, wanted
    ):
        found = findings(checkout(version), "2.18.0", True, kube_version=written)
        expected = (
            f"kubespray {version} wants kubespray_vars.kube_version written as "
            f'"{wanted}"'
        )
        assert found == ((expected,) if wanted else ())


def test_the_table_has_no_gap_between_its_releases():
    minors = sorted(kubespray.RELEASES)
    assert minors == [(2, minor) for minor in range(24, 24 + len(minors))]
