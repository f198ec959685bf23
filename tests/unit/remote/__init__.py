# SPDX-License-Identifier: Apache-2.0
"""Effects, against an SSH server in this process."""
