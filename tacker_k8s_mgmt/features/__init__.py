# SPDX-License-Identifier: Apache-2.0
"""What a cluster has beside Kubernetes: each feature can be taken out by itself.

Nothing below imports from here. :mod:`.table` lists the features.
"""
