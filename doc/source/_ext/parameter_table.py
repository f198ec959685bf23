"""The directive ``parameter-table``: the parameters as their model describes them."""

from collections.abc import Iterator

from docutils import nodes
from docutils.parsers.rst import Directive
from pydantic import BaseModel
from sphinx.application import Sphinx

from tacker_k8s_mgmt.cluster.params import InstallParams


def rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Attribute, cardinality and description of every parameter, depth first."""
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        attribute = f"{prefix}{field.alias or name}"
        cardinality = "1" if field.is_required() else "0..1"
        yield attribute, cardinality, field.description or ""
        inner = structure(field.annotation)
        if inner is not None:
            yield from rows(inner, f"{attribute}.")


def structure(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation names, alone or as an alternative to None."""
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


class ParameterTable(Directive):
    """A definition list with one entry for each parameter."""

    def run(self) -> list[nodes.Node]:
        """The list."""
        items = []
        for attribute, cardinality, description in rows(InstallParams):
            term = nodes.term("", "", nodes.literal(text=attribute))
            term += nodes.Text(f"  ({cardinality})")
            text = nodes.definition("", nodes.paragraph(text=description))
            items.append(nodes.definition_list_item("", term, text))
        return [nodes.definition_list("", *items)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("parameter-table", ParameterTable)
    return {"parallel_read_safe": True}
