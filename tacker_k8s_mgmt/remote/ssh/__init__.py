# SPDX-License-Identifier: Apache-2.0
"""SSH: logins, sessions, host keys, bastions; the only code that knows paramiko."""
