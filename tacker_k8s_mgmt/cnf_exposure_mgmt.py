"""The driver class for CNFs that Tacker's v1 API loads. FROZEN: never edit this file.

Tacker compares the SHA-256 of this file with the copy in every onboarded VNF package
at every hook, so one changed byte would break the packages that operators have
already uploaded. Everything that may change lives behind the import below.
"""

from tacker_k8s_mgmt.hooks.cnf import v1


class CnfExposureMgmtDriver(v1.CnfMgmtDriver):
    """Management driver ``mgmt-drivers-cnf-exposure``."""
