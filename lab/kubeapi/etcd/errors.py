# SPDX-License-Identifier: Apache-2.0
"""What the stand-in for etcd refuses, in etcd's words where it has some."""


class EtcdError(Exception):
    """A request that was not done.

    :param retryable: another member, or the same a little later, may do it.
    :param leader: URL for clients of the member to ask instead; "" if none is known.
    """

    def __init__(
        self, message: str, *, retryable: bool = False, leader: str = ""
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.leader = leader


def no_leader() -> EtcdError:
    return EtcdError("etcdserver: no leader", retryable=True)


def timed_out() -> EtcdError:
    return EtcdError("etcdserver: request timed out", retryable=True)


def not_leader(leader: str) -> EtcdError:
    """Ask the leader instead."""
    return EtcdError("etcdserver: not leader", retryable=True, leader=leader)
