# SPDX-License-Identifier: Apache-2.0
"""The driver that exposes CNFs on the load balancers of their clusters, for both APIs.

A CNF and the cluster that it runs on may be VNF instances of different APIs, so this
package stands above the hooks of both.
"""
