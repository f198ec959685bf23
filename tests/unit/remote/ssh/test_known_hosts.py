# SPDX-License-Identifier: Apache-2.0
"""known_hosts texts."""

import base64
import hmac
import subprocess
import threading

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import known_hosts
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, RecordedKeys
from tests.helpers import ssh_keys

TEXT = """\
# a comment
10.0.0.5 ssh-ed25519 KEY5
10.0.0.50 ssh-ed25519 KEY50
[10.0.0.5]:2222 ssh-ed25519 KEY2222
a.example,10.0.0.7 ssh-rsa KEY7
fd00::5 ssh-ed25519 KEYV6
@revoked 10.0.0.9 ssh-ed25519 KEY9
"""


@pytest.mark.parametrize(
    ("host", "port", "key", "trusted"),
    [
        pytest.param("10.0.0.5", 22, "KEY5", True, id="recorded"),
        pytest.param("10.0.0.5", 22, "OTHER", False, id="changed"),
        pytest.param("10.0.0.5", 2222, "KEY2222", True, id="other-port"),
        pytest.param("10.0.0.5", 2222, "KEY5", False, id="key-of-another-port"),
        pytest.param("10.0.0.7", 22, "KEY7", False, id="other-type"),
        pytest.param("fd00::5", 22, "KEYV6", True, id="ipv6"),
        pytest.param("10.0.0.55", 22, "NEW", True, id="new"),
    ],
)
def test_trust(host, port, key, trusted):
    assert HostKeys(TEXT).trust(host, port, "ssh-ed25519", key) is trusted


def test_refused_key_changes_nothing():
    keys = HostKeys(TEXT)
    keys.trust("10.0.0.5", 22, "ssh-ed25519", "OTHER")
    assert keys.text() == TEXT


@pytest.mark.parametrize(("key", "trusted"), [("KEY5", True), ("OTHER", False)])
def test_recorded_keys_are_compared_where_none_may_be_added(key, trusted):
    keys = RecordedKeys(TEXT)
    assert keys.trust("10.0.0.5", 22, "ssh-ed25519", key) is trusted


def test_an_unknown_host_is_refused_where_none_may_be_added():
    keys = RecordedKeys(TEXT, "/state/known_hosts")
    with pytest.raises(
        errors.UnknownHostError, match=r"10\.0\.0\.55 .*/state/known_hosts"
    ):
        keys.trust("10.0.0.55", 22, "ssh-ed25519", "NEW")
    assert keys.text() == TEXT


def test_new_key_is_appended_as_openssh_writes_it():
    keys = HostKeys("10.0.0.1 ssh-rsa OLD\n")
    keys.trust("10.0.0.2", 22, "ssh-ed25519", "NEW")
    keys.trust("fd00::2", 2022, "ssh-ed25519", "NEW6")
    assert keys.text() == (
        "10.0.0.1 ssh-rsa OLD\n"
        "10.0.0.2 ssh-ed25519 NEW\n"
        "[fd00::2]:2022 ssh-ed25519 NEW6\n"
    )


def test_forget_drops_one_host_on_all_ports_and_nothing_else():
    keys = HostKeys(TEXT)
    keys.forget("10.0.0.5")
    keys.forget("10.0.0.7")
    assert keys.text().splitlines() == [
        "# a comment",
        "10.0.0.50 ssh-ed25519 KEY50",
        "a.example ssh-rsa KEY7",
        "fd00::5 ssh-ed25519 KEYV6",
        "@revoked 10.0.0.9 ssh-ed25519 KEY9",
    ]
    keys.forget("10.0.0.5")
    assert keys.trust("10.0.0.5", 22, "ssh-ed25519", "REBUILT")


ED25519 = ssh_keys.make("ed25519").public
RSA = ssh_keys.make("rsa").public


def _parts(public: str) -> tuple[str, str]:
    key_type, key = public.split()
    return key_type, key


@pytest.mark.parametrize("kind", [HostKeys, RecordedKeys])
def test_the_first_key_must_be_among_those_given(kind):
    known = kind("")
    assert not known.trust("10.0.0.5", 22, *_parts(RSA), given=[ED25519])
    assert known.text() == ""
    assert known.trust("10.0.0.5", 22, *_parts(ED25519), given=[RSA, ED25519])
    assert known.knows("10.0.0.5", 22) is (kind is HostKeys)


def test_a_rebuilt_host_must_show_one_of_those_given():
    known = HostKeys(f"10.0.0.5 {RSA}\n")
    known.forget("10.0.0.5")
    assert not known.trust("10.0.0.5", 22, *_parts(RSA), given=[ED25519])
    assert known.trust("10.0.0.5", 22, *_parts(ED25519), given=[ED25519])


def test_the_kind_that_is_given_is_asked_for_first_where_none_is_recorded():
    offered = ("ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256")
    known = HostKeys(f"10.0.0.6 {ED25519}\n")
    assert known.preferred("10.0.0.5", 22, offered, [RSA])[0] == "rsa-sha2-512"
    assert known.preferred("10.0.0.6", 22, offered, [RSA])[0] == "ssh-ed25519"


class TestAdopting:
    def test_the_keys_of_another_place_replace_those_of_that_host_and_port(self):
        known = HostKeys(TEXT)
        other = HostKeys("10.0.0.5 ssh-rsa A\n10.0.0.5 ssh-x B\n")
        known.record("10.0.0.5", 22, other.of("10.0.0.5", 22))
        assert known.trust("10.0.0.5", 22, "ssh-rsa", "A")
        assert not known.trust("10.0.0.5", 22, "ssh-ed25519", "KEY5")
        assert known.trust("10.0.0.5", 2222, "ssh-ed25519", "KEY2222")
        assert len(known.text().splitlines()) == len(TEXT.splitlines()) + 1

    @pytest.mark.parametrize("other", ["", "10.0.0.5 ssh-ed25519 KEY5\n"])
    def test_nothing_new_changes_nothing(self, other):
        known = HostKeys(TEXT)
        known.record("10.0.0.5", 22, HostKeys(other).of("10.0.0.5", 22))
        assert known.text() == TEXT


def test_keys_go_along_to_another_address():
    keys = HostKeys("10.0.0.5 ssh-ed25519 KEY5\n10.0.0.6 ssh-ed25519 STRANGER\n")
    keys.record("10.0.0.6", 22, keys.of("10.0.0.5", 22))
    keys.forget("10.0.0.5")
    assert keys.text() == "10.0.0.6 ssh-ed25519 KEY5\n"
    assert keys.of("10.0.0.5", 22) == []


def test_names_hashed_by_openssh_are_recognised(tmp_path):
    path = tmp_path / "known_hosts"
    path.write_text("10.0.0.5 ssh-ed25519 AAAAKEY5\n10.0.0.6 ssh-ed25519 AAAAKEY6\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", path], check=True)
    assert "10.0.0.5" not in path.read_text()
    keys = HostKeys(path.read_text())
    assert not keys.trust("10.0.0.5", 22, "ssh-ed25519", "OTHER")
    keys.forget("10.0.0.5")
    assert len(keys.text().splitlines()) == 1


@pytest.mark.parametrize(
    ("recorded", "first"),
    [
        ("", "ssh-ed25519"),
        ("10.0.0.5 ecdsa-sha2-nistp256 KEY\n", "ecdsa-sha2-nistp256"),
        ("10.0.0.5 ssh-rsa KEY\n", "rsa-sha2-512"),
        ("10.0.0.6 ssh-rsa KEY\n", "ssh-ed25519"),
    ],
    ids=["unknown", "ecdsa", "rsa", "another-host"],
)
def test_the_recorded_kind_of_key_is_asked_for_first(recorded, first):
    offered = ("ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")
    preferred = HostKeys(recorded).preferred("10.0.0.5", 22, offered)
    assert preferred[0] == first
    assert sorted(preferred) == sorted(offered)


def test_two_threads_cannot_trust_two_keys_of_one_host():
    keys = HostKeys()
    barrier = threading.Barrier(8)
    answers = []

    def work(number):
        barrier.wait()
        answers.append(keys.trust("10.0.0.5", 22, "ssh-ed25519", f"KEY{number}"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False] * 7 + [True]
    assert len(keys.text().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "it is empty"),
        (" \n\n", "it is empty"),
        ("192.0.2.7 ssh-ed25519 KE", "its last line has no end"),
        ("# ours\n\n192.0.2.7 ssh-ed25519 KEY\n", ""),
        ("@cert-authority * ssh-ed25519 KEY\n|1|salt|hash ssh-rsa KEY more\n", ""),
        ("192.0.2.7 ssh-ed25519 KEY\n192.0.2.8 ssh-ed\n", "line 2 is no host key"),
        ("{}\n", "line 1 is no host key"),
        ("\0" * 90, "its last line has no end"),
        ("\0" * 90 + "\n", "line 1 is no host key"),
        ("a b \0\0\0\n", "line 1 has zero bytes"),
    ],
)
def test_what_is_no_known_hosts_file(text, found):
    assert known_hosts.damage(text) == found


NO_NAMES = (
    "fe80::1%x\n10.9.9.9 ssh-ed25519 AAAA #",
    *("10.0.0.5,10.9.9.9", "10.0.0.5 10.9.9.9", "", " ", "*", "10.0.0.?", "!a", "#a"),
    *("@revoked", "|1|c2FsdA==|aGFzaA==", "[10.0.0.9]:22", "a\0b", "a\tb", "a\x0bb"),
    *("a\u2028b", "a\x85b", "\u00e9", "a\r", "\x1b[2J", "%a"),
)


@pytest.mark.parametrize("name", NO_NAMES, ids=repr)
@pytest.mark.parametrize("port", [22, 2222])
def test_what_is_no_name_by_itself_is_not_recorded(name, port):
    for keys in (HostKeys(TEXT), RecordedKeys(TEXT)):
        with pytest.raises(errors.HostNameError) as caught:
            keys.trust(name, port, "ssh-ed25519", "AAAA", given=[])
        assert str(caught.value).isprintable()
        with pytest.raises(errors.HostNameError):
            keys.record(name, port, [("ssh-ed25519", "AAAA")])
        assert keys.text() == TEXT


@pytest.mark.parametrize(
    "key",
    [
        ("ssh-ed25519", "AAAA\n10.9.9.9 ssh-ed25519 AAAA"),
        ("ssh-ed25519", "AAAA BBBB"),
        ("ssh-ed25519", ""),
        ("ssh-ed25519\n", "AAAA"),
        ("10.9.9.9 ssh-ed25519", "AAAA"),
    ],
)
def test_what_is_no_key_is_not_recorded(key):
    keys = HostKeys(TEXT)
    with pytest.raises(errors.HostNameError):
        keys.record("10.0.0.5", 22, [("ssh-ed25519", "AAAA"), key])
    with pytest.raises(errors.HostNameError):
        keys.trust("10.0.0.77", 22, *key)
    assert keys.text() == TEXT


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("10.0.0.9", "10.0.0.9"),
        ("a.example,10.0.0.9", "10.0.0.9"),
        ("*", "10.0.0.9"),
        ("10.0.*", "10.0.0.9"),
        ("*,!10.0.0.9", "10.0.0.9"),
        ("10.0.0.9", known_hosts.behind("10.0.0.9", "bastion", 22)),
        ("10.0.0.9%bastion", known_hosts.behind("10.0.0.9", "bastion", 22)),
        ("10.0.0.9", "::ffff:10.0.0.9"),
        ("b,10.0.0.9", "::FFFF:A00:9"),
        ("2001:db8::9", "2001:DB8:0::9"),
        ("Server.Example.", "server.example"),
        ("server.example", "SERVER.example."),
    ],
)
@pytest.mark.parametrize("recorded", ["", "10.0.0.9 ssh-ed25519 KEY9\n"])
def test_a_revoked_key_is_refused_wherever_it_is_recorded(name, host, recorded):
    revoked = f"@revoked {name} ssh-ed25519 KEY9\n"
    for keys in (
        HostKeys(recorded + revoked, "/own"),
        HostKeys(recorded, former=[RecordedKeys(revoked, "/own")]),
    ):
        before = keys.text()
        for given in ((), ("ssh-ed25519 KEY9",)):
            with pytest.raises(errors.RevokedKeyError, match="/own"):
                keys.trust(host, 22, "ssh-ed25519", "KEY9", given)
        with pytest.raises(errors.RevokedKeyError):
            keys.only_revoked().trust(host, 22, "ssh-ed25519", "KEY9")
        assert keys.text() == before
        assert keys.only_revoked().trust(host, 22, "ssh-ed25519", "OTHER")


def test_a_key_that_another_host_lost_is_not_revoked_here():
    assert HostKeys(TEXT).trust("10.0.0.10", 22, "ssh-ed25519", "KEY9")


def test_revoked_names_hashed_by_openssh_count():
    name = "|1|" + "|".join(("c2FsdA==", _hashed("10.0.0.9")))
    keys = HostKeys(f"@revoked {name} ssh-ed25519 KEY9\n")
    with pytest.raises(errors.RevokedKeyError):
        keys.trust("10.0.0.9", 22, "ssh-ed25519", "KEY9")
    with pytest.raises(errors.RevokedKeyError):
        keys.trust("::ffff:10.0.0.9", 22, "ssh-ed25519", "KEY9")
    assert keys.trust("10.0.0.8", 22, "ssh-ed25519", "KEY9")


def _hashed(name: str) -> str:
    digest = hmac.new(b"salt", name.encode(), "sha1").digest()
    return base64.b64encode(digest).decode()


class TestFormer:
    """Keys of another place, for hosts of which none is recorded."""

    FORMER = (
        "10.0.0.5 ssh-ed25519 KEY5\n10.0.0.5 ssh-rsa RSA5\n"
        "[10.0.0.9%bastion]:2022 ssh-ed25519 KEY9\n"
    )

    @pytest.fixture
    def former(self):
        return RecordedKeys(self.FORMER, "/old")

    def test_they_are_compared_and_copied_at_the_first_use(self, former):
        keys = HostKeys("", "/own", [former])
        assert not keys.trust("10.0.0.5", 22, "ssh-ed25519", "OTHER")
        assert keys.text() == ""
        assert keys.recorded_in("10.0.0.5", 22) == "/old"
        assert keys.trust("10.0.0.5", 22, "ssh-ed25519", "KEY5")
        assert keys.text() == "10.0.0.5 ssh-ed25519 KEY5\n10.0.0.5 ssh-rsa RSA5\n"
        assert keys.recorded_in("10.0.0.5", 22) == "/own"
        assert keys.trust("10.0.0.5", 22, "ssh-ed25519", "KEY5")
        assert len(keys.text().splitlines()) == 2

    def test_what_is_recorded_goes_first(self, former):
        keys = HostKeys("10.0.0.5 ssh-ed25519 OWN\n", "/own", [former])
        assert not keys.trust("10.0.0.5", 22, "ssh-ed25519", "KEY5")
        assert keys.trust("10.0.0.5", 22, "ssh-ed25519", "OWN")

    def test_names_without_the_bastions_port_count(self, former):
        name = known_hosts.behind("10.0.0.9", "bastion", 2222)
        keys = HostKeys("", "/own", [former])
        assert not keys.trust(name, 2022, "ssh-ed25519", "OTHER")
        assert keys.preferred(name, 2022, ["ssh-rsa", "ssh-ed25519"])[0] == (
            "ssh-ed25519"
        )
        assert keys.trust(name, 2022, "ssh-ed25519", "KEY9")
        assert keys.text() == f"[{name}]:2022 ssh-ed25519 KEY9\n"

    def test_several_places_have_to_agree(self, former):
        other = RecordedKeys("10.0.0.5 ssh-ed25519 OTHER\n", "/other")
        keys = HostKeys("", "/own", [former, other])
        assert not keys.trust("10.0.0.5", 22, "ssh-ed25519", "KEY5")
        assert not keys.trust("10.0.0.5", 22, "ssh-ed25519", "OTHER")
        assert keys.recorded_in("10.0.0.5", 22) == "/old and /other"

    def test_those_that_do_not_learn_compare_and_copy_nothing(self, former):
        keys = RecordedKeys("", "/own", [former])
        assert keys.trust("10.0.0.5", 22, "ssh-ed25519", "KEY5")
        assert not keys.trust("10.0.0.5", 22, "ssh-ed25519", "OTHER")
        with pytest.raises(errors.UnknownHostError):
            keys.trust("10.0.0.6", 22, "ssh-ed25519", "KEY5")
        assert keys.text() == ""


def test_the_name_behind_a_bastion_is_no_other_hosts():
    hosts = ("10.0.0.1", "fe80::1", "fe80::1%22", "fe80::1%a")
    bastions = ("10.0.0.2", "fe80::2%22", "a")
    names = [
        known_hosts.behind(host, bastion, port)
        for host in hosts
        for bastion in bastions
        for port in (22, 2222)
    ]
    assert len({*names, *hosts, *bastions}) == len(names) + len(hosts) + len(bastions)
