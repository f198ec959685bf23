# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a Kubernetes API server, for the laboratory and for tests.

Real ``kubectl`` (1.32, 1.34, 1.35 were tried) can get, describe, apply, label, taint,
cordon, drain and delete against it; Tacker registers it as a VIM. Scheduler,
controllers and the containers of pods are simulated in one thread. Nodes are not: a
node is Ready only while something posts its heartbeats, as in a real cluster.

Pods leave their nodes as in Kubernetes: evictions ask the PodDisruptionBudgets,
NoExecute taints do not; a silent node's pods stay until their tolerations end, the
node is out of service or it is deleted. Volumes are only objects: nothing attaches
them, and a VolumeAttachment goes when it is deleted and has no finalizer.

It is **not** Kubernetes: next to no validation, no quotas; what containers do follows
from their commands (:mod:`.pods`). It runs with the Python of any Debian or Ubuntu host
and Debian's ``python3-jwt``, ``python3-cryptography`` and ``python3-jsonpatch``:
``python3 -m kubeapi --help``. doc/source/lab.rst says what of it has to be emulated.

Failure annotations: ``kapi.sim/ready: "false"`` on a node silences its kubelet at once,
on a pod it keeps the pod from getting Ready. ``kapi.sim/eviction-fails`` on a pod is
the error of its evictions, as of an admission webhook that is broken, in JSON:
``code``, ``reason`` and ``message``, with ``times`` or ``seconds`` from the first one.
"""

READY_ANNOTATION = "kapi.sim/ready"
EVICTION_ANNOTATION = "kapi.sim/eviction-fails"
