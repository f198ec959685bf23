# SPDX-License-Identifier: Apache-2.0
"""A site without effects: state in, state out, and a fault where a test sets one."""
