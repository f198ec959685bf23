# SPDX-License-Identifier: Apache-2.0
"""How HAProxy gets onto the VM: the package, the proxies, an installation cut off.

On each PATH here there is no package tool but the stand-ins: nothing can reach the
machine's own packages, and a tool that the script must not need is not found.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.balancer.sandbox import INSTALL, SCRIPT, Sandbox

LOG = 'echo "${0##*/} $* http=${http_proxy-} https=${https_proxy-}" >>%s/tool-calls\n'
INSTALLS = '[[ "$*" != *install* ]] || $PUT'
NOT_INSTALLED = "exit 1"


class Vm:
    """A VM without HAProxy; stand-ins for its package tools.

    A stand-in's text may use ``$PUT``, which brings the program.
    """

    def __init__(self, sandbox: Sandbox, **tools: str) -> None:
        self.sandbox = sandbox
        self.program = sandbox.directory / "haproxy-of-the-package"
        self._put = f"ln -sf {sandbox.environment['LB_HAPROXY']} {self.program}"
        log = LOG % sandbox.directory
        texts = {
            name: log + f"PUT='{self._put}'\n{text}" for name, text in tools.items()
        }
        self.environment = {
            "PATH": sandbox.path(**texts),
            "LB_HAPROXY": str(self.program),
        }

    def put(self) -> None:
        """The program is there, whatever the package tool thinks of it."""
        self.program.symlink_to(self.sandbox.environment["LB_HAPROXY"])

    def install(
        self, *options: str, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """One install."""
        return self.sandbox.run(*INSTALL, *options, stdin=stdin, **self.environment)

    def calls(self, program: str = "") -> list[str]:
        """What the tools were asked to do; questions to dpkg-query left out."""
        log = self.sandbox.directory / "tool-calls"
        lines = log.read_text().splitlines() if log.exists() else []
        asked = [line for line in lines if not line.startswith("dpkg-query ")]
        return [line for line in asked if line.startswith(program)]


def debian(
    sandbox: Sandbox, apt_get: str, state: str = NOT_INSTALLED, **tools: str
) -> Vm:
    """A Debian or Ubuntu VM; *state* is what dpkg-query does."""
    tools = {"dpkg": "exit 0", **tools}
    return Vm(sandbox, apt_get=apt_get, dpkg_query=state, **tools)


def test_package_is_installed_when_haproxy_is_absent(fresh):
    vm = debian(fresh, INSTALLS)
    result = vm.install()
    assert (result.returncode, result.stdout, result.stderr) == (0, "changed\n", "")
    update, install = vm.calls("apt-get")
    assert " -y " in update
    assert " update " in update
    assert " -y " in install
    assert " install --no-install-recommends haproxy " in install


def test_package_tools_ask_nothing(fresh):
    answers = "[[ $DEBIAN_FRONTEND == noninteractive ]] && ! read -r || exit 1\n"
    vm = debian(fresh, answers + INSTALLS)
    assert vm.install(stdin="y\ny\n").returncode == 0


def test_package_comes_from_dnf_where_there_is_no_apt(fresh):
    vm = Vm(fresh, dnf=INSTALLS)
    assert vm.install().returncode == 0
    (call,) = vm.calls()
    assert call.startswith("dnf -q -y install haproxy ")


def test_without_a_package_tool_the_line_says_so(fresh):
    line = fresh.refused(*INSTALL, **Vm(fresh).environment)
    assert "neither apt-get nor dnf" in line


P1, P2, SAFE = "http://p:1", "http://p:2", "https://p:2"


@pytest.mark.parametrize(
    ("options", "stdin", "http", "https"),
    [
        (("--http-proxy", P1), "", P1, P1),
        (("--http-proxy", "-"), "http://u:p@p:1\n", "http://u:p@p:1", "http://u:p@p:1"),
        # The end of the line is missing.
        (("--http-proxy", "-"), P1, P1, P1),
        (("--https-proxy", P2), "", "", P2),
        # In the order of the options.
        (("--http-proxy", "-", "--https-proxy", "-"), f"{P1}\n{P2}\n", P1, P2),
        (("--https-proxy", "-", "--http-proxy", "-"), f"{P2}\n{P1}\n", P1, P2),
        (("--http-proxy", P1, "--https-proxy", "-"), f"{SAFE}\n", P1, SAFE),
    ],
)
def test_package_comes_through_the_proxies(fresh, options, stdin, http, https):
    vm = debian(fresh, INSTALLS)
    assert vm.install(*options, stdin=stdin).returncode == 0
    assert len(vm.calls("apt-get")) == 2
    for call in vm.calls("apt-get"):
        assert call.endswith(f" http={http} https={https}")


def test_a_second_url_that_is_missing_is_named(fresh):
    options = ("--http-proxy", "-", "--https-proxy", "-")
    result = fresh.run(*INSTALL, *options, stdin="http://u:s3cret@p\n")
    assert result.returncode != 0
    assert result.stderr == (
        "the URL of --https-proxy was not given on standard input\n"
    )


def test_the_line_shows_no_credentials_that_a_tool_has_quoted(fresh):
    vm = debian(fresh, 'echo "E: no answer from $http_proxy" >&2; exit 100')
    result = vm.install("--http-proxy", "-", stdin="http://user:s3cret@proxy:3128\n")
    assert result.stderr == (
        "apt-get update failed for 0 s: E: no answer from http://***@proxy:3128\n"
    )


LOCKED = (
    "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)",
    "dpkg: error: dpkg frontend lock was locked by another process with pid 7",
    "dpkg: error: dpkg frontend lock is locked by another process",
)


def fails_before_call(number: int, sandbox: Sandbox, message: str) -> str:
    return (
        f"if (($(wc -l <{sandbox.directory}/tool-calls) < {number})); then\n"
        f"echo '{message}' >&2; exit 100; fi\n"
    )


@pytest.mark.parametrize("message", LOCKED)
@pytest.mark.parametrize("tool", ["apt_get", "dpkg"])
def test_another_package_tool_is_waited_for(fresh, tool, message):
    tools = {"apt_get": INSTALLS, "dpkg": "exit 0", "dpkg_query": NOT_INSTALLED}
    tools[tool] = fails_before_call(4, fresh, message) + tools[tool]
    vm = Vm(fresh, **tools)
    vm.environment["LB_PACKAGE_SECONDS"] = "60"
    assert vm.install().returncode == 0
    assert len(vm.calls()) > 3


#: What apt-get answers while the mirror's name cannot be resolved: in its own words,
#: and without the option "update" ends with 0. Afterwards it does what follows.
UNRESOLVED = """
if [[ ! -e {0}/resolved ]]; then
    said="Failed to fetch http://deb/InRelease  Temporary failure resolving 'deb'"
    case "$*" in
        *Error-Mode=any*) echo "E: $said" >&2; exit 100 ;;
        *update*) echo "W: $said" >&2; exit 0 ;;
        *) echo "E: Unable to locate package haproxy" >&2; exit 100 ;;
    esac
fi
"""


def test_a_name_server_that_comes_up_after_the_vm_is_waited_for(fresh):
    comes = f"(($(wc -l <{fresh.directory}/tool-calls) < 6)) || touch {{0}}/resolved\n"
    vm = debian(fresh, (comes + UNRESOLVED).format(fresh.directory) + INSTALLS)
    vm.environment["LB_PACKAGE_SECONDS"] = "60"
    assert (result := vm.install()).returncode == 0, result.stderr
    assert len(vm.calls("apt-get")) > 4


def test_a_name_server_that_stays_away_is_the_reason_and_not_the_package(fresh):
    vm = debian(fresh, UNRESOLVED.format(fresh.directory))
    line = fresh.refused(*INSTALL, **vm.environment, LB_PACKAGE_SECONDS="1")
    assert line == (
        "apt-get update failed for 1 s: E: Failed to fetch http://deb/InRelease  "
        "Temporary failure resolving 'deb'"
    )
    assert fresh.written() == {}


def test_a_download_that_breaks_off_is_tried_again(fresh):
    broken = "E: Failed to fetch http://deb/haproxy.deb  Connection timed out"
    text = f'[[ "$*" == *update* ]] || {{ {fails_before_call(3, fresh, broken)} }}'
    vm = debian(fresh, f"{text}\n{INSTALLS}")
    vm.environment["LB_PACKAGE_SECONDS"] = "60"
    assert (result := vm.install()).returncode == 0, result.stderr


def test_a_source_that_is_not_needed_may_be_out_of_reach(fresh):
    text = '[[ "$*" != *update* ]] || { echo "E: no such host" >&2; exit 100; }\n'
    vm = debian(fresh, text + INSTALLS)
    assert vm.install().returncode == 0
    assert len(vm.calls("apt-get")) == 2


def test_dnf_waits_for_its_mirror_too(fresh):
    said = 'Error: Failed to download metadata for repo "b": Curl error (6)'
    vm = Vm(fresh, dnf=fails_before_call(3, fresh, said) + INSTALLS)
    vm.environment["LB_PACKAGE_SECONDS"] = "60"
    assert vm.install().returncode == 0
    assert len(vm.calls("dnf")) == 3


@pytest.mark.parametrize(
    "cloud_init",
    [
        pytest.param("exit 0", id="ended"),
        pytest.param("exit 2", id="failed at something else"),
        pytest.param("sleep 60", id="hangs"),
    ],
)
def test_cloud_init_is_waited_for_before_the_packages(fresh, cloud_init):
    vm = debian(fresh, INSTALLS, cloud_init=cloud_init)
    vm.environment["LB_PACKAGE_SECONDS"] = "1"
    assert vm.install().returncode == 0
    first, *_ = vm.calls()
    assert first.startswith("cloud-init status --wait ")


@pytest.mark.skipif(not shutil.which("apt-get"), reason="not Debian")
def test_apt_itself_says_what_keeps_it_from_the_packages(fresh):
    """The real one, with directories of its own and a mirror that does not answer."""
    place = fresh.directory / "apt"
    for name in ("lists/partial", "archives/partial"):
        (place / name).mkdir(parents=True)
    (place / "status").touch()
    source = "deb [trusted=yes] http://127.0.0.1:9/debian stable main\n"
    (place / "sources.list").write_text(source)
    (place / "apt.conf").write_text(
        f'Dir::Etc::Main "{place}/none"; Dir::Etc::Parts "{place}/none";'
        f'Dir::Etc::SourceList "{place}/sources.list";'
        f'Dir::Etc::SourceParts "{place}/none"; Dir::State "{place}";'
        f'Dir::State::Status "{place}/status"; Dir::Cache "{place}";'
        'APT::Sandbox::User "root"; Acquire::Retries "0";'
        'Debug::NoLocking "true";\n'
    )
    vm = debian(fresh, f'exec {shutil.which("apt-get")} "$@"')
    line = fresh.refused(*INSTALL, **vm.environment, APT_CONFIG=f"{place}/apt.conf")
    assert line.startswith("apt-get update failed for 0 s: E: Failed to fetch http://")
    assert "Could not connect to 127.0.0.1:9" in line


@pytest.mark.parametrize(
    ("apt_get", "said"),
    [
        (
            "echo 'W: warn'; [[ $* == *update* ]] || {"
            " echo 'E: Unable to locate package haproxy' >&2; exit 100; }",
            "apt-get failed: E: Unable to locate package haproxy",
        ),
        (
            "[[ $* == *update* ]] || { echo 'E: cannot unpack' >&2; exit 100; }",
            "E: cannot unpack",
        ),
        ("echo 'E: Could not get lock /x' >&2; exit 100", "E: Could not get lock /x"),
        ("exit 0", "still not there"),
        ("exit 1", "apt-get update failed"),
    ],
)
def test_failed_package_installation_is_a_failure(fresh, apt_get, said):
    environment = debian(fresh, apt_get).environment
    line = fresh.refused(*INSTALL, **environment)
    assert said in line
    assert fresh.written() == {}
    assert fresh.acts() == []


def state_in(sandbox: Sandbox, state: str) -> tuple[Path, str]:
    """A file that holds the package's state, and the stand-in that tells it."""
    file = sandbox.directory / "package-state"
    file.write_text(state)
    return file, f"cat {file}"


@pytest.mark.parametrize("state", ["unpacked", "half-configured"])
def test_an_installation_that_was_cut_off_is_brought_to_its_end(fresh, state):
    file, query = state_in(fresh, state)
    ends = f"[[ ! -e {file} ]] || echo -n installed >{file}"
    vm = debian(fresh, "exit 100", query, dpkg=ends)
    vm.put()
    assert vm.install().returncode == 0
    (call,) = vm.calls()
    assert call.startswith("dpkg --force-confold --configure -a ")


def test_a_package_that_was_half_unpacked_is_unpacked_again(fresh):
    file, query = state_in(fresh, "half-installed")
    vm = debian(fresh, f"[[ $* == *update* ]] || echo -n installed >{file}", query)
    vm.put()
    assert vm.install().returncode == 0
    tools = [call.split()[0] for call in vm.calls()]
    assert tools == ["dpkg", "apt-get", "apt-get"]


def test_what_dpkg_cannot_bring_to_an_end_is_a_failure(fresh):
    said = "dpkg: error processing package haproxy (--configure):"
    fails = f"echo '{said}' >&2; exit 1"
    vm = debian(fresh, "exit 0", "echo half-configured", dpkg=fails)
    vm.put()
    assert said in fresh.refused(*INSTALL, **vm.environment)
    assert fresh.written() == {}


@pytest.mark.parametrize(
    "state",
    [
        pytest.param("echo installed", id="the distribution's package"),
        pytest.param("exit 1", id="another build"),
        pytest.param("echo config-files", id="another build after the package"),
    ],
)
def test_package_tools_are_left_alone_when_haproxy_is_there(fresh, state):
    vm = Vm(fresh, apt_get="exit 1", dnf="exit 1", dpkg="exit 1", dpkg_query=state)
    vm.put()
    assert vm.install().returncode == 0
    assert vm.calls() == []


FORBIDDEN = (
    *("sudo", "visudo", "usermod", "chpasswd", "curl", "wget", "apt_key", "gpg"),
    *("add_apt_repository", "lsb_release", "uname", "kubectl", "snap", "pip"),
)


def test_nothing_but_the_distributions_haproxy_is_fetched(fresh):
    """No other repository, no root shell for a user, no kubectl: nor asked for."""
    tools = dict.fromkeys(FORBIDDEN, "exit 1")
    vm = debian(fresh, INSTALLS, **tools)
    assert vm.install().returncode == 0
    assert {call.split()[0] for call in vm.calls()} == {"apt-get", "dpkg"}
    (install,) = [call for call in vm.calls() if " install " in call]
    assert install.split(" install ")[1].split(" http=")[0] == (
        "--no-install-recommends haproxy"
    )


def can_unshare() -> bool:
    asked = ["unshare", "--map-root-user", "--mount", "true"]
    try:
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not can_unshare(), reason="no mount namespaces for this user")
def test_nothing_is_written_but_configuration_state_and_lock(fresh):
    """The whole file system is read-only, except for the script's own places."""
    made = fresh.directory / "tmp"
    made.mkdir()
    inside = (
        f"mount --rbind {fresh.directory} {fresh.directory} && "
        "findmnt --noheadings --raw --output TARGET | while read -r place; do "
        f"case $place in {fresh.directory}* | /proc* | /dev* | /sys*) ;; "
        '*) mount -o remount,bind,ro "$place" ;; esac; done; '
        'touch /etc/x 2>/dev/null && exit 9; exec bash "$@"'
    )
    unshared = ["unshare", "--map-root-user", "--mount", "bash", "-c", inside, "-"]
    result = subprocess.run(
        [*unshared, str(SCRIPT), *INSTALL],
        env={**fresh.environment, "TMPDIR": str(made)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "changed\n", "")
    assert list(made.iterdir()) == []


@pytest.mark.parametrize(("state", "asked"), [("off", True), ("on", False)])
def test_selinux_lets_haproxy_use_any_port(fresh, state, asked):
    path = fresh.path(
        selinuxenabled="exit 0",
        getsebool=f"echo '$1 --> {state}'",
        setsebool=f'echo "$*" >{fresh.directory}/setsebool-called',
    )
    assert fresh.run(*INSTALL, PATH=path).returncode == 0
    called = fresh.directory / "setsebool-called"
    assert called.exists() is asked
    assert not asked or called.read_text() == "-P haproxy_connect_any on\n"
