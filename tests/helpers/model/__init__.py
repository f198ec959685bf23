# SPDX-License-Identifier: Apache-2.0
"""A model of Heat, the cluster, the Ansible server and Tacker, for histories of faults.

The fakes of the unit tests are extended: VMs die, stacks fail, each call of a port may
fail, and Tacker runs operations with the hooks of its APIs (:mod:`.v1`, :mod:`.v2`).
"""
