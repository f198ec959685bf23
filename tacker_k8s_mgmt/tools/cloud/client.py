# SPDX-License-Identifier: Apache-2.0
"""Asks a cloud through openstacksdk, as clouds.yaml or the variables ``OS_*`` name it.

openstacksdk is optional (``pip install tacker-k8s-mgmt[cloud]``) and takes a second to
import, so nothing imports it before a cloud is asked.

It takes the shapes of its files for granted, and skips a file that it cannot parse. So
they are checked before it reads them.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from tacker_k8s_mgmt.errors import CloudError
from tacker_k8s_mgmt.files import reason
from tacker_k8s_mgmt.model.yaml_text import mapping, parse_yaml, sequence
from tacker_k8s_mgmt.tools.cloud.facts import (
    Flavor,
    Heat,
    Image,
    Network,
    Quota,
    Quotas,
    Server,
    Subnet,
    Vim,
)

_MAPPING, _LIST, _TEXT, _SCALAR = "a mapping", "a list", "a text", "a text or a number"
_TYPES: Mapping[str, tuple[type, ...]] = {
    _MAPPING: (dict,),
    _LIST: (list,),
    _TEXT: (str,),
    _SCALAR: (str, int, float),
}
_TOP = dict.fromkeys(("clouds", "client", "cache"), _MAPPING)
_CLOUD = {
    "auth": _MAPPING,
    "regions": _LIST,
    **dict.fromkeys(("auth_type", "cacert", "cert", "key", "cloud", "profile"), _TEXT),
    **dict.fromkeys(("region_name", "identity_api_version"), _SCALAR),
}
_AUTH = dict.fromkeys(
    (
        *("auth_url", "username", "user_id", "password", "token", "system_scope"),
        *("project_name", "project_id", "domain_name", "domain_id"),
        *("user_domain_name", "user_domain_id"),
        *("project_domain_name", "project_domain_id"),
        *("application_credential_id", "application_credential_name"),
        "application_credential_secret",
    ),
    _TEXT,
)
#: Among these, what may not be empty.
_NEEDED = frozenset({*_TOP, "auth", "regions", "auth_url", "auth_type", "region_name"})


def check(name: str) -> None:
    """Check the files as far as the login to a cloud needs them.

    :param name: of the cloud; "" for none.
    :raises CloudError: a file cannot be read, or has something of another type than it
        has to be; it names the file and the key.
    """
    from openstack.config import loader

    for variable, known in (
        ("OS_CLIENT_CONFIG_FILE", loader.CONFIG_FILES),
        ("OS_CLIENT_SECURE_FILE", loader.SECURE_FILES),
    ):
        named = os.environ.get(variable)
        _check_first([*([named] if named else ()), *known], name)


def _check_first(paths: Sequence[str], name: str) -> None:
    """Check the first of the files that may be read: openstacksdk reads no other."""
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                content = parse_yaml(file.read())
        except (FileNotFoundError, PermissionError):
            continue
        except OSError as error:
            raise CloudError(
                detail=f"{path} cannot be read: {reason(error)}."
            ) from None
        except UnicodeDecodeError:
            raise CloudError(detail=f"{path} is no text in UTF-8.") from None
        except (yaml.YAMLError, ValueError) as error:
            raise CloudError(detail=f"{path} is no YAML{_where(error)}.") from None
        if problems := list(_problems(content, name)):
            raise CloudError(detail=f"{path}: {'; '.join(problems)}.")
        return


def _where(error: Exception) -> str:
    """The place and the reason, without the text: it may be a password."""
    mark, problem = (getattr(error, f"problem{x}", None) for x in ("_mark", ""))
    place = f": line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{place}: {problem}" if problem else place


def _problems(content: Any, name: str) -> Iterator[str]:
    if content is None:
        return
    if not isinstance(content, dict):
        yield f"must be a mapping, and is {_is(content)}"
        return
    yield from _wrong(content, _TOP, "")
    clouds = content.get("clouds")
    cloud = clouds.get(name, {}) if isinstance(clouds, dict) else {}
    if not isinstance(cloud, dict):
        yield f"clouds.{name} must be a mapping, and is {_is(cloud)}"
        return
    yield from _wrong(cloud, _CLOUD, f"clouds.{name}.")
    auth = cloud.get("auth")
    if isinstance(auth, dict):
        yield from _wrong(auth, _AUTH, f"clouds.{name}.auth.")


def _wrong(
    values: Mapping[Any, Any], types: Mapping[str, str], place: str
) -> Iterator[str]:
    for key, wanted in types.items():
        if key not in values or (values[key] is None and key not in _NEEDED):
            continue
        value = values[key]
        if isinstance(value, bool) or not isinstance(value, _TYPES[wanted]):
            is_bare = wanted == _TEXT and isinstance(value, int | float)
            more = " (put it in quotes)" if is_bare else ""
            yield f"{place}{key} must be {wanted}, and is {_is(value)}{more}"


def _is(value: Any) -> str:
    if value is None:
        return "empty"
    for kind, types in _TYPES.items():
        if isinstance(value, types) and kind != _SCALAR and not isinstance(value, bool):
            return kind
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a date"


LIMIT = 30.0  # seconds for each answer
_TACKER = "nfv-orchestration"
#: Clouds that openstacksdk adds: of variables ``OS_*``, and where there is no other.
_OF_NO_FILE = {"envvars", "defaults"}
_TEMPLATE = "heat_template_version."
# Nova's limits, as openstacksdk names them.
_COMPUTE = {
    "instances": "instances",
    "cores": "total_cores",
    "ram": "total_ram",
    "server_groups": "server_groups",
}
_NETWORK = (
    *("networks", "subnets", "ports", "floating_ips"),
    *("security_groups", "security_group_rules"),
)


def is_named() -> bool:
    """Whether the environment names a cloud."""
    return bool(os.environ.get("OS_CLOUD") or os.environ.get("OS_AUTH_URL"))


def connect(name: str | None = None) -> "Cloud":
    """Log in to a cloud.

    :param name: of an entry in clouds.yaml; default: ``OS_CLOUD``, or the login in the
        other variables ``OS_*``.
    :raises CloudError: openstacksdk is not installed, there is no such entry, or
        Keystone refused the login.
    """
    try:
        import openstack
    except ImportError:
        raise CloudError(
            detail="openstacksdk, which asks the cloud, is not installed.",
            hint="Install it: pip install 'tacker-k8s-mgmt[cloud]'.",
        ) from None
    # What they warn of is in the errors, too.
    for logger in ("keystoneauth", "openstack"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    named = name or os.environ.get("OS_CLOUD", "")
    check(named)
    with _usable(named):
        _find(named)
        with asking("Keystone"):
            connection = openstack.connect(cloud=name, api_timeout=LIMIT)
            connection.authorize()
    return Cloud(connection)


@contextmanager
def _usable(name: str) -> Iterator[None]:
    """Raise what the libraries do with a login that they have no words for."""
    try:
        yield
    except CloudError:
        raise
    except Exception as error:
        # Not its text, which may be of a password.
        raise CloudError(
            detail=f"The login of the cloud {name or 'in OS_*'} cannot be used "
            f"({type(error).__name__}).",
            hint="Look at its entry in clouds.yaml, and at the variables OS_*.",
        ) from error


def _find(name: str) -> None:
    """Look for a cloud in the files; nothing is looked for without a name.

    :raises CloudError: it is not there, or a file cannot be read.
    """
    from openstack.config import OpenStackConfig
    from openstack.exceptions import ConfigException

    where = "clouds.yaml is looked for here, in ~/.config/openstack and /etc/openstack."
    try:
        known = OpenStackConfig().get_cloud_names() if name else []
    except ConfigException as error:
        if "not found" not in str(error):
            raise CloudError(detail=f"{_reason(error)}.", hint=where) from error
        # That which OS_CLOUD names: the files have no other.
        known = []
    if name and name not in known:
        listed = ", ".join(sorted({*known} - _OF_NO_FILE)) or "none"
        raise CloudError(
            detail=f"No clouds.yaml has a cloud {name} (there are: {listed}).",
            hint=where,
        )


@contextmanager
def asking(service: str) -> Iterator[None]:
    """Raise all errors of both libraries as one of ours."""
    from keystoneauth1.exceptions import ClientException, EndpointNotFound
    from openstack.exceptions import (
        DuplicateResource,
        SDKException,
        ServiceDisabledException,
    )

    try:
        yield
    # openstacksdk 4.22 raises the second where 4.18 raises the first.
    except (EndpointNotFound, ServiceDisabledException):
        raise CloudError(detail=f"The cloud's catalogue has no {service}.") from None
    except DuplicateResource as error:
        raise CloudError(
            detail=f"{service}: {str(error).rstrip('.')}.", hint="Name it by its id."
        ) from error
    except (SDKException, ClientException) as error:
        raise CloudError(
            detail=f"{service} does not answer as it should: {_reason(error)}.",
            hint="Look at the login in clouds.yaml or OS_*, and at the service.",
        ) from error


def _reason(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return " ".join(text.split())[:300].rstrip(".")


class Cloud:
    """A cloud as one user sees it in one project.

    Each method raises ``CloudError`` if the service is absent, refuses or is silent.

    :param connection: openstacksdk's.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def auth_url(self) -> str:
        """Keystone's address, as the login has it."""
        return str(self._connection.config.auth.get("auth_url", ""))

    @property
    def project(self) -> str:
        """Name of the project."""
        return str(self._connection.current_project.name or "")

    @property
    def domain(self) -> str:
        """Name of the project's domain; "" if the token does not tell."""
        return str(self._access.project_domain_name or "")

    @property
    def identity_urls(self) -> frozenset[str]:
        """Keystone's addresses: that of the login, and those in the catalogue."""
        every = self._access.service_catalog.get_urls(service_type="identity")
        return frozenset({self.auth_url, *map(str, every)})

    @property
    def _access(self) -> Any:
        session = self._connection.session
        return session.auth.get_access(session)

    # Glance

    def images(self) -> list[Image]:
        """All images that the project may use."""
        with asking("Glance"):
            every = self._connection.image.images(status="active")
            return sorted(map(_image, every), key=lambda image: image.name)

    def image(self, name: str) -> Image | None:
        """The image of this name or id."""
        with asking("Glance"):
            found = self._connection.image.find_image(name)
        return _image(found) if found else None

    # Nova

    def flavors(self) -> list[Flavor]:
        """All flavours, the smallest first."""
        with asking("Nova"):
            every = self._connection.compute.flavors(get_extra_specs=False)
            return sorted(map(_flavor, every), key=lambda one: (one.ram, one.vcpus))

    def flavor(self, name: str) -> Flavor | None:
        """The flavour of this name or id."""
        with asking("Nova"):
            found = self._connection.compute.find_flavor(name)
        return _flavor(found) if found else None

    def keypairs(self) -> list[str]:
        """The names of the user's key pairs; no other user sees them."""
        with asking("Nova"):
            return sorted(pair.name for pair in self._connection.compute.keypairs())

    def servers(self) -> list[Server]:
        """The servers of the project."""
        with asking("Nova"):
            return [_server(one) for one in self._connection.compute.servers()]

    def compute_quotas(self) -> Quotas:
        """Instances, cores, ram (MiB) and server groups."""
        with asking("Nova"):
            limits = self._connection.compute.get_limits().absolute
        return {
            name: Quota(int(limits[word]), int(limits[f"{word}_used"] or 0))
            for name, word in _COMPUTE.items()
            if limits[word] is not None
        }

    # Neutron

    def networks(self) -> list[Network]:
        """All networks that the project sees."""
        with asking("Neutron"):
            every = list(self._connection.network.networks())
            subnets = self._subnets()
        found = [self._network(network, subnets) for network in every]
        return sorted(found, key=lambda network: network.name)

    def network(self, name: str) -> Network | None:
        """The network of this name or id."""
        with asking("Neutron"):
            found = self._connection.network.find_network(name)
            subnets = self._subnets(network_id=found.id) if found else {}
        return self._network(found, subnets) if found else None

    def _subnets(self, **query: str) -> dict[str, list[Subnet]]:
        found: dict[str, list[Subnet]] = {}
        for one in self._connection.network.subnets(**query):
            subnet = Subnet(one.name or one.id, one.cidr, one.gateway_ip or "")
            found.setdefault(one.network_id, []).append(subnet)
        return found

    def _network(self, one: Any, subnets: dict[str, list[Subnet]]) -> Network:
        own = one.project_id in (None, "", self._connection.current_project_id)
        return Network(
            one.id,
            one.name or one.id,
            tuple(subnets.get(one.id, ())),
            is_up=bool(one.is_admin_state_up),
            is_external=bool(one.is_router_external),
            is_open=bool(one.is_shared) or own or "admin" in self._access.role_names,
            port_security=one.is_port_security_enabled,
        )

    def network_extensions(self) -> frozenset[str]:
        """The aliases of Neutron's extensions."""
        with asking("Neutron"):
            every = self._connection.network.extensions()
            return frozenset(str(one.alias) for one in every)

    def network_quotas(self) -> Quotas:
        """Networks, subnets, ports, floating IPs, security groups and their rules."""
        with asking("Neutron"):
            project = self._connection.current_project_id
            details = self._connection.network.get_quota(project, details=True)
        return {
            name: Quota(
                int(details[name]["limit"]),
                int(details[name]["used"]) + int(details[name].get("reserved", 0)),
            )
            for name in _NETWORK
            if details[name]
        }

    # Cinder

    def volume_quotas(self) -> Quotas:
        """Volumes, and their gigabytes."""
        with asking("Cinder"):
            limits = self._connection.block_storage.get_limits().absolute
        return {
            "volumes": Quota(
                int(limits.max_total_volumes), int(limits.total_volumes_used)
            ),
            "gigabytes": Quota(
                int(limits.max_total_volume_gigabytes), int(limits.total_gigabytes_used)
            ),
        }

    # Heat and Tacker

    def heat(self) -> Heat:
        """What Heat reads and makes."""
        with asking("Heat"):
            versions = self._get("orchestration", "/template_versions")
            types = self._get("orchestration", "/resource_types")
        every = [str(one["version"]) for one in versions["template_versions"]]
        read = [v.removeprefix(_TEMPLATE) for v in every if v.startswith(_TEMPLATE)]
        return Heat(
            frozenset(read),
            frozenset(
                str(one["resource_type"] if isinstance(one, dict) else one)
                for one in types["resource_types"]
            ),
        )

    def vims(self) -> list[Vim]:
        """The VIMs of Tacker's v1 API that the project sees."""
        with asking("Tacker"):
            # Tacker's paths begin at the catalogue's address; the one that openstacksdk
            # discovers has the version already.
            address = self._connection.endpoint_for(_TACKER)
            every = self._get(_TACKER, "/v1.0/vims.json", address)["vims"]
        return [
            Vim(
                str(one["name"]),
                str(one["type"]),
                bool(one.get("is_default")),
                str(one.get("auth_url", "")),
                str((one.get("vim_project") or {}).get("name", "")),
                str((one.get("vim_project") or {}).get("project_domain_name", "")),
                str(one.get("id", "")),
            )
            for one in every
        ]

    def tacker_address(self) -> str:
        """Where Tacker's paths begin, as the catalogue has it."""
        with asking("Tacker"):
            address = self._connection.endpoint_for(_TACKER)
        if not address:
            raise CloudError(detail="The cloud's catalogue has no Tacker.")
        return str(address).rstrip("/")

    def send(self, method: str, url: str, **more: Any) -> Any:
        """Send a request with the token; the response, its body not yet read.

        No redirection is followed: the token is for this address alone.

        :param more: keyword arguments of keystoneauth's session.
        :raises keystoneauth1.exceptions.ClientException: no response, or no token.
        """
        return self._connection.session.request(
            url,
            method,
            raise_exc=False,
            redirect=False,
            log=False,
            stream=True,
            timeout=LIMIT,
            **more,
        )

    def _get(self, service: str, path: str, address: str | None = None) -> Any:
        """A document of a service that openstacksdk has no words for.

        :param address: of the service; default: what openstacksdk discovers.
        """
        from openstack import exceptions

        client = self._connection.config.get_session_client(service)
        accept = {"Accept": "application/json"}
        answer = client.get(path, headers=accept, endpoint_override=address)
        exceptions.raise_from_response(answer)
        return answer.json()


def _image(one: Any) -> Image:
    return Image(
        one.id,
        one.name or one.id,
        one.status,
        one.os_distro or "",
        one.os_admin_user or "",
        one.min_disk or 0,
        one.min_ram or 0,
    )


def _server(one: Any) -> Server:
    networks = mapping(one.addresses).values()
    every = [address for listed in networks for address in sequence(listed)]
    addresses = tuple(str(mapping(address).get("addr", "")) for address in every)
    return Server(str(one.id), str(one.name or one.id), addresses)


def _flavor(one: Any) -> Flavor:
    return Flavor(one.id, one.name, one.vcpus, one.ram, one.disk)
