# SPDX-License-Identifier: Apache-2.0
"""What kubespray downloads: from the internet, or built for a machine without it.

What is built comes from Go modules and Debian packages. Every program is pinned by a
``go.mod`` and ``go.sum`` below ``modules`` and fetched through Go's module proxy. See
doc/source/real.rst.
"""
