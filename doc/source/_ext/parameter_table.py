# SPDX-License-Identifier: Apache-2.0
"""The directive ``parameter-table``: the parameters as their models describe them."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_origin

from docutils import nodes
from entries import entry
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tacker_k8s_mgmt.request import cnf_exposure, reader
from tacker_k8s_mgmt.request.operator_server import LEFT_TO_OPERATOR
from tacker_k8s_mgmt.request.secrets import attributes
from tacker_k8s_mgmt.request.structure import Structure

_MODELS: dict[str, type[Structure]] = {
    reader.ATTRIBUTE: reader.ClusterRequest,
    cnf_exposure.ATTRIBUTE: cnf_exposure.ExposureParams,
}
#: An example of each structure that is not part of another one's.
EXAMPLES = Path(__file__).resolve().parent.parent / "parameter-examples.json"
#: The guides of structures, and so of the structures in them.
_GUIDES = {
    "ansible": "ansible-server",
    "bastion": "bastion",
    "master_node": "high-availability",
    "worker_node": "scale",
    "proxy": "instantiate",
    "external_lb_param": "load-balancer",
    "cluster": "options",
    "private_registry_connection_info": "options",
    "drain": "scale",
    "tenants": "tenants",
    "applications": "applications",
}
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "map",
}
_FORMATS = {
    "ipv4": "IP address",
    "ipv6": "IP address",
    "ipv4network": "network",
    "ipv6network": "network",
}
#: What is a list in its model, and a text in a request.
_TEXTS = ("proxy.no_proxy",)
_ROLE = re.compile(r":\w+:`[.~]*(?:\w+\.)*(\w+)`")


def fields(
    model: type[BaseModel], prefix: str = ""
) -> Iterator[tuple[str, str, FieldInfo]]:
    """Name in the models' schema, dotted attribute and field of every parameter."""
    for name, field in model.model_fields.items():
        if not field.exclude:
            alias = field.alias or name
            yield alias, f"{prefix}{alias}", field


def cardinality(field: FieldInfo) -> str:
    """How often an attribute, or an item of one that is a list, may be there."""
    if get_origin(field.annotation) is tuple:
        return "1..N" if field.is_required() else "0..N"
    needed = field.is_required() and LEFT_TO_OPERATOR not in field.metadata
    return "1" if needed else "0..1"


def default(field: FieldInfo, text: str, inner: type[BaseModel] | None) -> str:
    """What is used if an attribute is not given, unless its text states that.

    :param inner: the model of a structure, whose attributes have defaults of their own.
    """
    if field.is_required() or inner is not None or "Default:" in text:
        return ""
    value = field.get_default(call_default_factory=True)
    if value in (None, (), {}):
        return ""
    return f"default {str(value).lower() if isinstance(value, bool) else value}"


def structure(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation names: alone, in a list, or as one of two."""
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def kind(schema: Mapping[str, Any]) -> str:
    """The type of a value in words, by its JSON schema."""
    if "anyOf" in schema:
        known = [kind(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(filter(None, known)))
    if "$ref" in schema:
        return "structure"
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list: {kind(schema['items'])}"
    name = _FORMATS.get(
        schema.get("format", ""), _TYPES.get(schema.get("type", ""), "")
    )
    if "maximum" in schema and "minimum" in schema:
        return f"{name}, {schema['minimum']} to {schema['maximum']}"
    return name


def title(model: type[BaseModel]) -> str:
    """What a structure is: the first paragraph of its model's description."""
    text = " ".join((model.__doc__ or "").split("\n\n")[0].split())
    return _ROLE.sub(r"\1", text)


class ParameterTable(SphinxDirective):
    """A section for each structure, with an entry for each of its attributes.

    With an argument, another attribute of ``additionalParams`` than that of clusters:
    one list of all entries, without sections.
    """

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The sections, or the list."""
        model = _MODELS[self.arguments[0] if self.arguments else reader.ATTRIBUTE]
        self._secrets = {
            ".".join(part for part in location if part != "*")
            for location, _ in attributes(model)
        }
        self._examples = json.loads(EXAMPLES.read_text())
        schema = model.model_json_schema(by_alias=True)
        self._schemas = {"": schema, **schema["$defs"]}
        if self.arguments:
            return [nodes.definition_list("", *self._all(model, schema))]
        return [self._entries(model, schema, ""), *self._sections(model, schema, "")]

    def _entries(
        self, model: type[BaseModel], schema: Mapping[str, Any], prefix: str
    ) -> nodes.definition_list:
        items = [
            self._entry(attribute, field, schema["properties"][alias])
            for alias, attribute, field in fields(model, prefix)
        ]
        return nodes.definition_list("", *items)

    def _all(
        self, model: type[BaseModel], schema: Mapping[str, Any], prefix: str = ""
    ) -> Iterator[nodes.Node]:
        """Entries of a model and of the structures in it, depth first."""
        for alias, attribute, field in fields(model, prefix):
            own = schema["properties"][alias]
            yield self._entry(attribute, field, own)
            if inner := structure(field.annotation):
                yield from self._all(inner, self._inner(own), f"{attribute}.")

    def _entry(
        self, attribute: str, field: FieldInfo, schema: Mapping[str, Any]
    ) -> nodes.Node:
        text = field.description or ""
        remarks = [
            "text" if attribute in _TEXTS else kind(schema),
            cardinality(field),
            default(field, text, structure(field.annotation)),
            "secret" if attribute in self._secrets else "",
        ]
        remark = ", ".join(filter(None, remarks))
        return entry(self.env, "parameter", attribute, remark, text)

    def _inner(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema of the structure in that of an attribute."""
        for one in (schema, schema.get("items", {}), *schema.get("anyOf", ())):
            if "$ref" in one:
                found: Mapping[str, Any] = self._schemas[one["$ref"].split("/")[-1]]
                return found
        raise self.error(f"no structure in {schema}")

    def _sections(
        self, model: type[BaseModel], schema: Mapping[str, Any], prefix: str
    ) -> Iterator[nodes.section]:
        for alias, attribute, field in fields(model, prefix):
            if inner := structure(field.annotation):
                own = self._inner(schema["properties"][alias])
                yield self._section(attribute, inner, own)

    def _section(
        self, path: str, model: type[BaseModel], schema: Mapping[str, Any]
    ) -> nodes.section:
        anchor = re.sub(r"[._]", "-", f"structure-{path}")
        section = nodes.section("", nodes.title("", "", nodes.literal(text=path)))
        section["ids"] = [anchor]
        section["names"] = [anchor]
        text = title(model)
        if guide := _GUIDES.get(path):
            text = f"{text} Guide: :doc:`{guide}`."
        section += self.parse_text_to_nodes(text)
        if path in self._examples:
            key = path.rpartition(".")[2]
            code = json.dumps({key: self._examples[path]}, indent=2)[2:-2]
            lines = "\n".join(line[2:] for line in code.splitlines())
            section += nodes.literal_block(lines, lines, language="json")
        section += self._entries(model, schema, f"{path}.")
        section += list(self._sections(model, schema, f"{path}."))
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("parameter-table", ParameterTable)
    return {"parallel_read_safe": True}
