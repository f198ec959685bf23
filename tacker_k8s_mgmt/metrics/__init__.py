# SPDX-License-Identifier: Apache-2.0
"""Metrics of the operations, for Prometheus.

Journals forget old operations, and processes end: the totals are kept in a file of
their own (``state``), to which every write adds what the journals have had since
(``totals``), and are written for node exporter's textfile collector (``textfile``).
"""
