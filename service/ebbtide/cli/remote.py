"""The daemon over REST: the only module that speaks HTTP.

A small client for the verbs that commands need. Whatever goes wrong becomes a `Failure`: the daemon's own
error bodies keep their sentence, and what is no answer of the daemon at all says so.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, BinaryIO, Self
from urllib.parse import quote

import httpx

from ebbtide.cli.credentials import NO_CREDENTIALS, Credentials
from ebbtide.cli.exit_codes import ExitCode, of_error
from ebbtide.cli.failures import Failure, sentence
from ebbtide.ids import node_text_id, parse_agent_id, parse_node_id

TIMEOUT_S = 60.0
"""Longer than the daemon lets a request or a recall wait (30 s each)."""

FLUSH_STEP_MS = 10_000
"""A flush is asked for in steps, so that progress can be shown and Ctrl-C is heard."""

PAGE_SIZE = 1000

PIECE_BYTES = 256 << 10

LONG_TIMEOUT_S = httpx.Timeout(TIMEOUT_S, read=3600.0)
"""For what takes longer the more an agent holds, and has nothing to tell before its end: a large agent is copied
before its first byte comes, and checked after its last one went; it is written anew before it has forgotten."""

Json = dict[str, Any]


class Remote:
    """One daemon at one address."""

    def __init__(
        self,
        url: str,
        credentials: Credentials = NO_CREDENTIALS,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        try:
            address = httpx.URL(self.url)
            if address.scheme not in ("http", "https") or not address.host:
                raise httpx.InvalidURL("no http address")
        except httpx.InvalidURL:
            raise Failure(
                f"--url: {url!r} is not an address such as http://127.0.0.1:8420.", ExitCode.USAGE
            ) from None
        self._http = httpx.Client(
            base_url=address,
            timeout=TIMEOUT_S,
            transport=transport,
            headers=credentials.headers,
            verify=True if credentials.trust is None else credentials.trust,
            # A proxy of the environment has no business between two processes of one machine.
            trust_env=not _is_loopback(address.host),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    # --- verbs -------------------------------------------------------------------------------------

    def remember(self, agent_id: str, body: Json) -> Json:
        """Hand over one batch."""
        return self._ask("POST", f"{_of(agent_id)}/remember", body)

    def recall(self, agent_id: str, body: Json) -> Json:
        """Recall what matches a cue."""
        return self._ask("POST", f"{_of(agent_id)}/recall", body)

    def search(self, agent_id: str, body: Json) -> Json:
        """Find memories, best first."""
        return self._ask("POST", f"{_of(agent_id)}/search", body)

    def delete_nodes(self, agent_id: str, node_ids: list[str]) -> Json:
        """Delete memories for good."""
        return self._ask("POST", f"{_of(agent_id)}/nodes/delete", {"node_ids": node_ids})

    def forget(self, agent_id: str, body: Json) -> Json:
        """Forget a selection for good, or look it up."""
        return self._ask("POST", f"{_of(agent_id)}/forget", body, LONG_TIMEOUT_S)

    def audit(self, agent_id: str) -> list[Json]:
        """Every record of an agent's audit log."""
        return self._all(f"{_of(agent_id)}/audit", "records")

    def verify_audit(self, agent_id: str, texts: list[str]) -> Json:
        """Whether an agent's audit log is whole, and whether texts were erased."""
        return self._ask("POST", f"{_of(agent_id)}/audit/verify", {"texts": texts}, LONG_TIMEOUT_S)

    def erased_agents(self) -> list[Json]:
        """Every record of an erased agent."""
        return self._all("/v1/erased-agents", "records")

    def verify_erased(self, texts: list[str]) -> Json:
        """Whether the log of erased agents is whole, and whether texts were among what they held."""
        return self._ask("POST", "/v1/erased-agents/verify", {"texts": texts}, LONG_TIMEOUT_S)

    def flush(self, agent_id: str, timeout_ms: int = FLUSH_STEP_MS) -> Json:
        """Wait until what was accepted is digested, or the time is over."""
        return self._ask("POST", f"{_of(agent_id)}/flush", {"timeout_ms": timeout_ms})

    def agents(self) -> list[Json]:
        """Every agent."""
        return self._all("/v1/agents", "agents")

    def agent(self, agent_id: str) -> Json:
        """An agent: parameters, counts, focus."""
        return self._ask("GET", _of(agent_id))

    def batches(self, agent_id: str) -> list[Json]:
        """Every batch whose status is kept."""
        return self._all(f"{_of(agent_id)}/batches", "batches")

    def node(self, agent_id: str, node_id: str) -> Json:
        """One memory with its links."""
        return self._ask("GET", f"{_of(agent_id)}/nodes/{node_text_id(parse_node_id(node_id))}")

    def events(self, agent_id: str, after: int | None, *, follow: bool) -> Iterator[Json]:
        """What happened to an agent's memory, and with `follow` what happens."""
        query = {"follow": "true" if follow else "false"} | ({} if after is None else {"after": str(after)})
        headers = {"accept": "text/event-stream"}
        kind = ""
        with (
            self._translated(),
            self._http.stream("GET", f"{_of(agent_id)}/events", params=query, headers=headers) as response,
        ):
            if not response.is_success:
                response.read()
                self._read(response)
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                kind = value if name == "event" else kind
                if name == "data" and kind == "StreamEnded":
                    error = json.loads(value)["error"]
                    raise refusal(error, error["code"])
                if name == "data":
                    yield json.loads(value)

    # --- files -------------------------------------------------------------------------------------

    def agent_ids(self) -> list[str]:
        """Every agent by its id."""
        return [agent["agent_id"] for agent in self.agents()]

    def fetch(self, agent_id: str, form: str, into: BinaryIO, moved: Callable[[int], None]) -> None:
        """Write the backup or the export of an agent."""
        with (
            self._translated(),
            self._http.stream("GET", f"{_of(agent_id)}/{form}", timeout=LONG_TIMEOUT_S) as response,
        ):
            if not response.is_success:
                response.read()
                self._read(response)
            for piece in response.iter_raw(PIECE_BYTES):
                into.write(piece)
                moved(len(piece))

    def put(
        self, agent_id: str, file: BinaryIO, *, replace: bool, rename: bool, moved: Callable[[int], None]
    ) -> Json:
        """Restore an agent from a file."""

        def pieces() -> Iterator[bytes]:
            while piece := file.read(PIECE_BYTES):
                yield piece
                moved(len(piece))

        how = {"replace": str(replace).lower(), "rename": str(rename).lower()}
        headers = {"content-type": "application/octet-stream"}
        with self._translated():
            response = self._http.post(
                f"{_of(agent_id)}/restore",
                content=pieces(),
                params=how,
                headers=headers,
                timeout=LONG_TIMEOUT_S,
            )
        return self._read(response)

    # --- one request -------------------------------------------------------------------------------

    def _all(self, path: str, key: str) -> list[Json]:
        found: list[Json] = []
        token = ""
        while True:
            page = self._ask("GET", f"{path}?page_size={PAGE_SIZE}&page_token={quote(token, safe='')}")
            found.extend(page.get(key, []))
            token = page.get("next_page_token", "")
            if not token:
                return found

    def _ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        timeout: float | httpx.Timeout = TIMEOUT_S,
    ) -> Json:
        content = None if body is None else _encoded(json.dumps(body, ensure_ascii=False))
        headers = {"accept": "application/json"}
        if content is not None:
            headers["content-type"] = "application/json"
        with self._translated():
            response = self._http.request(method, path, content=content, headers=headers, timeout=timeout)
        return self._read(response)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Failures of the connection as sentences."""
        try:
            yield
        except httpx.ConnectError:
            raise self._unreachable("no daemon answers", ends_all=True) from None
        except httpx.ReadTimeout as error:
            waited_s = error.request.extensions["timeout"]["read"]
            raise Failure(
                f"The daemon did not answer within {waited_s:.0f} s at {self.url}.",
                ExitCode.UNREACHABLE,
                hint="It may still be at work: its log says what it is at, /readyz what holds it up.",
            ) from None
        except httpx.TimeoutException:
            raise self._unreachable(f"no connection within {TIMEOUT_S:.0f} s", ends_all=True) from None
        except httpx.TransportError:
            raise self._unreachable("the connection broke off") from None

    def _unreachable(self, what: str, *, ends_all: bool = False) -> Failure:
        return Failure(
            f"{sentence(what).rstrip('.')} at {self.url}.",
            ExitCode.UNREACHABLE,
            hint="Start one with `ebbtide serve`, or name another with --url.",
            ends_all=ends_all,
        )

    def _read(self, response: httpx.Response) -> Json:
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            if response.is_success:
                return answer
            error = answer.get("error")
            if isinstance(error, dict) and isinstance(error.get("reason"), str):
                raise refusal(error, response.status_code, response.headers.get("retry-after", ""))
        raise Failure(
            f"What answers at {self.url} is not an Ebbtide daemon (HTTP {response.status_code}).",
            ExitCode.UNREACHABLE,
            hint="Name the daemon's address with --url.",
            ends_all=True,
        )


def refusal(error: Json, status: int, retry_after: str = "") -> Failure:
    """The failure for an error body of the daemon: one sentence, the reason behind it in brackets."""
    text = sentence(str(error.get("message", "")))
    others = [
        f"{violation.get('field', '')}: {violation.get('description', '')}"
        for violation in error.get("field_violations") or []
    ][1:]
    hint = "; ".join(others)
    if status == 401:
        hint = "Name a key with --api-key-file, or in EBBTIDE_API_KEY; `ebbtide keys create` makes one."
    if retry_after:
        hint = f"Try again in {retry_after} s."
    reason = error["reason"]
    return Failure(
        f"{text} [{reason}]", of_error(reason, status), hint=hint, reason=reason, ends_all=status == 401
    )


def _of(agent_id: str) -> str:
    # Checked here too: an id such as ".." must not become another path on its way.
    return f"/v1/agents/{quote(_encoded(parse_agent_id(agent_id)), safe='')}"


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Bytes of the command line that are not UTF-8 arrive as lone surrogates.
        raise Failure("The command line holds bytes that are not UTF-8 text.", ExitCode.USAGE) from None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
