"""What kubespray downloads, built from Go modules and Debian packages.

For a machine without the internet: where there is some, kubespray's own downloads are
as good. Every program is pinned by a ``go.mod`` and ``go.sum`` below ``modules`` and
fetched through Go's module proxy. See doc/source/real.rst.
"""
