# SPDX-License-Identifier: Apache-2.0
"""The real laboratory: the real kubespray makes real Kubernetes on hosts with systemd.

Everything else is as in the quick laboratory: Tacker, Heat, the networks, the Ansible
server's users.
"""
