"""Imports and schemas that the fork server prepares for every forked process (`tests/support/forks.py`).

Nothing here may start a thread or a gRPC server, because a fork copies neither.
"""

import httpx  # noqa: F401
import rjieba  # noqa: F401
import snowballstemmer  # noqa: F401
import uvloop  # noqa: F401

import tests.support.operations  # noqa: F401
from ebbtide.daemon import import_deferred_modules
from ebbtide.rest.routes import routes
from ebbtide.verbs.catalogue import CATALOGUE

import_deferred_modules()
routes()
for operation in CATALOGUE:
    for model in (operation.request, operation.response):
        if model is not None:
            model.model_rebuild()
