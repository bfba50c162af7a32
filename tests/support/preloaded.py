"""Imports for the fork server, so that no forked process has to repeat them (`tests/support/forks.py`).

Imports only: nothing here may start a thread or a gRPC server, because a fork copies neither.
"""

import httpx  # noqa: F401
import opencc  # noqa: F401
import rjieba  # noqa: F401
import snowballstemmer  # noqa: F401
import uvloop  # noqa: F401

import tests.support.operations  # noqa: F401
