#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What DevStack sources at each phase: `source plugin.sh MODE [PHASE]`.
# Tacker's plugin has to come first in local.conf: it writes tacker.conf in the same phase
# as this one adds to it, and starts the conductor in the next.

function configure_tacker_k8s_mgmt {
    local conf=${TACKER_CONF:-/etc/tacker/tacker.conf}
    local drivers driver
    drivers=$(iniget "$conf" tacker vnflcm_mgmt_driver)
    # Tacker's default, which serves the hooks that packages do not name.
    drivers=${drivers:-vnflcm_noop}
    for driver in ${TACKER_K8S_MGMT_DRIVERS//,/ }; do
        if [[ ",$drivers," != *",$driver,"* ]]; then
            drivers=$drivers,$driver
        fi
    done
    iniset "$conf" tacker vnflcm_mgmt_driver "$drivers"
    iniset "$conf" vnf_lcm operation_timeout "$TACKER_K8S_MGMT_OPERATION_TIMEOUT"
}

if is_service_enabled tacker-conductor; then
    case "$1 ${2:-}" in
        "stack install")
            echo_summary "Installing tacker-k8s-mgmt"
            # Within the branch's upper constraints, as DevStack installs everything.
            pip_install "$TACKER_K8S_MGMT_DIR"
            ;;
        "stack post-config")
            echo_summary "Configuring tacker-k8s-mgmt"
            configure_tacker_k8s_mgmt
            ;;
        "clean "*)
            pip_uninstall tacker-k8s-mgmt
            ;;
    esac
fi
