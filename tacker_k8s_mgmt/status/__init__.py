# SPDX-License-Identifier: Apache-2.0
"""What ``cluster check`` compares and reports; no I/O."""
