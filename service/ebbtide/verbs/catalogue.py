"""The catalogue of operations: one row for each thing that a caller can do.

REST builds its routes from it, gRPC its calls, OpenAPI its operation ids, bodies and examples, the docs their tables
(`python -m tests.tidy.generate_api`), and tests their walks. An operation has one name on every surface: that of the
RPC, in snake case for the verb (`open_agent`) and in camel case for OpenAPI (`openAgent`).

A new operation is its verb, its message in `proto/`, and its row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pydantic import BaseModel

from ebbtide.access.requirements import ADMIN, READ, WRITE, Needs, Requirement, of_agent
from ebbtide.verbs import (
    agents,
    attachments,
    audit,
    batches,
    causes,
    consolidation,
    creation,
    entities,
    erased,
    events,
    focus,
    forecast,
    forget,
    history,
    inspect,
    links,
    memories,
    memory_map,
    messages,
    metrics,
    moving,
    node_history,
    paging,
    profile,
    recall,
    records,
    remember,
    search,
    service,
    statement_search,
    statements,
    stats,
    tools,
)
from ebbtide.verbs.requests import AgentRequest, Request

Examples = Mapping[str, Any]


class Kind(Enum):
    """How an operation exchanges data."""

    CALL = "one request, one response"
    STREAM = "one request, a stream of events"
    DOWNLOAD = "one request, a file"
    UPLOAD = "a file, one response"
    REST_ONLY = "one request, one response, over REST only"


_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")
_PATH_FIELD = re.compile(r"\{(\w++)\}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a caller can do."""

    name: str
    """The name of the RPC."""
    route: str
    """`METHOD /path` over REST."""
    requires: Requirement
    verb: Callable[..., Any]
    """An async function from the service and the request to the response."""
    request: type[Request]
    response: type[BaseModel] | None = None
    """None for a file, or a text of another format."""
    tag: str = "service"
    status: int | Callable[[Any], int] = 200
    """The HTTP status, or how it follows from the response."""
    examples: Examples = field(default_factory=dict)
    """Bodies, by what they are."""
    kind: Kind = Kind.CALL

    @property
    def verb_name(self) -> str:
        """The name in snake case: `open_agent`."""
        return _WORD_START.sub("_", self.name).lower()

    @property
    def id(self) -> str:
        """The name in camel case: `openAgent`."""
        return self.name[0].lower() + self.name[1:]

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of the route."""
        return self.route.partition(" ")[2]

    @property
    def in_path(self) -> tuple[str, ...]:
        """The fields of the request that REST sends in the path."""
        return tuple(_PATH_FIELD.findall(self.path))

    @property
    def in_query(self) -> tuple[str, ...]:
        """The fields of the request that REST sends in the query."""
        if self.has_body:
            return ()
        return tuple(name for name in self.request.model_fields if name not in self.in_path)

    @property
    def has_body(self) -> bool:
        """Whether REST sends fields of the request in a JSON body."""
        is_sent = self.method in ("POST", "PUT", "PATCH") and self.kind is not Kind.UPLOAD
        return is_sent and self.request.model_fields.keys() > set(self.in_path)

    @property
    def body_model(self) -> type[BaseModel]:
        """The model of the body: that of the request, whose fields in the path are not in the body."""
        return self.request.body_model or self.request

    @property
    def is_rpc(self) -> bool:
        """Whether it is a call of the gRPC service."""
        return self.kind is not Kind.REST_ONLY


A = "/v1/agents/{agent_id}"
READ_DAEMON = Requirement(Needs.EVERY_AGENT, (READ, ADMIN))
ADMIN_EVERYWHERE = Requirement(Needs.EVERY_AGENT, (ADMIN,))
PARAMETERS: Examples = {"forgets faster": {"decay_rate": 0.9, "locale": "zh"}}
CONVERSATION = {
    "messages": [
        {"role": "user", "speaker": "Ann", "content": "I moved to Lisbon in May."},
        {"role": "assistant", "content": "How do you like it there?"},
    ],
    "conversation_id": "c1",
}
CHINESE = {"messages": [{"role": "user", "speaker": "林月", "content": "我五月搬到了青岛。"}]}
RECALLS: Examples = {
    "by keyword": {"keywords": ["Lisbon"], "depth": 2},
    "by relation": {"relations": ["next"]},
    "everything in reach": {},
}
SEARCHES: Examples = {"a question": {"query": "Where did Ann move?", "max_results": 5}}
FORGETTING: Examples = {
    "a topic, as a dry run": {"topic": "Project Heron", "dry_run": True},
    "a conversation": {"conversations": ["c1"]},
}
STATEMENTS: Examples = {
    "a fact": {
        "subject": "user",
        "topic": "residence",
        "object": "Porto",
        "content": "I moved to Porto in May.",
    },
    "中文": {"subject": "我", "topic": "过敏", "object": "花生"},
}
TOOL_CALLS: Examples = {
    "as a model sends it": {"arguments": '{"q": "Where does Ann live?", "limit": "5"}'},
    "as an object": {"arguments": {"query": "Where does Ann live?"}},
}
RECORDS: Examples = {
    "write and read": {
        "ops": [
            {"op": "put", "namespace": ["users", "ann"], "key": "theme", "value": {"dark": True}},
            {"op": "search", "prefix": ["users"], "filter": {"dark": True}},
        ]
    }
}
TEXTS = ["I moved to Lisbon in May."]


READ_AGENT, WRITE_AGENT, ADMIN_AGENT = of_agent(READ), of_agent(WRITE), of_agent(ADMIN)
READ_OR_WRITE = Requirement(Needs.AGENT, (READ, WRITE))
ANY_SCOPE = Requirement(Needs.AGENT, (READ, WRITE, ADMIN))
OPEN = Requirement(Needs.NOTHING)
ANY_KEY = Requirement(Needs.KEY)

# Remember and recall come first: REST tries routes in this order, and they are called most.
CATALOGUE: tuple[Operation, ...] = (
    Operation(
        *("Remember", f"POST {A}/remember", WRITE_AGENT, remember.remember),
        *(remember.RememberRequest, remember.Remembered, "memory"),
        status=202,
        examples={"conversation": CONVERSATION, "中文": CHINESE},
    ),
    Operation(
        *("Recall", f"POST {A}/recall", READ_AGENT, recall.recall),
        *(recall.RecallRequest, recall.Recalled, "memory"),
        examples=RECALLS,
    ),
    Operation(
        *("Search", f"POST {A}/search", READ_AGENT, search.search),
        *(search.SearchRequest, search.Found, "memory"),
        examples=SEARCHES,
    ),
    # --- agents
    Operation(
        *("OpenAgent", f"PUT {A}", WRITE_AGENT, agents.open_agent),
        *(agents.OpenAgentRequest, agents.AgentInfo, "agents"),
        status=lambda opened: 201 if opened.created else 200,
        examples=PARAMETERS,
    ),
    Operation(
        *("UpdateAgent", f"PATCH {A}", ADMIN_AGENT, agents.update_agent),
        *(agents.UpdateAgentRequest, agents.AgentInfo, "agents"),
        examples=PARAMETERS,
    ),
    Operation("GetAgent", f"GET {A}", READ_AGENT, agents.get_agent, AgentRequest, agents.AgentInfo, "agents"),
    Operation(
        *("GetStats", f"GET {A}/stats", READ_AGENT, stats.get_stats),
        *(stats.GetStatsRequest, stats.AgentStats, "agents"),
    ),
    Operation(
        *("ListAgents", "GET /v1/agents", Requirement(Needs.SCOPE, (READ,)), agents.list_agents),
        *(paging.PageRequest, agents.AgentPage, "agents"),
    ),
    Operation(
        *("CloseAgent", f"POST {A}/close", WRITE_AGENT, agents.close_agent),
        *(AgentRequest, agents.Closed, "agents"),
    ),
    Operation(
        *("ClearAgent", f"POST {A}/clear", ADMIN_AGENT, agents.clear_agent),
        *(AgentRequest, agents.Cleared, "agents"),
    ),
    Operation(
        *("DeleteAgent", f"DELETE {A}", ADMIN_AGENT, agents.delete_agent),
        *(AgentRequest, agents.Erased, "agents"),
    ),
    # --- batches
    Operation(
        *("ListBatches", f"GET {A}/batches", READ_AGENT, batches.list_batches),
        *(batches.ListBatchesRequest, batches.BatchPage, "batches"),
    ),
    Operation(
        *("GetBatch", f"GET {A}/batches/{{batch_id}}", READ_AGENT, batches.get_batch),
        *(batches.BatchRequest, batches.BatchInfo, "batches"),
    ),
    Operation(
        *("RetryBatch", f"POST {A}/batches/{{batch_id}}/retry", WRITE_AGENT, batches.retry_batch),
        *(batches.BatchRequest, batches.BatchInfo, "batches"),
    ),
    Operation(
        *("Flush", f"POST {A}/flush", READ_AGENT, batches.flush),
        *(batches.FlushRequest, batches.Flushed, "batches"),
        examples={"default": {"timeout_ms": 30000, "passes": True}},
    ),
    Operation(
        *("Compress", f"POST {A}/compress", ADMIN_AGENT, batches.compress),
        *(batches.CompressRequest, batches.Compressing, "batches"),
        examples={"one pass": {"passes": 1}},
    ),
    # --- memories
    Operation(
        "GetFocus", f"GET {A}/focus", READ_AGENT, focus.get_focus, AgentRequest, focus.FocusInfo, "inspect"
    ),
    Operation(
        *("FocusNode", f"PUT {A}/focus/{{node_id}}", WRITE_AGENT, focus.focus_node),
        *(inspect.NodeRequest, focus.FocusInfo, "memory"),
    ),
    Operation(
        *("UnfocusNode", f"DELETE {A}/focus/{{node_id}}", WRITE_AGENT, focus.unfocus_node),
        *(inspect.NodeRequest, focus.FocusInfo, "memory"),
    ),
    Operation(
        *("ListEntities", f"GET {A}/entities", READ_AGENT, entities.list_entities),
        *(paging.AgentPageRequest, entities.EntityPage, "inspect"),
    ),
    Operation(
        *("ListMessages", f"GET {A}/messages", READ_AGENT, messages.list_messages),
        *(messages.ListMessagesRequest, messages.MessagePage, "inspect"),
    ),
    Operation(
        *("GetAttachment", f"GET {A}/messages/{{message}}/attachments/{{index}}", READ_AGENT),
        attachments.get_attachment,
        attachments.AttachmentRequest,
        tag="inspect",
    ),
    Operation(
        *("ListNodes", f"GET {A}/nodes", READ_AGENT, inspect.list_nodes),
        *(inspect.ListNodesRequest, inspect.NodePage, "inspect"),
    ),
    Operation(
        *("CreateNode", f"POST {A}/nodes", WRITE_AGENT, creation.create_node),
        *(creation.CreateNodeRequest, inspect.NodeDetail, "memory"),
        status=201,
        examples={"a fact": {"content": "Ann is allergic to nuts.", "metadata": {"source": "form"}}},
    ),
    Operation(
        *("GetNode", f"GET {A}/nodes/{{node_id}}", READ_AGENT, inspect.get_node),
        *(inspect.NodeRequest, inspect.NodeDetail, "inspect"),
    ),
    Operation(
        *("ListLinks", f"GET {A}/links", READ_AGENT, inspect.list_links),
        *(paging.AgentPageRequest, inspect.LinkPage, "inspect"),
    ),
    Operation(
        *("GetMap", f"GET {A}/map", READ_AGENT, memory_map.get_map),
        *(memory_map.GetMapRequest, memory_map.AgentMap, "inspect"),
    ),
    Operation(
        *("GetHistory", f"GET {A}/history", READ_AGENT, history.get_history),
        *(history.GetHistoryRequest, history.AgentHistory, "inspect"),
    ),
    Operation(
        *("Forecast", f"POST {A}/forecast", READ_AGENT, forecast.forecast),
        *(forecast.ForecastRequest, forecast.AgentForecast, "inspect"),
        examples={"the next hundred passes": {"passes": 100}},
    ),
    Operation(
        *("GetNodeHistory", f"GET {A}/nodes/{{node_id}}/history", READ_AGENT, node_history.get_node_history),
        *(inspect.NodeRequest, node_history.NodeHistory, "inspect"),
    ),
    Operation(
        *("PinNode", f"PUT {A}/nodes/{{node_id}}/pin", WRITE_AGENT, focus.pin_node),
        *(inspect.NodeRequest, inspect.NodeDetail, "memory"),
    ),
    Operation(
        *("UnpinNode", f"DELETE {A}/nodes/{{node_id}}/pin", WRITE_AGENT, focus.unpin_node),
        *(inspect.NodeRequest, inspect.NodeDetail, "memory"),
    ),
    Operation(
        *("UpdateNode", f"PATCH {A}/nodes/{{node_id}}", WRITE_AGENT, memories.update_node),
        *(memories.UpdateNodeRequest, inspect.NodeDetail, "memory"),
        examples={"another town": {"content": "I moved to Porto in May."}},
    ),
    Operation(
        *("DeleteNode", f"DELETE {A}/nodes/{{node_id}}", WRITE_AGENT, memories.delete_node),
        *(inspect.NodeRequest, memories.DeletedNode, "memory"),
    ),
    Operation(
        *("DeleteNodes", f"POST {A}/nodes/delete", WRITE_AGENT, memories.delete_nodes),
        *(memories.DeleteNodesRequest, memories.DeletedNodes, "memory"),
        examples={"two": {"node_ids": ["n1", "n2"]}},
    ),
    Operation(
        *("ForgetMemories", f"POST {A}/forget", ADMIN_AGENT, forget.forget_memories),
        *(forget.ForgetRequest, forget.Forgotten, "memory"),
        examples=FORGETTING,
    ),
    # --- audit
    Operation(
        *("ListAuditRecords", f"GET {A}/audit", ADMIN_AGENT, audit.list_audit_records),
        *(audit.ListAuditRecordsRequest, audit.AuditPage, "inspect"),
    ),
    Operation(
        *("VerifyAudit", f"POST {A}/audit/verify", ADMIN_AGENT, audit.verify_audit),
        *(audit.VerifyAuditRequest, audit.AuditVerified, "inspect"),
        examples={"a text": {"texts": TEXTS}},
    ),
    Operation(
        *("ListErasedAgents", "GET /v1/erased-agents", ADMIN_EVERYWHERE, erased.list_erased_agents),
        *(erased.ListErasedAgentsRequest, erased.ErasedAgentPage, "inspect"),
    ),
    Operation(
        *(
            "VerifyErasedAgents",
            "POST /v1/erased-agents/verify",
            ADMIN_EVERYWHERE,
            erased.verify_erased_agents,
        ),
        *(erased.VerifyErasedAgentsRequest, audit.AuditVerified, "inspect"),
        examples={"what an agent remembered": {"texts": TEXTS, "agent_id": "ann"}},
    ),
    # --- files and streams
    Operation(
        *("BackupAgent", f"GET {A}/backup", ADMIN_AGENT, moving.backup_agent),
        *(AgentRequest, None, "moving"),
        kind=Kind.DOWNLOAD,
    ),
    Operation(
        *("ExportAgent", f"GET {A}/export", ADMIN_AGENT, moving.export_agent),
        *(AgentRequest, None, "moving"),
        kind=Kind.DOWNLOAD,
    ),
    Operation(
        *("RestoreAgent", f"POST {A}/restore", ADMIN_AGENT, moving.restore_agent),
        *(moving.RestoreAgentRequest, moving.Restored, "moving"),
        kind=Kind.UPLOAD,
    ),
    Operation(
        *("WatchEvents", f"GET {A}/events", events.REQUIRES, events.watch_events),
        *(events.WatchEventsRequest, events.EventInfo, "events"),
        kind=Kind.STREAM,
    ),
    # --- statements
    Operation(
        *("CreateStatement", f"POST {A}/statements", WRITE_AGENT, statements.create_statement),
        *(statements.CreateStatementRequest, statements.CreatedStatement, "statements"),
        status=lambda done: 201 if done.created else 200,
        examples=STATEMENTS,
    ),
    Operation(
        *("ListStatements", f"GET {A}/statements", READ_AGENT, statements.list_statements),
        *(statements.ListStatementsRequest, statements.StatementPage, "statements"),
    ),
    Operation(
        *("GetStatement", f"GET {A}/statements/{{node_id}}", READ_AGENT, statements.get_statement),
        *(statements.GetStatementRequest, statements.StatementInfo, "statements"),
    ),
    Operation(
        "GetStatementHistory",
        f"GET {A}/statements/{{node_id}}/history",
        READ_AGENT,
        statements.get_statement_history,
        statements.GetStatementRequest,
        statements.StatementHistory,
        "statements",
    ),
    Operation(
        "CorrectStatement",
        f"PATCH {A}/statements/{{node_id}}",
        WRITE_AGENT,
        statements.correct_statement,
        statements.CorrectStatementRequest,
        statements.CreatedStatement,
        "statements",
        examples={"value": {"object": "Braga", "reason": "I mistyped it."}},
    ),
    Operation(
        "RetractStatement",
        f"POST {A}/statements/{{node_id}}/retract",
        WRITE_AGENT,
        statements.retract_statement,
        statements.RetractStatementRequest,
        statements.StoredRuling,
        "statements",
        examples={"reason": {"reason": "It was a joke."}},
    ),
    Operation(
        "SearchStatements",
        f"POST {A}/statements/search",
        READ_AGENT,
        statement_search.search_statements,
        statement_search.SearchStatementsRequest,
        statement_search.FoundStatements,
        "statements",
        examples={"a question": {"query": "Where do I live now?"}},
    ),
    Operation(
        *("GetCauses", f"GET {A}/nodes/{{node_id}}/why", READ_AGENT, causes.get_causes),
        *(causes.GetCausesRequest, causes.Causes, "statements"),
    ),
    Operation(
        *("CreateLink", f"POST {A}/links", WRITE_AGENT, links.create_link),
        *(links.CreateLinkRequest, inspect.LinkInfo, "statements"),
        examples={"a cause": {"source": "n1", "target": "n3", "relation": "causes"}},
    ),
    Operation(
        *("SetImportance", f"PUT {A}/nodes/{{node_id}}/importance", WRITE_AGENT, links.set_importance),
        *(links.SetImportanceRequest, links.NodeImportance, "statements"),
        examples={"important": {"importance": 0.9}},
    ),
    Operation(
        *("GetProfile", f"GET {A}/profile", READ_AGENT, profile.get_profile),
        *(profile.GetProfileRequest, profile.Profile, "statements"),
    ),
    Operation(
        *("ListConflicts", f"GET {A}/conflicts", READ_AGENT, profile.list_conflicts),
        *(profile.ListConflictsRequest, profile.ConflictPage, "statements"),
    ),
    Operation(
        *("ResolveConflict", f"POST {A}/conflicts/resolve", WRITE_AGENT, profile.resolve_conflict),
        *(profile.ResolveConflictRequest, statements.StoredRuling, "statements"),
        examples={"pair": {"keep": "n1", "drop": "n3"}},
    ),
    Operation(
        *("MergeEntities", f"POST {A}/merges", WRITE_AGENT, profile.merge_entities),
        *(profile.MergeEntitiesRequest, statements.StoredRuling, "statements"),
        examples={"names": {"entity": "Bob", "other": "Robert"}},
    ),
    Operation(
        *("ListMerges", f"GET {A}/merges", READ_AGENT, profile.list_merges),
        *(profile.ListMergesRequest, profile.MergePage, "statements"),
    ),
    Operation(
        *("RejectMerge", f"POST {A}/merges/reject", WRITE_AGENT, profile.reject_merge),
        *(profile.MergeEntitiesRequest, statements.StoredRuling, "statements"),
        examples={"names": {"entity": "Bob", "other": "Robert"}},
    ),
    Operation(
        *("GiveFeedback", f"POST {A}/feedback", WRITE_AGENT, profile.give_feedback),
        *(profile.GiveFeedbackRequest, statements.StoredRuling, "statements"),
        examples={"pin": {"node_id": "n1", "action": "pin"}},
    ),
    Operation(
        *("ListRulings", f"GET {A}/rulings", READ_AGENT, profile.list_rulings),
        *(profile.ListRulingsRequest, profile.RulingPage, "statements"),
    ),
    Operation(
        *("UndoRuling", f"DELETE {A}/rulings/{{ruling_id}}", WRITE_AGENT, profile.undo_ruling),
        *(profile.RulingRequest, statements.StoredRuling, "statements"),
    ),
    Operation(
        *("Consolidate", f"POST {A}/consolidate", WRITE_AGENT, consolidation.consolidate),
        *(consolidation.ConsolidateRequest, consolidation.Consolidated, "statements"),
        examples={"a rehearsal": {"dry_run": True}},
    ),
    # --- records
    Operation(
        *("BatchRecords", f"POST {A}/records/batch", READ_OR_WRITE, records.batch_records),
        *(records.BatchRecordsRequest, records.RecordResults, "records"),
        examples=RECORDS,
    ),
    # --- tools
    Operation(
        *("ListTools", "GET /v1/tools", ANY_KEY, tools.list_tools),
        *(tools.ListToolsRequest, tools.ToolList, "tools"),
    ),
    Operation(
        *("GetToolPrompt", "GET /v1/tools/prompt", ANY_KEY, tools.get_tool_prompt),
        *(tools.GetToolPromptRequest, tools.ToolPrompt, "tools"),
    ),
    Operation(
        *("CallTool", f"POST {A}/tools/{{name}}", ANY_SCOPE, tools.call_tool),
        *(tools.CallToolRequest, tools.ToolResult, "tools"),
        examples=TOOL_CALLS,
    ),
    # --- the daemon
    Operation("GetMe", "GET /v1/me", ANY_KEY, service.get_me, Request, service.Me),
    Operation(
        "GetModel",
        "GET /v1/model",
        Requirement(Needs.SCOPE, (READ, ADMIN)),
        service.get_model,
        Request,
        service.ModelInfo,
    ),
    Operation(
        "GetScheduler",
        "GET /v1/scheduler",
        READ_DAEMON,
        service.get_scheduler,
        Request,
        service.SchedulerInfo,
    ),
    Operation("GetMetrics", "GET /metrics", READ_DAEMON, metrics.get_metrics, Request, kind=Kind.REST_ONLY),
    Operation(
        "GetHealth", "GET /healthz", OPEN, service.get_health, Request, service.Health, kind=Kind.REST_ONLY
    ),
    Operation(
        *("GetReadiness", "GET /readyz", OPEN, service.get_readiness, Request, service.Readiness),
        status=lambda readiness: 503 if readiness.status == "unavailable" else 200,
        kind=Kind.REST_ONLY,
    ),
)

PAGES: Mapping[str, tuple[str, Requirement]] = {
    "Home": ("GET /", OPEN),
    "OpenApi": ("GET /openapi.json", ANY_KEY),
    "Mcp": ("POST /mcp", ANY_SCOPE),
    "AgentMcp": (f"POST {A}/mcp", ANY_SCOPE),
    "Mem0": ("GET /mem0", ANY_KEY),
    "Documentation": ("GET /docs", ANY_KEY),
    "DocumentationStart": ("GET /docs/start.js", ANY_KEY),
    "DocumentationFiles": ("GET /docs/files", ANY_KEY),
    "View": ("GET /ui", OPEN),
    "ViewFiles": ("GET /ui/{path:path}", OPEN),
}
"""Routes without a verb: the documentation, the web view, and MCP and mem0's API, whose calls require what their verbs
do.
"""

OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in CATALOGUE}
"""The catalogue by name."""

REQUIREMENTS: Mapping[str, tuple[str, Requirement]] = {
    **{operation.name: (operation.route, operation.requires) for operation in CATALOGUE},
    **PAGES,
}
"""The route of each operation and page, and what it requires."""

OPEN_ROUTES = frozenset(route for route, required in REQUIREMENTS.values() if required.needs is Needs.NOTHING)
"""Routes that need no key."""
