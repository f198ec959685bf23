# SPDX-License-Identifier: Apache-2.0
"""The verbs of an operator over Tacker's API, with Keystone credentials alone.

Nothing here needs Tacker's configuration, its database or its code.
"""
