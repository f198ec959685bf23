# SPDX-License-Identifier: Apache-2.0
"""Prints schemas of Nova's responses as JSON, by module and name.

A program of its own: it runs Nova's modules of schemas without the rest of Nova, whose
packages it replaces by empty ones. Its argument is the directory with Nova's package.
"""

import importlib
import json
import sys
import types

_SCHEMAS = "nova.api.openstack.compute.schemas"
_EMPTY = ("nova", "nova.api", "nova.api.validation", "nova.api.openstack")
_MODULES = ("flavors", "keypairs", "limits")


def main(directory: str) -> None:
    """Print them."""
    for name in (*_EMPTY, "nova.api.openstack.compute", _SCHEMAS, "nova.objects"):
        package = types.ModuleType(name)
        package.__path__ = [f"{directory}/{name.replace('.', '/')}"]
        sys.modules[name] = package
    # Of these the schemas need a function and a number.
    texts, tags = types.ModuleType("nova.i18n"), types.ModuleType("nova.objects.tag")
    vars(texts)["_"] = str
    vars(tags)["MAX_TAG_LENGTH"] = 60
    sys.modules |= {"nova.i18n": texts, "nova.objects.tag": tags}
    vars(sys.modules["nova.objects"])["tag"] = tags
    found = {
        name: {
            key: value
            for key, value in vars(
                importlib.import_module(f"{_SCHEMAS}.{name}")
            ).items()
            if "_response" in key
        }
        for name in _MODULES
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
