# SPDX-License-Identifier: Apache-2.0
"""The Ansible server: the cluster's directory, its lock, playbook runs."""
