# SPDX-License-Identifier: Apache-2.0
"""What all tests of operations use."""

from tests.helpers.known_inventories import known_inventories  # noqa: F401
