"""The memory proxy: requests of OpenAI and Ollama clients, passed on to a model server with a block of memories.

The address of the server comes from the settings only. The bytes of its answers are not changed. A fault of the memory
never breaks a chat. This module is imported only by daemons that have `proxy.upstreams`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send

from ebbtide.access.grants import CALLER
from ebbtide.access.requirements import READ, WRITE, Needs, Requirement, of_agent
from ebbtide.errors import InvalidRequest
from ebbtide.ids import parse_agent_id
from ebbtide.language.served.relay import Relay, Relayed, UpstreamFailed
from ebbtide.memory.pin_requests import asks_to_remember
from ebbtide.proxy.answers import Collector
from ebbtide.proxy.chats import Api, Chat, hashed, read_chat
from ebbtide.proxy.recalls import OFF, Recalled, Recalls
from ebbtide.proxy.turns import Turn, Turns
from ebbtide.rest.agent_of_request import AGENT_HEADER, agent_of, scope_for
from ebbtide.rest.forwarding import pass_on, replayed
from ebbtide.rest.measured_route import MeasuredRoute
from ebbtide.rest.problems import OUTCOME
from ebbtide.rest.proxy_paths import CONVERSATION_HEADER, MEMORY_HEADER, failure
from ebbtide.retrieval.questions import only_asks
from ebbtide.settings import ProxySettings, Upstream
from ebbtide.telemetry import get_log
from ebbtide.verbs.service import Service

REQUIREMENT = Requirement(Needs.AGENT, (READ, WRITE))
"""With `read` memories are recalled, with `write` turns are remembered."""

MODES = ("", "off", "read-only", "required")
"""The values of the header `X-Ebbtide-Memory`."""

CHATS: dict[str, Api] = {
    "openai/chat/completions": "chat",
    "openai/responses": "responses",
    "ollama/api/chat": "ollama",
}
"""The requests with memory."""

ROOTS: dict[Upstream, str] = {"openai": "openai/v1", "ollama": "ollama"}
"""The path of each upstream below `/proxy` and the path of an agent."""

MAX_QUESTION_CHARS = 2_000
"""A longer message counts as a statement, even if it only asks."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""The methods of requests that are relayed; HEAD stays HEAD. Only the daemon answers OPTIONS."""

REALTIME = "openai/realtime"

MAX_READABLE = 40
"""Characters of a user's name at the begin of its agent's id, if the name is no agent id."""

_WORDS = re.compile(r"[A-Za-z0-9_]++")
_HASHED = re.compile(r"(?:\A|-)[0-9a-f]{64}\Z")

HOP_BY_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
NOT_SENT = HOP_BY_HOP | {"host", "content-length", "accept-encoding", "expect"}


class ProxyRoute(MeasuredRoute):
    """A route to one upstream, for every path below it."""

    def __init__(self, path: str, upstream: Upstream) -> None:
        super().__init__(f"{path}/{{rest:path}}", _Endpoint(upstream), name=f"proxy_{upstream}")
        self.methods = set(METHODS)
        self.path = path


class Proxy:
    """The parts of the proxy that live as long as the daemon."""

    def __init__(self, service: Service) -> None:
        settings = service.settings.proxy
        self.service = service
        self.recalls = Recalls(service)
        self.turns = Turns(service)
        self.relays = {name: Relay(one.url, settings.timeout_s) for name, one in settings.upstreams.items()}

    async def close(self) -> None:
        """Remember what waits, and close the connections."""
        await self.turns.close()
        for relay in self.relays.values():
            await relay.close()


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to the proxy, read and permitted."""

    upstream: Upstream
    scope: Scope
    headers: Headers
    body: bytes
    agent_id: str
    is_chat: bool
    """Whether it is one of the requests with memory."""
    chat: Chat | None
    """The chat, if it was understood."""
    mode: str
    conversation: str

    @property
    def target(self) -> bytes:
        """The path below the address of the upstream, with the query."""
        rest = _raw_rest(self.scope, self.upstream)
        query = self.scope["query_string"]
        return rest + (b"?" + query if query else b"")


class _Endpoint:
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to the proxy."""
        proxy: Proxy = scope["app"].state.proxy
        service, settings = proxy.service, proxy.service.settings.proxy
        headers = Headers(scope=scope)
        body = await _whole(receive)
        path = f"{self._upstream}/{scope['path_params']['rest']}"
        is_chat = scope["method"] == "POST" and path in CHATS
        chat = None
        if is_chat:
            chat = await service.offload(len(body), lambda: read_chat(CHATS[path], body))
        agent_id = agent_of(scope, CALLER.get(), settings.agent, _hints(settings, headers, chat))
        service.authentication.permit(CALLER.get(), REQUIREMENT, agent_id)
        peers = service.peers
        if peers is not None and (owner := await peers.owner(agent_id)) != peers.own:
            owned = _owned(scope, agent_id, self._upstream)
            await pass_on(peers, owner, agent_id, owned, replayed(body, receive), send)
            return
        if path == REALTIME:
            text = "The proxy does not support realtime sessions. Connect to the model server directly."
            await failure(self._upstream, 501, text, "ebbtide_error", "not_supported")(scope, receive, send)
            return
        mode = headers.get(MEMORY_HEADER, "").strip().lower()
        if mode not in MODES:
            raise InvalidRequest("X-Ebbtide-Memory: not allowed; allowed: off, read-only, required")
        conversation = "" if chat is None else _conversation(settings, headers, agent_id, chat)
        request = _Request(self._upstream, scope, headers, body, agent_id, is_chat, chat, mode, conversation)
        await _answer(proxy, request, receive, send)


async def _answer(proxy: Proxy, request: _Request, receive: Receive, send: Send) -> None:
    """Recall, pass the request on, pass the answer back, and remember the turn."""
    chat, body = request.chat, request.body
    recalled = await _recalled(proxy, request)
    if request.mode == "required" and recalled.outcome in ("timeout", "error", "off"):
        text = f"The memory did not answer ({recalled.outcome}), and X-Ebbtide-Memory requires it."
        response = failure(request.upstream, 503, text, "ebbtide_error", "memory_unavailable")
        request.scope[OUTCOME] = "Unavailable"
        await response(request.scope, receive, send)
        return
    if chat is not None and recalled.block:
        position = proxy.service.settings.proxy.position
        body = await proxy.service.offload(len(body), lambda: chat.with_block(recalled.block, position))
    began = False
    collector = None
    try:
        headers = list(_sent_headers(proxy, request))
        async with proxy.relays[request.upstream].send(
            request.scope["method"], request.target, headers, body
        ) as answer:
            if chat is not None and answer.status == 200:
                collector = Collector(chat.api, _media_type(answer))
            request.scope[OUTCOME] = "ok"
            began = True
            await send(_start(request, answer, recalled))
            async for part in answer.parts:
                if collector is not None:
                    collector.feed(part)
                await send({"type": "http.response.body", "body": part, "more_body": True})
    except UpstreamFailed as error:
        if began:
            # The server closes the connection, so the client sees the failure.
            get_log("proxy").warning("answer cut off", upstream=request.upstream)
            return
        request.scope[OUTCOME] = "Deadline" if error.is_timeout else "Unavailable"
        status, code = (504, "upstream_timeout") if error.is_timeout else (502, "upstream_unreachable")
        text = f"The model server {request.upstream} {error}."
        await failure(request.upstream, status, text, "upstream_error", code)(request.scope, receive, send)
        return
    except ValueError:
        raise InvalidRequest("The path is not valid in a URL. Encode it.") from None
    if collector is not None:
        _remember(proxy, request, collector.end())
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _recalled(proxy: Proxy, request: _Request) -> Recalled:
    if request.mode == "required":
        proxy.service.authentication.permit(CALLER.get(), of_agent(READ), request.agent_id)
    if request.chat is None or request.mode == "off" or READ not in CALLER.get().grant.scopes:
        return OFF
    found = await proxy.recalls.of(request.agent_id, request.conversation, request.chat)
    proxy.service.metrics.proxy_recalled(found.outcome)
    return found


def _remember(proxy: Proxy, request: _Request, answer: str) -> None:
    """Remember a turn after its answer, if it is complete and may be stored."""
    chat, kept = request.chat, proxy.service.settings.proxy.remember
    is_refused = request.mode in ("off", "read-only") or WRITE not in CALLER.get().grant.scopes
    if chat is None or not answer or is_refused or not chat.is_kept or kept == "off":
        return
    is_short = len(chat.text) <= MAX_QUESTION_CHARS
    if kept != "all" and is_short and only_asks(chat.text) and not asks_to_remember(chat.text):
        # The words of a question are recalled for similar questions, in place of what answers them.
        return
    texts = (("user", chat.text),) if kept == "user" else (("user", chat.text), ("assistant", answer))
    key = "proxy-" + hashed(request.agent_id, request.conversation, chat.turn_key)
    proxy.turns.add(Turn(request.agent_id, CALLER.get(), request.conversation, key, texts))


# --- the request -------------------------------------------------------------------------------------------


def _hints(settings: ProxySettings, headers: Headers, chat: Chat | None) -> Iterator[str]:
    """Yield the agents that mapped headers and the body name."""
    for name in settings.agent_headers:
        if value := headers.get(name, "").strip():
            yield agent_named(unquote(value, errors="surrogateescape"))
    if chat is not None and chat.user:
        yield agent_named(chat.user)


def agent_named(user: str) -> str:
    """Return the agent of a user: of the same name, or one with a hash if the name is no agent id.

    Names that look like those with a hash get one too, so no two users have the same agent.
    """
    with suppress(InvalidRequest):
        if not _HASHED.search(user):
            return parse_agent_id(user)
    hashed_user = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
    return "-".join((*_WORDS.findall(user[:MAX_READABLE]), hashed_user))


def _conversation(settings: ProxySettings, headers: Headers, agent_id: str, chat: Chat) -> str:
    """Return the id of the conversation, hashed: it may be long, and of any characters."""
    names = (CONVERSATION_HEADER, *settings.conversation_headers)
    given = next((value for name in names if (value := headers.get(name, "").strip())), chat.conversation)
    return hashed(agent_id, given) if given else hashed(agent_id, "", chat.opening)


def _sent_headers(proxy: Proxy, request: _Request) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers for the upstream: those of the client without what is for Ebbtide or for the connection."""
    settings = proxy.service.settings.proxy
    mapped = {name.lower() for name in (*settings.agent_headers, *settings.conversation_headers)}
    listed = {name.strip().lower() for name in request.headers.get("connection", "").split(",")}
    dropped = NOT_SENT | mapped | listed
    key = _upstream_key(settings.upstreams[request.upstream].api_key_file)
    for name, value in request.headers.raw:
        text = name.decode("latin-1").lower()
        if text in dropped or text.startswith("x-ebbtide-") or b"ebb_" in value:
            continue
        if text == "authorization" and key:
            continue
        yield name, value
    yield b"Accept-Encoding", b"identity"
    if key:
        yield b"Authorization", f"Bearer {key}".encode()


def _upstream_key(file: str) -> str:
    """Return the key of an upstream. It is read for each request, so that it can be replaced."""
    if not file:
        return ""
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        raise UpstreamFailed(
            "has a key file that cannot be read (proxy.upstreams)", is_timeout=False
        ) from None


def _raw_rest(scope: Scope, upstream: Upstream) -> bytes:
    """Return the path below the route as it was sent. Segments that climb out of the upstream's path are refused."""
    raw: bytes = scope["raw_path"].partition(b"?")[0]
    before = 1 if scope["path"].startswith("/proxy/") else 3
    parts = raw.split(b"/")[1 + before + len(ROOTS[upstream].split("/")) :]
    if any(unquote(part.decode("latin-1")) in (".", "..") for part in parts):
        raise InvalidRequest("The path contains . or .. as a segment. Leave it out.")
    return b"/" + b"/".join(parts)


def _owned(scope: Scope, agent_id: str, upstream: Upstream) -> Scope:
    """Return the scope with the agent in its path."""
    root = f"/{ROOTS[upstream]}"
    rest = f"{root}/{scope['path_params']['rest']}"
    return scope_for(scope, agent_id, rest, root.encode() + _raw_rest(scope, upstream))


async def _whole(receive: Receive) -> bytes:
    """Return the body, which the HTTP checks have read within its limit."""
    message = await receive()
    return bytes(message.get("body", b""))


# --- the answer --------------------------------------------------------------------------------------------


def _media_type(answer: Relayed) -> str:
    """Return the media type of an answer; an encoded one is never read."""
    headers = Headers(raw=list(answer.headers))
    if headers.get("content-encoding", "identity") != "identity":
        return "encoded"
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _start(request: _Request, answer: Relayed, recalled: Recalled) -> Message:
    """Return the head of the answer: the upstream's, and what the memory did."""
    headers = list(_passed_back(answer.headers))
    headers.append((AGENT_HEADER.encode(), quote(request.agent_id, safe="").encode()))
    if request.is_chat:
        headers.append((MEMORY_HEADER.encode(), recalled.header.encode()))
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


def _passed_back(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers:
        text = name.decode("latin-1").lower()
        # Only the daemon decides which web pages may read its responses.
        if text not in HOP_BY_HOP and not text.startswith("access-control-"):
            yield text.encode("latin-1"), value


def proxy_routes(service: Service) -> tuple[Proxy, list[BaseRoute]]:
    """Return the proxy, which closes with the daemon, and its routes."""
    proxy = Proxy(service)
    service.at_stop.append(proxy.close)
    routes: list[BaseRoute] = [
        ProxyRoute(f"{place}/{ROOTS[name]}", name)
        for name in service.settings.proxy.upstreams
        for place in ("/proxy", "/v1/agents/{agent_id}")
    ]
    return proxy, routes
