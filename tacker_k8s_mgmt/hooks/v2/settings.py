# SPDX-License-Identifier: Apache-2.0
"""The part of Tacker's configuration that the script of its v2 API reads.

The script is a process of its own, to which Tacker passes no configuration.
"""

import logging
import os

from oslo_config import cfg
from oslo_log import log

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.v2.process import Streams

#: Environment variable with the paths of configuration files, joined with ``:``.
VARIABLE = "TACKER_K8S_MGMT_CONFIG"
#: The script's log, below the driver's state directory.
LOG_FILE = "k8s-mgmt.log"
_PROJECT = "tacker"


def read() -> cfg.ConfigOpts:
    """Tacker's configuration: our group, and the directory for state.

    The options of Tacker's own code, such as its Heat client, are read into oslo's
    global object, where that code looks for them.

    :raises TackerError: naming the file that cannot be read.
    """
    paths = [path for path in os.environ.get(VARIABLE, "").split(":") if path]
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.register_opt(cfg.StrOpt("state_path", default="/var/lib/tacker"))
    log.register_options(conf)
    try:
        for options in (conf, cfg.CONF):
            options(
                args=[],
                project=_PROJECT,
                prog="tacker-conductor",
                default_config_files=paths or None,
                default_config_dirs=[] if paths else None,
            )
        for name in conf[config.GROUP]:
            # oslo checks a value on access.
            conf[config.GROUP][name]
        return conf
    except cfg.ConfigFilesNotFoundError as error:
        reason = f"there is no {', '.join(error.config_files)}"
    except cfg.ConfigFilesPermissionDeniedError as error:
        reason = f"{', '.join(error.config_files)} may not be read"
    except cfg.ConfigFileParseError as error:
        # Its text quotes the line.
        reason = f"{error.config_file} cannot be understood"
    except (cfg.Error, ValueError) as error:
        reason = str(error).rstrip(".")
    source = f", which {VARIABLE} names" if paths else ""
    raise errors.TackerError(
        detail=f"Tacker's configuration cannot be used: {reason}{source}.",
        hint="The conductor's user must be able to read it. It is looked for where "
        f"Tacker looks, or where {VARIABLE} says in the conductor's environment.",
    )


def begin(streams: Streams) -> cfg.ConfigOpts:
    """Read the configuration, and log as it says.

    :raises TackerError: it cannot be read, or the log not be written.
    """
    conf = read()
    path = f"{config.state_path(conf)}/{LOG_FILE}"
    try:
        streams.divert(path)
    except OSError as error:
        raise errors.TackerError(
            detail=f"The log {path} cannot be written: {error.strerror}.",
            hint="The conductor's user must be able to write there; see "
            "[k8s_mgmt] state_path in tacker.conf.",
        ) from None
    log_to(conf, path)
    return conf


def log_to(conf: cfg.ConfigOpts, path: str) -> None:
    """Write everything that this process logs to a file."""
    # After a rotation, the next process to log creates the file.
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
