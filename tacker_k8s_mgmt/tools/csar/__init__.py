# SPDX-License-Identifier: Apache-2.0
"""VNF packages (CSAR): build them from the samples, and check any of them.

Nothing here talks to Tacker; what Tacker does with a package is written down with the
place in its sources, and the contract tests hold it against the installed Tacker.
"""
