"""Read-only access to a VNF instance, for commands of an operator.

Their process is no service of Tacker. It reads the conductor's configuration and
database as the conductor does, and needs no message queue.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# Registers the conductor's options, such as those for Barbican.
import tacker.cmd.conductor  # noqa: F401
from oslo_config import cfg

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.v1 import lookup as v1_lookup
from tacker_k8s_mgmt.hooks.v2 import lookup as v2_lookup
from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.remote.readonly_site import Instance, NoSuchInstance


@contextmanager
def opened(vnf_id: str, config_files: Sequence[str] = ()) -> Iterator[Instance]:
    """Find a VNF instance, of either API.

    :param config_files: Tacker's; none: those that the conductor finds by itself.
    :raises TackerError: Tacker cannot be asked, or has no such cluster.
    :raises ParamError: this release does not accept its parameters.
    """
    _configure(config_files)
    try:
        record = _record(vnf_id)
    except NoSuchInstance:
        raise errors.TackerError(
            detail=f"Tacker has no VNF instance {vnf_id}, neither of its v1 nor of its "
            "v2 API.",
            hint="Look at the ids that `openstack vnflcm list` shows.",
        ) from None
    except Exception as error:
        # Tacker's plugins and the drivers of databases raise many kinds.
        redact = redaction.Redactor(
            redaction.in_url(cfg.CONF.database.connection or "")
        )
        raise errors.TackerError(
            detail=f"Tacker's database could not be read: {redact(_line(error))}.",
            hint="Look at [database] connection in tacker.conf.",
        ) from None
    instance = record.opened()
    with instance.view:
        yield instance


def _record(vnf_id: str) -> v1_lookup.Record | v2_lookup.Record:
    try:
        return v1_lookup.Record(vnf_id)
    except NoSuchInstance:
        return v2_lookup.Record(vnf_id)


def _configure(files: Sequence[str]) -> None:
    args = [word for file in files for word in ("--config-file", file)]
    try:
        cfg.CONF(args=args, project="tacker", prog="tacker-conductor")
    except cfg.Error as error:
        raise errors.TackerError(
            detail=f"Tacker's configuration could not be read: {_line(error)}.",
            hint="It takes a user who may read it, such as the conductor's.",
        ) from error
    if not cfg.CONF.config_file:
        raise errors.TackerError(
            detail="There is no tacker.conf where Tacker looks for it.",
            hint="Name it with --config-file.",
        )
    config.register(cfg.CONF)
    # A service waits for its database; a command fails at once.
    cfg.CONF.set_override("max_retries", 0, group="database")


def _line(error: Exception) -> str:
    """The first line; the drivers of databases add more."""
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
