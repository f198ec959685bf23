# SPDX-License-Identifier: Apache-2.0
"""Steps that operations share."""
