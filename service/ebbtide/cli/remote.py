"""A running daemon, through `ebbtide_client`. Every error becomes a `Failure` with an exit code and a hint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self

from ebbtide.cli.client import CountedReader, CountedWriter, FileFormat, Json, Progress
from ebbtide.cli.credentials import NO_CREDENTIALS, Credentials
from ebbtide.cli.exit_codes import ExitCode, of_error
from ebbtide.cli.failures import Failure, in_options, new_key_command, program, sentence
from ebbtide.cli.lean_imports import lean_imports

with lean_imports("httpx._main", "h2"):
    import httpcore  # noqa: F401  httpx would import it later, with h2

    from ebbtide_client import calls, errors
    from ebbtide_client.calls import Call, PageCall
    from ebbtide_client.client import Client
    from ebbtide_client.decoding import Misfit
    from ebbtide_client.retries import Retries
    from ebbtide_client.wire import LONG_TIMEOUT_S, TIMEOUT_S

if TYPE_CHECKING:
    import httpx

FLUSH_STEP_MS = 10_000
"""A flush is requested in steps, so that progress can be shown and Ctrl-C is noticed."""

PAGE_SIZE = 1000


class RemoteClient:
    """A client of one daemon that returns JSON instead of models. It never retries: the person decides."""

    def __init__(
        self,
        url: str,
        credentials: Credentials = NO_CREDENTIALS,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        try:
            self._client = Client(
                url,
                api_key=credentials.api_key,
                verify=True if credentials.trust is None else credentials.trust,
                retries=Retries(attempts=1),
                transport=transport,
            )
        except ValueError:
            raise Failure(
                f"--url: {url!r} is not an address such as http://127.0.0.1:8420.", ExitCode.USAGE
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    # --- operations --------------------------------------------------------------------------------

    def get_me(self) -> Json:
        """Return what the key allows."""
        return self._send(calls.get_me)

    def remember(self, agent_id: str, body: Json) -> Json:
        """Store one batch."""
        return self._send(calls.remember, agent_id, **body)

    def recall(self, agent_id: str, options: Json) -> Json:
        """Recall by keywords, or answer a query."""
        return self._send(calls.recall, agent_id, **_with_range(options))

    def search(self, agent_id: str, options: Json) -> Json:
        """Find memories, best first."""
        return self._send(calls.search, agent_id, **options)

    def delete_nodes(self, agent_id: str, node_ids: list[str]) -> Json:
        """Delete memories."""
        return self._send(calls.delete_nodes, agent_id, node_ids)

    def forget_memories(self, agent_id: str, options: Json) -> Json:
        """Delete a selection for good, or return what would be deleted."""
        return self._send(calls.forget_memories, agent_id, **_with_range(options))

    def batch_records(self, agent_id: str, ops: list[Json]) -> list[Json]:
        """Read and write records. Return the result of each operation."""
        results: list[Json] = self._send(calls.batch_records, agent_id, ops)["results"]
        return results

    def list_tools(self, format: Literal["openai", "anthropic", "mcp"], lang: Literal["en", "zh"]) -> Json:  # noqa: A002
        """Return the declarations of the tools for language models."""
        return self._send(calls.list_tools, format=format, lang=lang)

    def get_tool_prompt(self, lang: Literal["en", "zh"], role: Literal["assistant", "archivist"]) -> Json:
        """Return the instructions on the tools."""
        return self._send(calls.get_tool_prompt, lang=lang, role=role)

    def call_tool(self, agent_id: str, name: str, arguments: str) -> Json:
        """Perform the call of a tool."""
        return self._send(calls.call_tool, agent_id, name, arguments)

    def create_statement(self, agent_id: str, subject: str, topic: str, value: str, **fields: Any) -> Json:
        """Store a statement."""
        return self._send(calls.create_statement, agent_id, subject, topic, value, **fields)

    def list_statements(self, agent_id: str, **filters: Any) -> list[Json]:
        """Return every statement that the filters allow."""
        return self._all(calls.list_statements, "statements", agent_id, **filters)

    def get_statement(self, agent_id: str, node_id: str) -> Json:
        """Return a statement."""
        return self._send(calls.get_statement, agent_id, node_id)

    def get_statement_history(self, agent_id: str, node_id: str) -> Json:
        """Return all versions of the topic of a statement."""
        return self._send(calls.get_statement_history, agent_id, node_id)

    def correct_statement(self, agent_id: str, node_id: str, **fields: Any) -> Json:
        """Correct a statement."""
        return self._send(calls.correct_statement, agent_id, node_id, **fields)

    def retract_statement(self, agent_id: str, node_id: str, reason: str) -> Json:
        """Retract a statement."""
        return self._send(calls.retract_statement, agent_id, node_id, reason=reason)

    def search_statements(self, agent_id: str, query: str, **options: Any) -> Json:
        """Return statements that answer a question."""
        return self._send(calls.search_statements, agent_id, query, **options)

    def get_causes(self, agent_id: str, node_id: str, depth: int) -> Json:
        """Return the paths from a node to its causes."""
        return self._send(calls.get_causes, agent_id, node_id, depth=depth)

    def create_link(self, agent_id: str, source: str, target: str, relation: str, strength: float) -> Json:
        """Create a link."""
        return self._send(calls.create_link, agent_id, source, target, relation, strength=strength)

    def set_importance(self, agent_id: str, node_id: str, importance: float) -> Json:
        """Set the importance of a node."""
        return self._send(calls.set_importance, agent_id, node_id, importance)

    def get_profile(self, agent_id: str, entity: str, **options: Any) -> Json:
        """Return what is known about a person or a thing."""
        return self._send(calls.get_profile, agent_id, entity, **options)

    def list_conflicts(self, agent_id: str) -> list[Json]:
        """Return every pair of statements that contradict each other."""
        return self._all(calls.list_conflicts, "conflicts", agent_id)

    def resolve_conflict(self, agent_id: str, keep: str, drop: str, reason: str) -> Json:
        """Settle a conflict."""
        return self._send(calls.resolve_conflict, agent_id, keep, drop, reason=reason)

    def merge_entities(self, agent_id: str, entity: str, other: str, reason: str) -> Json:
        """Treat two entities as one."""
        return self._send(calls.merge_entities, agent_id, entity, other, reason=reason)

    def list_merges(self, agent_id: str) -> list[Json]:
        """Return every proposal of a merge."""
        return self._all(calls.list_merges, "proposals", agent_id)

    def reject_merge(self, agent_id: str, entity: str, other: str, reason: str) -> Json:
        """Reject a proposal of a merge."""
        return self._send(calls.reject_merge, agent_id, entity, other, reason=reason)

    def give_feedback(self, agent_id: str, node_id: str, action: calls.Feedback, reason: str) -> Json:
        """Pin a statement, or vote on it."""
        return self._send(calls.give_feedback, agent_id, node_id, action, reason=reason)

    def list_rulings(self, agent_id: str) -> list[Json]:
        """Return every ruling in effect."""
        return self._all(calls.list_rulings, "rulings", agent_id)

    def undo_ruling(self, agent_id: str, ruling_id: str) -> Json:
        """Undo a ruling."""
        return self._send(calls.undo_ruling, agent_id, ruling_id)

    def consolidate(self, agent_id: str, *, dry_run: bool) -> Json:
        """Consolidate the statements of an agent."""
        return self._send(calls.consolidate, agent_id, dry_run=dry_run)

    def list_audit_records(self, agent_id: str) -> list[Json]:
        """Return every record of an agent's audit log."""
        return self._all(calls.list_audit_records, "records", agent_id)

    def verify_audit(self, agent_id: str, texts: list[str]) -> Json:
        """Check that an agent's audit log is intact, and whether texts were deleted."""
        return self._send(calls.verify_audit, agent_id, texts)

    def list_erased_agents(self) -> list[Json]:
        """Return every record of a deleted agent."""
        return self._all(calls.list_erased_agents, "records")

    def verify_erased_agents(self, texts: list[str]) -> Json:
        """Check that the log of deleted agents is intact, and whether they had the texts."""
        return self._send(calls.verify_erased_agents, texts)

    def flush(self, agent_id: str, timeout_ms: int = FLUSH_STEP_MS, *, extraction: bool = False) -> Json:
        """Wait until all accepted batches are digested, and statements extracted, or until the timeout."""
        return self._send(calls.flush, agent_id, timeout_ms=timeout_ms, extraction=extraction)

    def list_agents(self) -> list[Json]:
        """Return every agent."""
        return self._all(calls.list_agents, "agents")

    def get_agent(self, agent_id: str) -> Json:
        """Return an agent: parameters, counts, focus."""
        return self._send(calls.get_agent, agent_id)

    def clear_agent(self, agent_id: str) -> Json:
        """Remove everything that an agent has stored."""
        return self._send(calls.clear_agent, agent_id)

    def get_stats(self, agent_id: str, epsilon: float | None) -> Json:
        """Return how much an agent has stored; with `epsilon`, with differential privacy."""
        return self._send(calls.get_stats, agent_id, epsilon=epsilon)

    def forecast(self, agent_id: str, passes: int, memories_per_batch: int | None) -> Json:
        """Return what the next passes will shorten and forget."""
        return self._send(calls.forecast, agent_id, passes=passes, memories_per_batch=memories_per_batch)

    def list_batches(self, agent_id: str) -> list[Json]:
        """Return every batch whose state is stored."""
        return self._all(calls.list_batches, "batches", agent_id)

    def get_node(self, agent_id: str, node_id: str) -> Json:
        """Return one memory with its links."""
        return self._send(calls.get_node, agent_id, node_id)

    def create_node(self, agent_id: str, content: str, fields: Json) -> Json:
        """Create a memory from a text."""
        return self._send(calls.create_node, agent_id, content, **fields)

    def pin_node(self, agent_id: str, node_id: str) -> Json:
        """Pin a memory."""
        return self._send(calls.pin_node, agent_id, node_id)

    def unpin_node(self, agent_id: str, node_id: str) -> Json:
        """Unpin a memory."""
        return self._send(calls.unpin_node, agent_id, node_id)

    def get_focus(self, agent_id: str) -> Json:
        """Return the memories and the entities in focus."""
        return self._send(calls.get_focus, agent_id)

    def focus_node(self, agent_id: str, node_id: str) -> Json:
        """Move a node to the front of the focus. Return the focus."""
        return self._send(calls.focus_node, agent_id, node_id)

    def unfocus_node(self, agent_id: str, node_id: str) -> Json:
        """Remove a node from the focus. Return the focus."""
        return self._send(calls.unfocus_node, agent_id, node_id)

    def list_entities(self, agent_id: str) -> list[Json]:
        """Return every entity."""
        return self._all(calls.list_entities, "entities", agent_id)

    def list_messages(self, agent_id: str, metadata: Json) -> list[Json]:
        """Return every stored message with these values."""
        return self._all(calls.list_messages, "messages", agent_id, metadata=metadata)

    def get_attachment(self, agent_id: str, message: str, index: int) -> bytes:
        """Return the content of an attachment."""
        _refuse_bytes(message)
        with self._translated():
            return self._client.get_attachment(agent_id, message, index)

    def list_nodes(
        self, agent_id: str, kinds: Sequence[str], metadata: Json, ids: Sequence[str]
    ) -> list[Json]:
        """Return living nodes: of these kinds, every memory made from what was said, or those with these ids."""
        return self._all(calls.list_nodes, "nodes", agent_id, kinds=kinds, metadata=metadata, ids=ids)

    def watch_events(self, agent_id: str, after: int | None, *, follow: bool) -> Iterator[Json]:
        """Yield the events of an agent, with `follow` without end."""
        with self._translated():
            for event in self._client.watch_events(agent_id, after=after, follow=follow):
                yield asdict(event)

    # --- files -------------------------------------------------------------------------------------

    def download(self, agent_id: str, form: FileFormat, file: BinaryIO, progress: Progress) -> None:
        """Write the backup or the export of an agent to a file."""
        fetch = self._client.backup_agent if form == "backup" else self._client.export_agent
        with self._translated(LONG_TIMEOUT_S):
            fetch(agent_id, CountedWriter(file, progress))

    def upload(
        self, agent_id: str, file: BinaryIO, *, replace: bool, rename: bool, progress: Progress
    ) -> Json:
        """Restore an agent from a file."""
        source = CountedReader(file, progress)
        with self._translated(LONG_TIMEOUT_S):
            restored = self._client.restore_agent(agent_id, source, replace=replace, rename=rename)
        return asdict(restored)

    # --- sending -----------------------------------------------------------------------------------

    def _send(self, build: Callable[..., Call[Any]], *args: Any, **options: Any) -> Json:
        _refuse_bytes([args, options])
        with self._translated():
            call = replace(build(*args, **options), parse=_as_json)
        with self._translated(LONG_TIMEOUT_S if call.is_long else TIMEOUT_S + call.waits_s):
            return self._client.send(call)

    def _all(
        self, build: Callable[..., PageCall[Any, Any]], field: str, *args: Any, **options: Any
    ) -> list[Json]:
        found: list[Json] = []
        token = ""
        while True:
            page = self._send(build, *args, **options, page_size=PAGE_SIZE, page_token=token)
            found += page.get(field, [])
            token = page.get("next_page_token", "")
            if not token:
                return found

    @contextmanager
    def _translated(self, timeout_s: float = TIMEOUT_S) -> Iterator[None]:
        """Raise a Failure for every error of the client."""
        try:
            yield
        except errors.EbbtideError as error:
            raise self._failure(error, timeout_s) from None

    def _failure(self, error: errors.EbbtideError, timeout_s: float) -> Failure:
        if isinstance(error, errors.UnexpectedAnswer) or error.reason == "FROM_A_PROXY":
            return Failure(
                f"The server at {self.url} is not an Ebbtide daemon (HTTP {error.http_status}).",
                ExitCode.UNREACHABLE,
                hint="Pass the daemon's address with --url.",
                ends_all=True,
            )
        if not isinstance(error, errors.ConnectionFailed):
            return refusal(error)
        text, hint = {
            "NOT_CONNECTED": (f"No daemon answers at {self.url}.", _START),
            "CONNECTION_LOST": (f"The connection to {self.url} was lost.", _START + self._tls_hint()),
            "NO_ANSWER_IN_TIME": (
                f"The daemon did not answer within {timeout_s:.0f} s at {self.url}.",
                "It may still be working; see its log.",
            ),
            "CERTIFICATE_NOT_TRUSTED": (
                f"The certificate of {self.url} is not trusted.",
                "Pass the certificate authority that signed it with --ca-file.",
            ),
            "TLS_NOT_SPOKEN": (
                f"The server at {self.url} does not use TLS.",
                f"Pass --url {errors.without_tls(self.url)}.",
            ),
        }.get(error.reason, (sentence(error.message), ""))
        is_general = error.reason in ("NOT_CONNECTED", "CERTIFICATE_NOT_TRUSTED", "TLS_NOT_SPOKEN")
        hint = hint.replace("{program}", program())  # an address may contain braces
        return Failure(text, ExitCode.UNREACHABLE, hint=hint, ends_all=is_general)

    def _tls_hint(self) -> str:
        # A server with TLS closes a connection without it, often without a response.
        scheme, _, rest = self.url.partition("://")
        return f" If the daemon uses TLS, pass --url https://{rest}." if scheme == "http" else ""


_START = "Start one with `{program} serve`, or pass the address of another with --url."


def refusal(error: errors.EbbtideError) -> Failure:
    """Return the failure for an error response: one sentence with the reason in brackets."""
    message, hint = in_options(error.message, error.reason)
    hint = hint or "; ".join(in_options(f"{one.field}: {one.description}")[0] for one in error.violations[1:])
    status = error.http_status or 400
    if status == 401:
        hint = f"Pass an API key with --api-key-file or EBBTIDE_API_KEY; `{new_key_command()}` creates one."
    if error.retry_after_s is not None:
        hint = f"Try again in {error.retry_after_s:.0f} s."
    return Failure(
        f"{sentence(message)} [{error.reason}]",
        of_error(error.reason, status),
        hint=hint,
        reason=error.reason,
        ends_all=status == 401,
    )


def _as_json(_: int, answer: object) -> Json:
    if not isinstance(answer, dict):
        raise Misfit("no JSON object")
    return answer


def _with_range(options: Json) -> Json:
    """Return the options with `time_range` as the client takes it."""
    span = options.get("time_range")
    return options if span is None else {**options, "time_range": (span.get("begin"), span.get("end"))}


def _refuse_bytes(value: Any) -> None:
    """Raise a Failure if a value contains bytes of the command line that are not UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # They arrive as lone surrogates.
        raise Failure("The command line contains bytes that are not UTF-8 text.", ExitCode.USAGE) from None
