# SPDX-License-Identifier: Apache-2.0
"""The plugin for DevStack, sourced as stack.sh does, beside fakes of its functions."""

import subprocess

import pytest

from tests.tree import ROOT

PLUGIN = ROOT / "devstack"
#: DevStack's functions, as far as the plugin calls them. Options are lines of a file:
#: "section option value".
DEVSTACK = r"""
set -o errexit
is_service_enabled() { [[ " $ENABLED " == *" $1 "* ]]; }
define_plugin() { echo "plugin $*"; }
plugin_requires() { echo "requires $*"; }
echo_summary() { echo "summary $*"; }
pip_install() { echo "pip_install $*"; }
pip_uninstall() { echo "pip_uninstall $*"; }
iniget() { [[ -f $1 ]] || return 0; sed -n "s/^$2 $3 //p" "$1"; }
iniset() {
    touch "$1"
    sed -i "/^$2 $3 /d" "$1"
    echo "$2 $3 $4" >>"$1"
}
DEST=/opt/stack
source "$PLUGIN/settings"
"""
OURS = "mgmt-drivers-kubespray,mgmt-drivers-cnf-exposure"


@pytest.fixture
def conf(tmp_path):
    return tmp_path / "tacker.conf"


def run(conf, phases, enabled="tacker tacker-conductor", before=""):
    """The output of these phases, one after the other in one shell as in stack.sh."""
    calls = "\n".join(f'source "$PLUGIN/plugin.sh" {phase}' for phase in phases)
    env = {
        "PLUGIN": PLUGIN,
        "TACKER_CONF": conf,
        "ENABLED": enabled,
        "PATH": "/usr/bin:/bin",
    }
    argv = ["bash", "-c", f"{before}{DEVSTACK}{calls}"]
    return subprocess.run(
        argv, env=env, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def options(conf):
    return dict(line.rsplit(" ", 1) for line in conf.read_text().splitlines())


def test_it_names_itself_and_the_plugins_it_needs(conf):
    assert run(conf, []) == [
        "plugin tacker-k8s-mgmt",
        "requires tacker-k8s-mgmt tacker",
        "requires tacker-k8s-mgmt barbican",
    ]


def test_it_is_installed_from_its_clone_and_only_in_its_phase(conf):
    (call,) = (line for line in run(conf, ["stack install"]) if "pip" in line)
    assert call == "pip_install /opt/stack/tacker-k8s-mgmt"
    others = ["stack pre-install", "stack extra", "stack test-config", "unstack"]
    assert not [line for line in run(conf, others) if not line.startswith(("pl", "re"))]
    assert not conf.exists()


def test_tacker_gets_the_drivers_beside_its_own_default(conf):
    run(conf, ["stack post-config"])
    assert options(conf) == {
        "tacker vnflcm_mgmt_driver": f"vnflcm_noop,{OURS}",
        "vnf_lcm operation_timeout": "14400",
    }


def test_other_drivers_stay_and_no_driver_is_named_twice(conf):
    conf.write_text("tacker vnflcm_mgmt_driver vnflcm_noop,theirs\n")
    run(conf, ["stack post-config", "stack post-config"])
    assert options(conf)["tacker vnflcm_mgmt_driver"] == f"vnflcm_noop,theirs,{OURS}"


def test_local_conf_chooses(conf):
    before = (
        "TACKER_K8S_MGMT_DRIVERS=mgmt-drivers-kubespray\n"
        "TACKER_K8S_MGMT_OPERATION_TIMEOUT=7200\nTACKER_K8S_MGMT_DIR=/src\n"
    )
    lines = run(conf, ["stack install", "stack post-config"], before=before)
    assert "pip_install /src" in lines
    assert options(conf) == {
        "tacker vnflcm_mgmt_driver": "vnflcm_noop,mgmt-drivers-kubespray",
        "vnf_lcm operation_timeout": "7200",
    }


def test_a_host_without_a_conductor_gets_nothing(conf):
    phases = ["stack install", "stack post-config", "clean"]
    assert len(run(conf, phases, enabled="tacker")) == 3
    assert not conf.exists()


def test_clean_removes_it(conf):
    assert run(conf, ["clean"])[-1] == "pip_uninstall tacker-k8s-mgmt"
