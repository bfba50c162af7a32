"""The bridge between an MCP client on standard input and output and the daemon's MCP server over HTTP.

Each line is a message of JSON-RPC. A request is sent to the daemon as it is, with the headers that the revision wants,
and its response is one line of output, with the id of the request. Nothing else is written to standard output.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, BinaryIO

import httpx

AT_ONCE = 8
"""Requests that are sent at the same time: a slow recall delays no other call."""

TIMEOUT_S = 60.0
REVISION = "io.modelcontextprotocol/protocolVersion"
"""Where a request of a revision without a handshake states its revision."""

NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that is repeated in the header `Mcp-Name`, by method."""

SERVER_ERROR = -32000
PARSE_ERROR = -32700

_PLAIN = re.compile(r"[ -~]++")


class Bridge:
    """Passes messages on to one URL and writes the responses."""

    def __init__(self, client: httpx.Client, url: str, output: BinaryIO) -> None:
        self._client = client
        self._url = url
        self._output = output
        self._lock = Lock()
        self._revision = ""
        """The revision that the handshake agreed on; empty without one."""

    def run(self, lines: Iterable[bytes]) -> None:
        """Pass on every message until the input ends, and wait for the responses."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for line in lines:
                if not line.strip():
                    continue
                try:
                    text = line.decode("utf-8-sig").strip()
                    message = json.loads(text)
                except (ValueError, RecursionError):
                    self._write(_error(None, PARSE_ERROR, "The line is no JSON."))
                    continue
                if isinstance(message, dict) and message.get("method") == "initialize":
                    # The messages after it need the revision.
                    self._pass_on(message, text)
                else:
                    pool.submit(self._pass_on, message, text)

    def _pass_on(self, message: Any, text: str) -> None:
        is_notification = isinstance(message, dict) and "method" in message and "id" not in message
        number = message.get("id") if isinstance(message, dict) else None
        try:
            response = self._client.post(self._url, content=text.encode(), headers=self._headers(message))
        except httpx.HTTPError as error:
            if not is_notification:
                self._write(
                    _error(number, SERVER_ERROR, f"The daemon does not answer: {type(error).__name__}.")
                )
            return
        if is_notification:
            return
        self._write(self._reply(message, number, response))

    def _headers(self, message: Any) -> dict[str, str]:
        """Return the headers that repeat parts of a message, so that they must agree with it."""
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if not isinstance(message, dict):
            return headers
        parameters = message.get("params")
        parameters = parameters if isinstance(parameters, dict) else {}
        meta = parameters.get("_meta")
        stated = meta.get(REVISION) if isinstance(meta, dict) else None
        method, revision = str(message.get("method", "")), stated or self._revision
        if isinstance(revision, str) and _PLAIN.fullmatch(revision):
            headers["MCP-Protocol-Version"] = revision
        if stated:
            headers["Mcp-Method"] = _encoded(method)
            name = parameters.get(NAMED_BY.get(method, ""))
            if isinstance(name, str):
                headers["Mcp-Name"] = _encoded(name)
        return headers

    def _reply(self, message: Any, number: Any, response: httpx.Response) -> Mapping[str, Any]:
        """Return the response as a message; an error of the daemon's own becomes one of JSON-RPC."""
        try:
            reply = response.json()
        except ValueError:
            reply = None
        if not isinstance(reply, dict) or "jsonrpc" not in reply:
            details = reply.get("error", {}) if isinstance(reply, dict) else {}
            text = details.get("message") or f"The daemon answered {response.status_code}."
            return _error(number, SERVER_ERROR, text)
        if reply.get("id") is None:
            # The daemon could not read the message, and the client waits for the id.
            reply["id"] = number
        if isinstance(message, dict) and message.get("method") == "initialize":
            self._revision = (reply.get("result") or {}).get("protocolVersion", "")
        return reply

    def _write(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._output.write(line)
            self._output.flush()


def _encoded(text: str) -> str:
    """Return a header value; one that HTTP cannot carry is encoded as MCP defines.

    The daemon refuses a message with half a character, so a question mark for it does no harm.
    """
    if _PLAIN.fullmatch(text) and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def _error(number: Any, code: int, text: str) -> Mapping[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}
