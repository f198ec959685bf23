# SPDX-License-Identifier: Apache-2.0
import pytest

from tacker_k8s_mgmt.kubespray import releases
from tacker_k8s_mgmt.kubespray.checkout import (
    Checkout,
    ansible_version_from,
    findings,
    missing_from,
)
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tests.helpers.samples import IPV6, KEY, REMOVED, parsed

GALAXY = (
    "---\nnamespace: kubernetes_sigs\nname: kubespray\nversion: {}\nreadme: README.md\n"
)
LIMITS = """---
- name: Check Ansible version
  vars:
    minimal_ansible_version: {}  # earlier ones are known to be buggy
    maximal_ansible_version: {}
"""
PUT = "put a checkout of v2.24 to v2.31 at ansible.kubespray_root_path"
ALLOW = "set ansible.allow_unknown_release to continue with it at your own risk"
NOTHING_SPECIAL = parsed()
ANY_RELEASE = parsed({"ansible.allow_unknown_release": True})


def checkout(version: str, least: str = "2.18.0", below: str = "2.19.0") -> Checkout:
    return Checkout.from_texts(GALAXY.format(version), LIMITS.format(least, below))


CURRENT = checkout("2.31.0")


def found(
    where: Checkout = CURRENT,
    ansible: str | None = "2.18.2",
    sshpass: bool = True,
    wanted: ClusterRequest = NOTHING_SPECIAL,
) -> tuple[str, ...]:
    return findings(where, ansible, sshpass, wanted)


class TestCheckout:
    def test_it_says_what_it_is(self):
        assert checkout("2.24.3", "2.15.5", "2.17.0") == Checkout(
            found=True, version="2.24.3", ansible=("2.15.5", "2.17.0")
        )

    @pytest.mark.parametrize(
        ("version", "ansible"),
        [
            ("2.24.1", ("2.15.5", "2.17.0")),
            ("2.27.1", ("2.16.4", "2.17.0")),
            ("2.28.0", ("2.16.4", "2.17.0")),
            ("2.30.0", ("2.17.3", "2.18.0")),
            ("2.31.0", ("2.18.0", "2.19.0")),
            ("3.0.0", None),
        ],
    )
    def test_without_a_statement_the_releases_range_holds(self, version, ansible):
        assert Checkout.from_texts(GALAXY.format(version), None).ansible == ansible

    def test_half_a_statement_is_none(self):
        half = "minimal_ansible_version: 2.17.0\n"
        made = Checkout.from_texts(GALAXY.format("2.31.0"), half)
        assert made.ansible == ("2.18.0", "2.19.0")

    @pytest.mark.parametrize("galaxy", [None, "", "name: kubespray\n", "version:\n"])
    def test_without_a_version_the_release_is_unknown(self, galaxy):
        made = Checkout.from_texts(galaxy, LIMITS.format("2.18.0", "2.19.0"))
        assert (made.found, made.version, made.release) == (True, "", None)

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


class TestBesideAnsible:
    STATED = (
        "dependencies:\n  ansible.utils: '>=2.5.0'\n  community.general: '>=7.0.0'\n"
    )

    def findings(self, *missing, stated=STATED):
        galaxy = GALAXY.format("2.31.0") + stated
        where = Checkout.from_texts(galaxy, LIMITS.format("2.18.0", "2.19.0"))
        return findings(where, "2.18.2", True, NOTHING_SPECIAL, frozenset(missing))

    def test_a_missing_package_is_named_with_its_fix(self):
        (finding,) = self.findings("netaddr")
        assert finding.startswith("kubespray needs the Python package netaddr, which")
        assert "requirements.txt in ansible.kubespray_root_path" in finding

    def test_missing_collections_are_named_where_the_checkout_states_them(self):
        every = ("ansible.utils", "ansible.posix", "community.general")
        (finding,) = self.findings("netaddr", *every)
        assert (
            "the Python package netaddr and Ansible's collections ansible.utils, "
            "community.general, which" in finding
        )
        assert self.findings(*every, stated="dependencies: {}\n") == ()

    def test_without_a_checkout_only_that_is_reported(self):
        (finding,) = findings(
            Checkout.from_texts(None, None), "2.18.2", True, parsed(), {"netaddr"}
        )
        assert "there is no kubespray" in finding

    def test_it_is_read_from_the_servers_output(self):
        said = "ansible 2.18.3\nmissing netaddr\nmissing ansible.posix\nmissing x\n"
        assert missing_from(said) == {"netaddr", "ansible.posix"}
        assert ansible_version_from(said) == "2.18.3"


class TestAnsible:
    @pytest.mark.parametrize("version", ["2.18.0", "2.18.19", "2.18.0rc1"])
    def test_a_server_as_it_should_be_has_no_finding(self, version):
        assert found(ansible=version) == ()

    @pytest.mark.parametrize(
        "version", ["2.17.9", "2.19.0", "2.19.0.dev0", "2.9.20", "3.0"]
    )
    def test_an_unsuitable_ansible_is_named_with_what_suits(self, version):
        assert found(ansible=version) == (
            f"ansible-core {version} does not suit kubespray 2.31.0: install "
            "ansible-core >=2.18.0,<2.19.0 and name its virtual environment in "
            "ansible.venv_path",
        )

    def test_the_checkouts_own_range_counts_more_than_the_table(self):
        assert found(checkout("2.31.0", "2.20.0", "2.21.0"), "2.20.3") == ()

    @pytest.mark.parametrize("galaxy", [None, GALAXY.format("2.23.3")])
    def test_without_a_usable_checkout_ansible_is_not_judged(self, galaxy):
        assert len(found(Checkout.from_texts(galaxy, None), "2.9.1")) == 1


class TestRelease:
    @pytest.mark.parametrize(
        ("version", "relation"),
        [
            ("2.23.3", "older"),
            ("2.16.0", "older"),
            ("2.33.0", "newer"),
            ("3.0.0", "newer"),
        ],
    )
    def test_one_that_is_not_known_is_refused_with_both_ways_out(
        self, version, relation
    ):
        assert found(checkout(version)) == (
            f"kubespray {version} is {relation} than what this driver knows: {PUT}, or "
            f"{ALLOW}",
        )

    def test_a_checkout_without_a_version_is_refused_likewise(self):
        assert found(checkout("main")) == (
            "the release of the kubespray at ansible.kubespray_root_path cannot be "
            f"recognised (galaxy.yml has no version): {PUT}, or {ALLOW}",
        )

    @pytest.mark.parametrize("version", ["2.23.3", "2.33.0", "3.0.0", "main"])
    def test_any_is_taken_when_the_request_allows_it(self, version):
        assert found(checkout(version), wanted=ANY_RELEASE) == ()

    def test_an_allowed_one_still_wants_the_ansible_that_it_states(self):
        (finding,) = found(checkout("3.0.0"), "2.9.20", wanted=ANY_RELEASE)
        assert finding.startswith("ansible-core 2.9.20 does not suit kubespray 3.0.0")

    def test_an_allowed_one_that_states_none_takes_any_ansible(self):
        silent = Checkout.from_texts(GALAXY.format("3.0.0"), None)
        assert found(silent, "2.9.20", wanted=ANY_RELEASE) == ()

    def test_nothing_at_all_cannot_be_allowed(self):
        (finding,) = found(Checkout.from_texts(None, None), wanted=ANY_RELEASE)
        assert finding.startswith(
            "there is no kubespray at ansible.kubespray_root_path"
        )

    def test_the_table_has_no_gap_between_its_releases(self):
        minors = sorted(releases.RELEASES)
        assert minors == [(2, minor) for minor in range(24, 24 + len(minors))]

    @pytest.mark.parametrize("version", sorted(releases.RELEASES))
    def test_every_known_one_is_taken(self, version):
        stated = "{}.{}.1".format(*version)
        assert found(checkout(stated)) == ()


class TestSshpass:
    MISSING = (
        "sshpass, which Ansible needs for logins with a password, was not found on "
        "the Ansible server: install the package sshpass"
    )
    WITH_KEYS = {
        "master_node.password": REMOVED,
        "master_node.private_key": KEY,
        "worker_node.private_key": KEY,
    }

    def test_one_role_with_a_password_is_enough(self):
        wanted = parsed({**self.WITH_KEYS, "worker_node.private_key": None})
        assert found(sshpass=False, wanted=wanted) == (self.MISSING,)

    def test_keys_on_all_nodes_need_none_whatever_the_other_hosts_have(self):
        assert found(sshpass=False, wanted=parsed(self.WITH_KEYS)) == ()


class TestAddressFamily:
    @pytest.mark.parametrize("version", ["2.24.3", "2.27.1"])
    def test_old_releases_make_no_cluster_without_ipv4(self, version):
        least, below = releases.RELEASES[2, int(version.split(".")[1])].ansible
        assert found(checkout(version, least, below), least, wanted=parsed(IPV6)) == (
            f"kubespray {version} makes no cluster without IPv4: for address_family "
            "ipv6 put a checkout of v2.28 or newer there",
        )

    @pytest.mark.parametrize("version", ["2.28.0", "2.31.0"])
    def test_newer_ones_do(self, version):
        assert found(checkout(version), wanted=parsed(IPV6)) == ()


def test_all_missing_files_are_reported_at_once():
    assert found(Checkout.from_texts(None, None), None, False) == (
        "there is no kubespray at ansible.kubespray_root_path (galaxy.yml is missing): "
        "put a checkout of v2.24 to v2.31 there",
        "ansible-playbook was not found on the Ansible server: install "
        "ansible-core and name its virtual environment in ansible.venv_path",
        TestSshpass.MISSING,
    )


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
def test_kube_version_is_written_as_the_release_wants_it(version, written, wanted):
    given = parsed({"kubespray_vars": {"kube_version": written}})
    expected = (
        f'kubespray {version} wants kubespray_vars.kube_version written as "{wanted}"'
    )
    assert found(checkout(version), wanted=given) == ((expected,) if wanted else ())
