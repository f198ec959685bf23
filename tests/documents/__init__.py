# SPDX-License-Identifier: Apache-2.0
"""The guides: their pages as a browser shows them, and the commands that they print.

* :mod:`tests.documents.blocks` reads them out of the pages;
* :mod:`tests.documents.account` says for each where it is run, or why not;
* :mod:`tests.documents.running` runs them, with values in place of placeholders;
* :mod:`tests.documents.rendered` builds the pages and looks at each in a
  :mod:`tests.documents.browser`.
"""
