# SPDX-License-Identifier: Apache-2.0
"""What runs on a cluster while it is scaled and healed: pods that can be asked."""

from lab.services.mirror import REGISTRY_ADDRESS

#: Made with the mirror: a web server that answers with its pod's name.
IMAGE = f"{REGISTRY_ADDRESS}/lab/web:1"
PORT = 8080
NODE_PORT = 30080
CNF_PORT = 30081
#: Of the exposed CNF: its Services' node ports, the port of the one that is balanced,
#: and where its pods' name server listens.
EXPOSED_PORT, DNS_NODE_PORT, BALANCED_PORT, DNS = 30082, 30053, 8081, 5353
#: Where they answer to what is said in a connection, inside and on the load balancer.
ECHO, ECHO_PORT = 7070, 8082
#: Of the one from a chart.
CHART_PORT = 30083
REPLICAS = 4
#: Seconds that a pod has to end; a second is enough for one that does nothing.
GRACE = 2

_POD = """\
      terminationGracePeriodSeconds: {grace}
      containers:
      - name: web
        image: {image}
        ports: [{{containerPort: {port}}}]
        readinessProbe: {{httpGet: {{path: /, port: {port}}}, periodSeconds: 2}}
        resources: {{requests: {{cpu: 10m, memory: 8Mi}}, limits: {{memory: 64Mi}}}}
"""

_WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: {unsatisfiable}
        # Else the control plane counts as a place without a pod.
        nodeTaintsPolicy: Honor
        labelSelector: {{matchLabels: {{app: {name}}}}}
      volumes: [{{name: scratch, emptyDir: {{}}}}]
{pod}\
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec:
  type: NodePort
  selector: {{app: {name}}}
  ports: [{{port: 80, targetPort: {port}, nodePort: {node_port}}}]
"""
_AGENT = """\
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
{pod}\
"""


def manifests() -> str:
    """A Deployment whose pods have an emptyDir, its Service and a DaemonSet."""
    return web("web", NODE_PORT, REPLICAS) + _AGENT.format(pod=_pod())


def web(name: str, node_port: int, replicas: int, spread: bool = False) -> str:
    """A Deployment and its Service, which answers on a port of every node.

    :param spread: leave pods waiting rather than have them all on one node.
    """
    places = {"name": name, "replicas": replicas, "port": PORT, "node_port": node_port}
    unsatisfiable = "DoNotSchedule" if spread else "ScheduleAnyway"
    return _WEB.format(pod=_pod(), unsatisfiable=unsatisfiable, **places)


def _pod() -> str:
    return _POD.format(grace=GRACE, image=IMAGE, port=PORT)


def budget(at_least: int) -> str:
    """A PodDisruptionBudget for the Deployment."""
    return f"""\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web}}
spec:
  minAvailable: {at_least}
  selector: {{matchLabels: {{app: web}}}}
"""


_NAME_SERVER = """\
      - name: dns
        image: {image}
        args: [-dns.port, "{port}"]
        resources: {{requests: {{cpu: 10m, memory: 16Mi}}, limits: {{memory: 128Mi}}}}
"""

# Says its pod's name, then whatever it gets.
_ECHO = """\
      - name: echo
        image: {image}
        command: [nc, -ll, -p, "{port}", -e, sh, -c, hostname; exec cat]
        resources: {{requests: {{cpu: 10m, memory: 8Mi}}, limits: {{memory: 64Mi}}}}
"""

_EXPOSED = """\
---
apiVersion: v1
kind: Service
metadata: {{name: web-local}}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {{app: web}}
  ports:
  - {{name: http, port: {balanced}, targetPort: {port}}}
  - {{name: echo, port: {echo_port}, targetPort: {echo}}}
---
apiVersion: v1
kind: Service
metadata: {{name: dns}}
spec:
  type: NodePort
  selector: {{app: web}}
  ports: [{{port: 53, targetPort: {dns}, protocol: UDP, nodePort: {dns_node_port}}}]
"""


def exposed_cnf(coredns: str) -> str:
    """The manifest of a CNF with Services of both types, over TCP and UDP.

    :param coredns: version of the image of CoreDNS, which answers over UDP; without a
        configuration it says who asks.
    """
    image = f"{REGISTRY_ADDRESS}/coredns/coredns:v{coredns}"
    pod = _pod() + _NAME_SERVER.format(image=image, port=DNS)
    pod += _ECHO.format(image=IMAGE, port=ECHO)
    places = {"name": "web", "replicas": 2, "port": PORT}
    deployment = _WEB.format(
        pod=pod, unsatisfiable="DoNotSchedule", node_port=EXPOSED_PORT, **places
    )
    balanced = {"balanced": BALANCED_PORT, "echo": ECHO, "echo_port": ECHO_PORT}
    return deployment + _EXPOSED.format(
        port=PORT, dns=DNS, dns_node_port=DNS_NODE_PORT, **balanced
    )
