# SPDX-License-Identifier: Apache-2.0
"""All resources of a Heat stack and of its nested stacks, in two or three requests.

The number of requests does not depend on the number of VMs: the first lists the tree,
the second the attributes of Neutron resources, an optional third those of servers.
Heat's engine matches the type filter as a substring (its ``list_stack_resources``), so
one filter covers ports and floating IPs.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.topology.stack_resources import StackResource

NESTED_DEPTH = 5  # Heat's own default limit, max_nested_stack_depth
_LIMIT = 60.0  # seconds for each answer
_RETRIES = 2
_RETRIED = (429, 500, 502, 503, 504)
_NETWORK_TYPES = "OS::Neutron"
_SERVER_TYPE = "OS::Nova::Server"
_WITH_ADDRESS = ("OS::Neutron::Port", "OS::Neutron::FloatingIP")


def set_limits(adapter: Any) -> None:
    """Limit the time for answers of Heat and, for tokens, of Keystone.

    Failed requests are sent again, so use this for idempotent requests only.

    :param adapter: keystoneauth's, which heatclient takes in place of a session.
    """
    adapter.session.timeout = _LIMIT
    adapter.connect_retries = adapter.status_code_retries = _RETRIES
    adapter.retriable_status_codes = _RETRIED


def list_resources(
    resources_api: Any, stack_id: str, servers: bool = False
) -> tuple[StackResource, ...]:
    """Return all resources of a stack and of the stacks nested in it.

    :param resources_api: heatclient's resource manager.
    :param servers: include the attributes of servers.
    :raises RemoteError: Heat failed; the cause is chained.
    """
    optional = (_SERVER_TYPE,) if servers else ()
    try:
        items = list(resources_api.list(stack_id, nested_depth=NESTED_DEPTH))
        tree = [_resource(item) for item in items]
        identity = _identity(items, stack_id)
        listed = {
            _key(_resource(item)): _attributes(item)
            for kind in (_NETWORK_TYPES, *optional)
            for item in resources_api.list(
                identity, nested_depth=NESTED_DEPTH, type=kind, with_detail=True
            )
        }

        def attributes(resource: StackResource) -> dict[str, Any]:
            known = listed.get(_key(resource), {})
            if known or not resource.complete:
                return known
            # A Heat without `with_detail` lists resources without their attributes.
            return _attributes(resources_api.get(*_key(resource)))

        return tuple(
            replace(resource, attributes=attributes(resource))
            if resource.type in (*_WITH_ADDRESS, *optional)
            else resource
            for resource in tree
        )
    except Exception as error:
        # Any error of the client, its session or the token renewal.
        raise unreadable(stack_id, error) from error


def unreadable(stack_id: str, error: Exception) -> errors.RemoteError:
    """Return the error for a stack that Heat or Keystone failed to return."""
    return errors.RemoteError(
        detail=f"The resources of Heat stack {stack_id} could not be read: "
        f"{error or type(error).__name__}.",
        hint="Check that Heat answers with the VIM's credentials.",
    )


def _resource(item: Any) -> StackResource:
    links = {link["rel"]: link["href"] for link in item.links}
    return StackResource(
        stack_id=_last_part(links["stack"]),
        name=item.resource_name,
        type=item.resource_type,
        physical_id=item.physical_resource_id or "",
        status=item.resource_status,
        nested_stack_id=_last_part(links.get("nested", "")),
        created=getattr(item, "creation_time", None) or "",
    )


def _identity(items: Iterable[Any], stack_id: str) -> str:
    """Name and id of a stack: Heat redirects a request that has the id alone."""
    for item in items:
        place = next(link["href"] for link in item.links if link["rel"] == "stack")
        *_, name, its_id = place.rstrip("/").split("/")
        if its_id == stack_id:
            return f"{name}/{stack_id}"
    return stack_id


def _attributes(item: Any) -> dict[str, Any]:
    return getattr(item, "attributes", None) or {}


def _key(resource: StackResource) -> tuple[str, str]:
    return resource.stack_id, resource.name


def _last_part(href: str) -> str:
    """Return the id from ``.../stacks/<name>/<id>``."""
    return href.rstrip("/").rpartition("/")[2]
