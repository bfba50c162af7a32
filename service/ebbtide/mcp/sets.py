"""The sets of MCP tools, and the choice of a request: `?tools=` or the header `X-Ebbtide-Tools`."""

from __future__ import annotations

from typing import Literal, get_args

SetName = Literal["default", "statements", "search-fetch", "graph"]
SETS: tuple[SetName, ...] = get_args(SetName)
