# SPDX-License-Identifier: Apache-2.0
"""Parameters without their secrets, for the screen.

``model/redaction.py`` replaces the texts of secrets in log lines. Here the values
themselves are masked, so short secrets are, too, and nothing else changes. Of free-form
variables rather too much is masked.
"""

from typing import Any

from tacker_k8s_mgmt.model import urls
from tacker_k8s_mgmt.request import secret_fields
from tacker_k8s_mgmt.request.applications import Application, SourceFile
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_fields import Place


def masked(params: InstallParams, *, but_keys: bool = False) -> InstallParams:
    """A copy with stars in place of every secret.

    A proxy keeps its host, a private key that is a path stays one, and a URL of an
    application loses its query.

    :param but_keys: whether private keys stay unmasked.
    """

    def shown(place: Place, secret: Any) -> Any:
        is_key = but_keys and place.form.by_path
        is_named = place.is_variable and secret_fields.is_reference(secret)
        return secret if is_key or is_named else place.form.masked(secret)

    copy = secret_fields.changed(InstallParams, params, shown, whole=True)
    apps = tuple(map(_without_queries, copy.applications))
    # Unchanged values are not in the update: they still count as defaults.
    return copy.model_copy(update={"applications": apps} if apps else {})


def _without_queries(app: Application) -> Application:
    """An application, whose URLs have no query, which may hold a token."""

    def shown(file: SourceFile) -> SourceFile:
        url = urls.shown(file.url or "")
        return file.model_copy(update={"url": url}) if url else file

    found = {
        "chart": shown(app.chart) if app.chart else None,
        "manifests": tuple(map(shown, app.manifests)),
    }
    return app.model_copy(update={name: one for name, one in found.items() if one})
