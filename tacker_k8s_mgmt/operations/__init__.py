# SPDX-License-Identifier: Apache-2.0
"""The order of work: each operation as the steps an operator would do by hand."""
