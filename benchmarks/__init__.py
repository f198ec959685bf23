# SPDX-License-Identifier: Apache-2.0
"""How long operations take, and how much of it is this project's own doing.

``python3 -m benchmarks`` measures in a laboratory of its own and on fakes with hundreds
of nodes. Nothing here is a test: a target that is missed is shown, not asserted.
"""
