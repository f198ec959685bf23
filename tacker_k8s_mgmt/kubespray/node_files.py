# SPDX-License-Identifier: Apache-2.0
"""Files that kubespray writes on control planes."""

ADMIN_CONFIG = "/etc/kubernetes/admin.conf"
ETCD_ENV = "/etc/etcd.env"
