# SPDX-License-Identifier: Apache-2.0
"""Hosts that boot systemd, for what a stand-in for it cannot run.

``root`` makes their Debian file system, ``layer`` the files above it, ``cgroups`` their
resource limits, ``machine`` and the scripts in ``boot`` start one. ``requirements``
says beforehand what a machine lacks for them, ``variables`` which of kubespray's
variables such hosts need.
"""
