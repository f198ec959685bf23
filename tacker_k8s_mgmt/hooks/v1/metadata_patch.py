# SPDX-License-Identifier: Apache-2.0
"""The request that modifies a VNF instance, which Tacker's v1 API passes to no hook.

Tacker 16 stores it with the operation, as the text of a Python value
(``VnfLcmController.update``). Where the API shows the operation it expects JSON, and
answers with an error 500 (``views/vnf_lcm.py``), so the hook corrects the text.
"""

import ast
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session
from tacker import context as tacker_context
from tacker import objects
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import api, models

from tacker_k8s_mgmt.hooks.v1 import database, requests
from tacker_k8s_mgmt.hooks.v1.context import V1Hook

_UNDER_WAY = (
    ("operation", "==", "MODIFY_INFO"),
    ("operation_state", "==", "PROCESSING"),
)


def read(hook: V1Hook) -> Mapping[str, Any]:
    """``metadata`` of the request that modifies the VNF instance now.

    The hook gets a context of its own. After a failure Tacker changes a row in the
    session of the request's, and does not commit (``revert_update_lcm``): the row would
    be locked as long as anything refers to that context. So that session commits each
    statement by itself from now on.
    """
    database.release(hook.context)
    engine = db_api.get_engine().execution_options(isolation_level="AUTOCOMMIT")
    hook.context._session = Session(engine)
    own = tacker_context.Context.from_dict(hook.context.to_dict())
    hook.context = own
    hook.instance = objects.VnfInstance.get_by_id(own, hook.instance.id)
    rows = requests.occurrences(own, hook.instance.id, *_UNDER_WAY)
    latest = max(rows, key=lambda row: row.start_time, default=None)
    if latest is None or not latest.operation_params:
        return {}
    try:
        body = json.loads(latest.operation_params)
    except ValueError:
        body = ast.literal_eval(latest.operation_params)
        _store(own, latest.id, json.dumps(body))
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _store(context: Any, operation_id: str, params: str) -> None:
    with db_api.context_manager.writer.using(context):
        rows = api.model_query(context, models.VnfLcmOpOccs).filter_by(id=operation_id)
        rows.update({"operation_params": params}, synchronize_session=False)
