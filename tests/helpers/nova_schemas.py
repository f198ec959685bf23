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
_MODULES = ("flavors", "keypairs", "limits", "servers")


def main(directory: str) -> None:
    """Print them."""
    for name in (*_EMPTY, "nova.api.openstack.compute", _SCHEMAS, "nova.objects"):
        package = types.ModuleType(name)
        package.__path__ = [f"{directory}/{name.replace('.', '/')}"]
        sys.modules[name] = package
    # Of these the schemas need a function and two numbers.
    texts, tags = types.ModuleType("nova.i18n"), types.ModuleType("nova.objects.tag")
    instance = types.ModuleType("nova.objects.instance")
    vars(texts)["_"] = str
    vars(tags)["MAX_TAG_LENGTH"] = 60
    vars(instance)["MAX_TAG_COUNT"] = 50
    for module in (texts, tags, instance):
        sys.modules[module.__name__] = module
    vars(sys.modules["nova.objects"]).update(tag=tags, instance=instance)
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
