# SPDX-License-Identifier: Apache-2.0
"""The load balancer: the script with real bash and HAProxy, and the code that calls it.

HAProxy is the one on PATH, or the one that the variable HAPROXY names.
"""
