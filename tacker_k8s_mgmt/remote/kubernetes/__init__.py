# SPDX-License-Identifier: Apache-2.0
"""kubectl and etcdctl on the control planes."""
