# SPDX-License-Identifier: Apache-2.0
"""The simulated control loops. Each looks at the store and mends one kind of thing."""
