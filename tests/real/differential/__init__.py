# SPDX-License-Identifier: Apache-2.0
"""The same requests to a real Kubernetes API server and to the laboratory's."""
