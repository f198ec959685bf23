# SPDX-License-Identifier: Apache-2.0
"""What people use beside Tacker: the command line, packages, checks of a cloud."""
