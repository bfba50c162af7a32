"""The MCP server: one for each set of tools and language, without sessions, behind Ebbtide's HTTP checks.

Every request is complete in itself, in the revisions with a handshake and in those without. This module imports the MCP
SDK, which takes up to a second; so it is imported with the first request.
"""

from __future__ import annotations

import json
import logging
from functools import cache
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.types import Receive, Scope, Send

from ebbtide import __version__
from ebbtide.errors import Corrupted, EbbtideError, Internal
from ebbtide.mcp import graph
from ebbtide.mcp.calls import Answer, Language, Session
from ebbtide.mcp.declarations import DEFAULT, INSTRUCTIONS, SEARCH_FETCH, Hints, McpTool
from ebbtide.mcp.graph_declarations import GRAPH_TOOLS, GRAPH_URI, GraphTool
from ebbtide.mcp.sets import SetName
from ebbtide.telemetry import get_log
from ebbtide.tools import schema
from ebbtide.tools.refusals import in_chinese
from ebbtide.verbs.focus import FocusInfo
from ebbtide.verbs.recall import unless_unknown

SESSION = "ebbtide.mcp_session"
"""The key of the session in the scope of a request."""

FOCUS = "ebbtide://focus"
MEMORY = "ebbtide://memories/"
GRAPH = types.Resource(
    uri=GRAPH_URI,
    name="knowledge-graph",
    description="All entities and relations of the knowledge graph.",
    mime_type="application/json",
)

OWN_CHECKS = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""Ebbtide has checked `Host` and `Origin` already."""

RECALL_FIRST = {
    "en": "Call recall with a question about {topic}, then answer with what it returns.",
    "zh": "先用一个关于{topic}的问题调用 recall，再根据返回的内容回答。",
}

# Refused messages are in Ebbtide's own log; the SDK's lines have another form.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


async def answer(
    name: SetName, session: Session, max_body_bytes: int, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer one HTTP request for a set of tools."""
    manager = StreamableHTTPSessionManager(
        _server(name, session.language),
        json_response=True,
        stateless=True,
        security_settings=OWN_CHECKS,
        max_request_body_size=max_body_bytes,
    )
    async with manager.run():
        await manager.handle_request({**scope, SESSION: session}, receive, send)


@cache
def _server(name: SetName, language: Language) -> Server[Any]:
    """Return the server of a set; it has no state."""
    if name == "graph":
        tools, call = [_graph_tool(one, language) for one in GRAPH_TOOLS.values()], _call_graph_tool
        instructions = INSTRUCTIONS[name][language]
    elif name == "statements":
        tools, call, instructions = (
            _statement_tools(language),
            _call_statement_tool,
            schema.prompt(language, "assistant"),
        )
    else:
        declared = DEFAULT if name == "default" else SEARCH_FETCH
        tools = [_declared(one, language) for one in declared.values()]
        call, instructions = _caller(declared), INSTRUCTIONS[name][language]

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            done = await call(_session(context), params.name, params.arguments or {})
        except EbbtideError as error:
            return _failed(error, language)
        content = [types.TextContent(type="text", text=done.text)]
        return types.CallToolResult(content=content, structured_content=done.structure)

    async def list_resources(_: Any, __: Any) -> types.ListResourcesResult:
        if name == "graph":
            return types.ListResourcesResult(resources=[GRAPH])
        focus = types.Resource(
            uri=FOCUS,
            name="focus",
            description="The memories and entities in focus.",
            mime_type="application/json",
        )
        return types.ListResourcesResult(resources=[focus])

    async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        topic = (params.arguments or {}).get("topic", "")
        if params.name != "recall_first" or not topic:
            raise MCPError(
                types.INVALID_PARAMS, "There is one prompt: recall_first, with the argument topic."
            )
        text = types.TextContent(type="text", text=RECALL_FIRST[language].format(topic=topic))
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])

    # The reference server of the set has neither.
    others: Any = (
        {}
        if name == "graph"
        else {
            "on_list_resource_templates": _list_templates,
            "on_list_prompts": _list_prompts,
            "on_get_prompt": get_prompt,
        }
    )
    return Server(
        "ebbtide",
        version=__version__,
        title="Ebbtide memory",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=_read_resource,
        **others,
    )


async def _list_templates(_: Any, __: Any) -> types.ListResourceTemplatesResult:
    memory = types.ResourceTemplate(
        uri_template=MEMORY + "{id}",
        name="memory",
        description="A memory with its links and sources.",
        mime_type="application/json",
    )
    return types.ListResourceTemplatesResult(resource_templates=[memory])


async def _list_prompts(_: Any, __: Any) -> types.ListPromptsResult:
    topic = types.PromptArgument(name="topic", description="What to recall.", required=True)
    prompt = types.Prompt(name="recall_first", description="Recall before answering.", arguments=[topic])
    return types.ListPromptsResult(prompts=[prompt])


def _session(context: Any) -> Session:
    found: Session = context.request.scope[SESSION]
    return found


def _declared(one: McpTool, language: Language) -> types.Tool:
    rendered = one.tool.rendered("mcp", language)
    return types.Tool(
        name=one.tool.name,
        description=rendered["description"],
        input_schema=rendered["inputSchema"],
        output_schema=None if one.output is None else dict(one.output),
        annotations=_annotations(one.hints),
    )


def _graph_tool(one: GraphTool, language: Language) -> types.Tool:
    return types.Tool(
        name=one.name,
        description=one.en if language == "en" else one.zh,
        input_schema=dict(one.input),
        output_schema=dict(one.output),
        annotations=_annotations(one.hints),
    )


def _annotations(hints: Hints) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        read_only_hint=hints.reads_only,
        destructive_hint=hints.destroys,
        idempotent_hint=hints.repeats,
        open_world_hint=False,
    )


def _statement_tools(language: Language) -> list[types.Tool]:
    return [types.Tool.model_validate(one.rendered("mcp", language)) for one in schema.TOOLS.values()]


def _caller(declared: Any) -> Any:
    async def call(session: Session, name: str, arguments: Any) -> Answer:
        if name not in declared:
            raise _unknown(name, declared)
        return await session.call(declared[name], arguments)

    return call


async def _call_graph_tool(session: Session, name: str, arguments: Any) -> Answer:
    if name not in GRAPH_TOOLS:
        raise _unknown(name, GRAPH_TOOLS)
    return await graph.call(session, name, arguments)


async def _call_statement_tool(session: Session, name: str, arguments: Any) -> Answer:
    if name not in schema.TOOLS:
        raise _unknown(name, schema.TOOLS)
    done = await session.perform("CallTool", name=name, arguments=arguments)
    text = done.result.get("text") or json.dumps(done.result, ensure_ascii=False)
    return Answer(text, done.result)


def _unknown(name: str, known: Any) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"There is no tool {name[:60]!r}; allowed: {', '.join(known)}")


def _failed(error: EbbtideError, language: Language) -> types.CallToolResult:
    """Return an error as a result, so that the model can correct its call."""
    if isinstance(error, (Corrupted, Internal)):
        get_log("mcp").error("tool call failed", reason=error.reason, exc_info=error)
    message = in_chinese(error) if language == "zh" else error.message
    if error.retry_after_s is not None:
        message = f"{message} Try again in {max(1, round(error.retry_after_s))} s."
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


async def _read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    session, uri = _session(context), str(params.uri)
    try:
        if uri == FOCUS:
            focus = session.perform("GetFocus")
            text = (await unless_unknown(focus, lambda: FocusInfo(nodes=[], entities=[]))).model_dump_json()
        elif uri == GRAPH_URI:
            text = await graph.graph_text(session)
        elif uri.startswith(MEMORY):
            node_id = uri.removeprefix(MEMORY).partition("?")[0]
            text = (await session.perform("GetNode", node_id=node_id)).model_dump_json()
        else:
            raise MCPError(types.INVALID_PARAMS, f"Resource not found: {uri[:80]}", {"uri": uri})
    except EbbtideError as error:
        raise MCPError(types.INVALID_PARAMS, error.message, {"uri": uri, "reason": error.reason}) from error
    content = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
    return types.ReadResourceResult(contents=[content])
