"""What the script of Tacker's v2 API reads of Tacker's configuration.

The script is a process of its own, to which Tacker hands no configuration.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from oslo_config import cfg
from oslo_log import log

from tacker_k8s_mgmt import config, errors

#: Environment variable with the paths of configuration files, joined with ``:``.
VARIABLE = "TACKER_K8S_MGMT_CONFIG"
#: The script's log, below the driver's state directory.
LOG_FILE = "k8s-mgmt.log"
_PROJECT = "tacker"
_CONDUCTOR = "tacker-conductor"


def read() -> cfg.ConfigOpts:
    """Tacker's configuration: our group, and the directory for state.

    What Tacker's own code needs, such as its client of Heat, it finds in its own place.

    :raises TackerError: naming the file that cannot be read.
    """
    named = [path for path in os.environ.get(VARIABLE, "").split(":") if path]
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.register_opt(cfg.StrOpt("state_path", default="/var/lib/tacker"))
    log.register_options(conf)
    with _told(named):
        for one in (conf, cfg.CONF):
            one(
                args=[],
                project=_PROJECT,
                prog=_CONDUCTOR,
                default_config_files=named or None,
                default_config_dirs=[] if named else None,
            )
        for name in conf[config.GROUP]:
            # A value is looked at when somebody asks for it.
            conf[config.GROUP][name]
    return conf


@contextmanager
def _told(named: Sequence[str]) -> Iterator[None]:
    try:
        yield
        return
    except cfg.ConfigFilesNotFoundError as error:
        reason = f"there is no {', '.join(error.config_files)}"
    except cfg.ConfigFilesPermissionDeniedError as error:
        reason = f"{', '.join(error.config_files)} may not be read"
    except cfg.ConfigFileParseError as error:
        # Its text quotes the line.
        reason = f"{error.config_file} cannot be understood"
    except (cfg.Error, ValueError) as error:
        reason = str(error).rstrip(".")
    source = f", which {VARIABLE} names" if named else ""
    raise errors.TackerError(
        detail=f"Tacker's configuration cannot be used: {reason}{source}.",
        hint="The conductor's user must be able to read it. It is looked for where "
        f"Tacker looks, or where {VARIABLE} says in the conductor's environment.",
    )


def log_to(conf: cfg.ConfigOpts, path: str) -> None:
    """Have everything that is logged in this process written to a file."""
    # Whoever logs first after the file was rotated away makes it anew.
    os.umask(0o077)
    for name, value in (
        ("log_file", path),
        ("log_dir", None),
        ("log_config_append", None),
        ("use_stderr", False),
    ):
        conf.set_override(name, value)
    log.setup(conf, _PROJECT)
    logging.captureWarnings(True)
