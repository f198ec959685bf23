# SPDX-License-Identifier: Apache-2.0
"""A stand-in for etcd: a few members that keep one small document together.

It is **not** etcd: there are no keys, the API is JSON over HTTPS, and instead of a log
its members replicate the whole document. What is like etcd is what can be seen from
outside: members with ids, an elected leader, writes that a majority has on disk before
they are answered, no answer at all without a majority, members that are added before
they are started and stop for good when they are removed, and ``etcdctl`` for these.

The document is the state of the Kubernetes API, and the server that serves it: of
several API servers one works at a time (:meth:`.member.Member.lease`), the others
forward requests.
"""
