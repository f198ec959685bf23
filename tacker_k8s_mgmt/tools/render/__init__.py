# SPDX-License-Identifier: Apache-2.0
"""Operations for people: on a terminal and as a page."""
