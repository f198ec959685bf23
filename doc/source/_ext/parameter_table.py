"""The directive ``parameter-table``: the parameters as their model describes them."""

from collections.abc import Iterator
from typing import get_origin

from docutils import nodes
from docutils.parsers.rst import Directive
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sphinx.application import Sphinx

from tacker_k8s_mgmt.request import cnf_exposure, params, secret_fields
from tacker_k8s_mgmt.request.key_aliases import Structure

_MODELS: dict[str, type[Structure]] = {
    params.ATTRIBUTE: params.InstallParams,
    cnf_exposure.ATTRIBUTE: cnf_exposure.ExposureParams,
}


def rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Attribute, cardinality and description of every parameter, depth first."""
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        attribute = f"{prefix}{field.alias or name}"
        inner = structure(field.annotation)
        yield attribute, cardinality(field), field.description or ""
        if inner is not None:
            yield from rows(inner, f"{attribute}.")


def cardinality(field: FieldInfo) -> str:
    """How often an attribute, or an item of one that is a list, may be there."""
    if get_origin(field.annotation) is tuple:
        return "1..N" if field.is_required() else "0..N"
    return "1" if field.is_required() else "0..1"


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
        model = _MODELS[self.arguments[0] if self.arguments else params.ATTRIBUTE]
        items = []
        secrets = {
            ".".join(part for part in location if part != "*")
            for location, _ in secret_fields.attributes(model)
        }
        for attribute, cardinality, description in rows(model):
            term = nodes.term("", "", nodes.literal(text=attribute))
            kind = ", secret" if attribute in secrets else ""
            term += nodes.Text(f"  ({cardinality}{kind})")
            text = nodes.definition("", nodes.paragraph(text=description))
            items.append(nodes.definition_list_item("", term, text))
        return [nodes.definition_list("", *items)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("parameter-table", ParameterTable)
    return {"parallel_read_safe": True}
