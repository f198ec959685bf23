# SPDX-License-Identifier: Apache-2.0
"""What Python imports at its start in Tacker's services and in their children.

Tacker's v2 API parses all YAML of a package several times in an operation, each time
for half a second without libyaml.
"""

import sys

# The system's Python, which runs the host command, has no PyYAML.
if sys.prefix != sys.base_prefix:
    import yaml

    # safe_load() looks it up at each call: the same loader with another parser.
    yaml.SafeLoader = yaml.CSafeLoader  # type: ignore[assignment,misc]
