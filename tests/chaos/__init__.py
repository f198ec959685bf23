# SPDX-License-Identifier: Apache-2.0
"""A fault campaign in the laboratory: ``python3 -m lab chaos``.

Operations of real clusters, a fault in each, an operator who does what errors and
guides say, and what has to hold afterwards. ``plan``, ``catalogue``, ``record``,
``summary``, ``page``, ``advice`` and ``guide`` need no laboratory.
"""
