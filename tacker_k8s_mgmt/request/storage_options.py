# SPDX-License-Identifier: Apache-2.0
"""The structure ``cluster.storage``: where persistent volumes come from."""

from typing import Annotated

from pydantic import Field

from tacker_k8s_mgmt.request import openstack_options
from tacker_k8s_mgmt.request.field_types import Flag
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.option_metadata import Becomes
from tacker_k8s_mgmt.request.option_types import Registry, Secret, Text

LOCAL_PATH_IS_DEFAULT = "local_path_provisioner_is_default_storageclass"
# kubespray deploys the Cinder driver without a StorageClass unless
# persistent_volumes_enabled is set, none of its classes is the default, and its own
# class has the availability zone "nova", which not every site has: without a zone,
# Cinder takes the site's default. kubespray's template needs a parameter, so there is
# one with the driver's own default.
_CINDER_CLASS = {
    "name": "cinder-csi",
    "is_default": True,
    "parameters": {"csi.storage.k8s.io/fstype": "ext4"},
}


class CephRbd(Structure):
    """Volumes on Ceph's block devices."""

    monitors: Annotated[
        tuple[Registry, ...], Becomes("rbd_provisioner_monitors", value=",".join)
    ] = Field(min_length=1)
    """List of Ceph's monitors, each host:port."""
    pool: Annotated[Text, Becomes("rbd_provisioner_pool")] = "kube"
    """Pool. Default: kube."""
    admin_id: Annotated[Text, Becomes("rbd_provisioner_admin_id")] = "admin"
    """User who makes volumes. Default: admin."""
    admin_key: Annotated[Secret, Becomes("rbd_provisioner_secret")]
    """Key of that user."""
    user_id: Annotated[Text, Becomes("rbd_provisioner_user_id")] = "kube"
    """User who mounts volumes. Default: kube."""
    user_key: Annotated[Secret, Becomes("rbd_provisioner_user_secret")]
    """Key of that user."""


class CephFs(Structure):
    """Volumes on a CephFS."""

    monitors: Annotated[
        tuple[Registry, ...], Becomes("cephfs_provisioner_monitors", value=",".join)
    ] = Field(min_length=1)
    """List of Ceph's monitors, each host:port."""
    admin_id: Annotated[Text, Becomes("cephfs_provisioner_admin_id")] = "admin"
    """User who makes volumes. Default: admin."""
    admin_key: Annotated[Secret, Becomes("cephfs_provisioner_secret")]
    """Key of that user."""


class Storage(Structure):
    """Where persistent volumes come from."""

    cinder: Annotated[
        Flag,
        Becomes("cinder_csi_enabled"),
        Becomes(*openstack_options.login_variables("cinder"), value=None),
        Becomes("persistent_volumes_enabled", is_default=True),
        Becomes("storage_classes", value=lambda _: [_CINDER_CLASS], is_default=True),
        Becomes(LOCAL_PATH_IS_DEFAULT, value=None, is_default=True),
    ] = False
    """Volumes of OpenStack, by the Cinder CSI driver, and a default StorageClass
    cinder-csi for them; needs cluster.openstack. Default: false."""
    local_path: Annotated[
        Flag,
        Becomes("local_path_provisioner_enabled"),
        Becomes(LOCAL_PATH_IS_DEFAULT, value=None, is_default=True),
    ] = False
    """Directories on the nodes, made on demand below /opt/local-path-provisioner.
    Default: false."""
    local_volumes: Annotated[Flag, Becomes("local_volume_provisioner_enabled")] = False
    """File systems that are mounted below /mnt/disks on the nodes. Default: false."""
    ceph_rbd: Annotated[CephRbd | None, Becomes("rbd_provisioner_enabled")] = None
    """Ceph block devices, by kubespray's provisioner. Up to v2.27."""
    cephfs: Annotated[CephFs | None, Becomes("cephfs_provisioner_enabled")] = None
    """CephFS, by kubespray's provisioner. Up to v2.27."""
