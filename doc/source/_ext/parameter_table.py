# SPDX-License-Identifier: Apache-2.0
"""The directive ``parameter-table``: the parameters as their model describes them."""

from collections.abc import Iterator
from typing import get_origin

from docutils import nodes
from docutils.parsers.rst import Directive
from entries import entry
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sphinx.application import Sphinx

from tacker_k8s_mgmt.request import cnf_exposure, reader
from tacker_k8s_mgmt.request.operator_server import LEFT_TO_OPERATOR
from tacker_k8s_mgmt.request.secrets import attributes
from tacker_k8s_mgmt.request.structure import Structure

_MODELS: dict[str, type[Structure]] = {
    reader.ATTRIBUTE: reader.ClusterRequest,
    cnf_exposure.ATTRIBUTE: cnf_exposure.ExposureParams,
}


def rows(
    model: type[BaseModel], prefix: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """Attribute, cardinality, default and text of every parameter, depth first."""
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        attribute = f"{prefix}{field.alias or name}"
        inner = structure(field.annotation)
        text = field.description or ""
        yield attribute, cardinality(field), default(field, text, inner), text
        if inner is not None:
            yield from rows(inner, f"{attribute}.")


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
    return "no default" if value in (None, (), {}) else f"default {value}"


def structure(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation names: alone, in a list, or as one of two."""
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


class ParameterTable(Directive):
    """A definition list with one entry for each parameter.

    Its argument is the attribute of ``additionalParams`` with them; default: that
    of clusters.
    """

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The list."""
        model = _MODELS[self.arguments[0] if self.arguments else reader.ATTRIBUTE]
        items = []
        secrets = {
            ".".join(part for part in location if part != "*")
            for location, _ in attributes(model)
        }
        env = self.state.document.settings.env
        for attribute, *remarks, description in rows(model):
            if attribute in secrets:
                remarks.append("secret")
            remark = ", ".join(filter(None, remarks))
            items.append(entry(env, "parameter", attribute, remark, description))
        return [nodes.definition_list("", *items)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("parameter-table", ParameterTable)
    return {"parallel_read_safe": True}
