# SPDX-License-Identifier: Apache-2.0
"""The lab's services. Everything here runs inside the lab's namespaces.

``python3 -m lab.services`` is what the lab's other half, outside, calls. A module per
service says what is run and how one sees that it is ready; control.py runs them.
"""
