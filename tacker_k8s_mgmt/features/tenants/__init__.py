# SPDX-License-Identifier: Apache-2.0
"""Tenants: namespaces with rights, limits and a VIM each."""
