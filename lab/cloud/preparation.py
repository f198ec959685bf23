# SPDX-License-Identifier: Apache-2.0
"""What there is before the first host: file layers, a network, the Ansible server."""

from pathlib import Path

from lab import environments
from lab.cloud import ansible_server, base, boot, networks
from lab.cloud.addresses import CONTROLLER_ADDRESS, EXTERNAL
from lab.cloud.hosts import Hosts
from lab.cloud.settings import LAYER_OF_SYSTEMD, STOCK, VM, Settings
from lab.cloud.state import State
from lab.cloud.systemd import root
from lab.real.site import Site
from lab.settings import from_environment, load_kind

#: Below the directory of the services' data: `key_directory` and `secret_directory`.
KEYS = Path("tacker", "ssh-keys")
SECRETS = Path("tacker", "secrets")


def prepare(state: Path, masks: list[Path]) -> None:
    """Make what hosts need: file layers, the external network, the Ansible server.

    Can be repeated; what is there stays. ``$LAB_STATE`` and ``$LAB_CACHE`` say which
    lab it is.

    :param masks: directories of the machine that hosts must not see.
    :raises CloudError: the kernel refuses.
    """
    lab = from_environment()
    real = load_kind(lab)
    site = Site.find(lab.state)
    ansible = Path(site.ansible) if site else environments.path(lab, "ansible")
    settings = Settings(
        state=state,
        cache=lab.cache,
        masks=(lab.state, *masks),
        ansible_environment=ansible,
        programs=lab.programs,
        root=root.path(lab) if real else None,
        memory=real.memory if real else 0,
        kubespray=Path(site.kubespray) if site else None,
    )
    if base.mount(settings):
        try:
            base.make_common_layer(settings)
            key = base.make_key(settings)
            below = Path("/")
            if settings.root:
                below = settings.root
                root.make_layer(settings.layer(LAYER_OF_SYSTEMD), below)
            accounts = (*base.VM_ACCOUNTS, base.KEYED)
            base.make_accounts(settings.layer(VM), accounts, key, below)
            stock = settings.layer(STOCK)
            base.make_accounts(stock, (base.STOCK_ACCOUNT,), "", below)
            boot.refuse_passwords(stock)
            accounts = (*ansible_server.ACCOUNTS, base.KEYED)
            base.make_accounts(settings.layer(ansible_server.ROLE), accounts, key)
            base.make_host_key(settings, ansible_server.ROLE)
        except BaseException:
            base.unmount(settings)
            raise
    settings.save()
    _keep_logins(settings, lab.data)
    networks.create_bridge(EXTERNAL, f"{CONTROLLER_ADDRESS}/24")
    networks.refuse_promptly()
    # Networks outlive the lab's namespaces when its state is kept.
    for network in State(state).read()["networks"].values():
        networks.create_bridge(network["bridge"])
    ansible_server.prepare(Hosts(state), settings)


def _keep_logins(settings: Settings, data: Path) -> None:
    """The key pair in Nova's stand-in, and files on the conductor for the logins of the
    sample requests.
    """
    private, public = base.make_key_pair(settings)
    pair = {"name": base.KEY_PAIR, "public_key": public}
    with State(settings.state).edit() as records:
        records["keypairs"][base.KEY_PAIR] = pair
    account = ansible_server.ACCOUNTS[0]
    base.write(data / KEYS / base.KEY_PAIR, private, 0o600)
    base.write(data / SECRETS / ansible_server.ROLE, account.password, 0o600)
    for name in (KEYS, SECRETS):
        (data / name).chmod(0o700)
