# SPDX-License-Identifier: Apache-2.0
"""The commands that the guides print, and where each of them is run.

* :mod:`tests.documents.blocks` reads them out of the pages;
* :mod:`tests.documents.account` says for each where it is run, or why not;
* :mod:`tests.documents.running` runs them, with values in place of placeholders.
"""
