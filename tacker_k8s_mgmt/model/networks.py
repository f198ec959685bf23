# SPDX-License-Identifier: Apache-2.0
"""kubespray's default networks by address family, in all releases."""

PODS = {"ipv4": "10.233.64.0/18", "ipv6": "fd85:ee78:d8a6:8607::1:0/112"}
SERVICES = {"ipv4": "10.233.0.0/18", "ipv6": "fd85:ee78:d8a6:8607::1000/116"}
