"""A Heat stack with everything nested in it, in two listings.

However many VMs a stack has, two requests tell all: the tree of resources, and the
attributes of those of Neutron; a third one tells Nova's, where they are wanted. Heat's
engine filters by type as "contains" (see its ``list_stack_resources``), so one filter
covers ports and floating IPs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.topology.heat_stack import StackResource

NESTED_DEPTH = 5  # Heat's own default limit, max_nested_stack_depth
_LIMIT = 60.0  # seconds for each answer
_AGAIN = 2  # times, after what _MAY_PASS and where nothing answers
_MAY_PASS = (429, 500, 502, 503, 504)
_NETWORK_TYPES = "OS::Neutron"
_SERVER_TYPE = "OS::Nova::Server"
_WITH_ADDRESS = ("OS::Neutron::Port", "OS::Neutron::FloatingIP")


class Resources(Protocol):
    """What is needed of heatclient's manager of resources."""

    def list(self, stack_id: str, **kwargs: Any) -> Iterable[Any]: ...

    def get(self, stack_id: str, resource_name: str) -> Any: ...


def set_limits(adapter: Any) -> None:
    """Limit the time for answers of Heat and, for tokens, of Keystone.

    Requests that fail are sent again, so this is for those that can be repeated.

    :param adapter: keystoneauth's, which heatclient takes in place of a session.
    """
    adapter.session.timeout = _LIMIT
    adapter.connect_retries = _AGAIN
    adapter.status_code_retries = _AGAIN
    adapter.retriable_status_codes = _MAY_PASS


def list_resources(
    resources_api: Resources, stack_id: str, servers: bool = False
) -> tuple[StackResource, ...]:
    """Return all resources of a stack and of the stacks nested in it.

    :param servers: tell the attributes of servers, too.
    :raises RemoteError: Heat did not answer as it should; the cause is chained.
    """
    try:
        tree = [
            _resource(item)
            for item in resources_api.list(stack_id, nested_depth=NESTED_DEPTH)
        ]
        attributes = {
            _key(_resource(item)): _attributes(item)
            for kind in (_NETWORK_TYPES, *([_SERVER_TYPE] if servers else []))
            for item in resources_api.list(
                stack_id, nested_depth=NESTED_DEPTH, type=kind, with_detail=True
            )
        }
        detailed = (*_WITH_ADDRESS, *([_SERVER_TYPE] if servers else []))
        return tuple(
            replace(one, attributes=_found(resources_api, one, attributes))
            if one.type in detailed
            else one
            for one in tree
        )
    except Exception as error:
        # Whatever the client, its session or the token's renewal may raise.
        raise unreadable(stack_id, error) from error


def unreadable(stack_id: str, error: Exception) -> errors.RemoteError:
    """The error for a stack that Heat, or Keystone before it, does not show."""
    return errors.RemoteError(
        detail=f"The resources of Heat stack {stack_id} could not be read: "
        f"{error or type(error).__name__}.",
        hint="Check that Heat answers with the VIM's credentials.",
    )


def _found(
    resources_api: Resources,
    one: StackResource,
    attributes: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Mapping[str, Any]:
    """Return a resource's attributes, by a request of its own if need be.

    A Heat that does not know ``with_detail`` lists without attributes.
    """
    known = attributes.get(_key(one), {})
    if known or not one.complete:
        return known
    return _attributes(resources_api.get(one.stack_id, one.name))


def _resource(item: Any) -> StackResource:
    links = {link["rel"]: link["href"] for link in item.links}
    return StackResource(
        stack_id=_last_part(links["stack"]),
        name=item.resource_name,
        type=item.resource_type,
        physical_id=item.physical_resource_id or "",
        status=item.resource_status,
        nested_stack_id=_last_part(links.get("nested", "")),
    )


def _attributes(item: Any) -> Mapping[str, Any]:
    return getattr(item, "attributes", None) or {}


def _key(one: StackResource) -> tuple[str, str]:
    return one.stack_id, one.name


def _last_part(href: str) -> str:
    """Return the id from ``.../stacks/<name>/<id>``."""
    return href.rstrip("/").rpartition("/")[2]
