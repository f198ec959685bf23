# SPDX-License-Identifier: Apache-2.0
"""The test of the pod network."""
