# SPDX-License-Identifier: Apache-2.0
"""The load balancer: the script with real bash and HAProxy, and the code that calls it.

Each test that involves HAProxy runs with the one on PATH and with the newest, or only
with the one that the variable HAPROXY names. A warning of HAProxy is an error.
"""
