"""forget: what an agent was told is taken away for good, with all that was made of it, from its files too.

The story: check → look the selection up, in short jobs (`fleet/deletion/selection.py`) → `dry_run` ends here → erase
it, a few milliseconds at a time, each step one commit with its own audit record (`fleet/deletion/erasure.py`) → one
job that writes the store anew without what was erased (`compact` in `store/lmdb/lmdb_store.py`). Requests of the
agent are answered between the steps; only the last one holds them up, as long as its store is large.

Once it erases it goes on to its end also when whoever asked goes away. Where the daemon is killed, what is erased stays
erased, the compaction is made up for at the next start, and asking again finds what is left.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from pydantic import Field

from ebbtide.actor import actor
from ebbtide.errors import Exhausted, Unavailable
from ebbtide.fleet.deletion.erasure import Erasure, Tally
from ebbtide.fleet.deletion.selection import OffloadedTopic, Selection, SelectionSearch
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.shared import Budget
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import AgentId, message_number, message_text_id, node_text_id, parse_agent_id, parse_node_id
from ebbtide.privacy.spans import redacted
from ebbtide.retrieval.topic import Topic
from ebbtide.settings import LimitSettings
from ebbtide.store.chain import AuditRecord
from ebbtide.telemetry import get_log, in_background
from ebbtide.verbs.door import Door
from ebbtide.verbs.forms import Answer, Form, Several, check_count, check_text, refuse
from ebbtide.verbs.recall import TimeRange
from ebbtide.verbs.service import Service

MOST_NAMED = 1000
"""Nodes, messages, conversations or speakers that one request may name."""

MOST_TOLD = 1000
"""Ids and proofs that an answer lists; all are counted."""


class ForgetCommand(Form):
    """What to forget for good."""

    nodes: Several[str] = Field(default_factory=list, description="These memories.", examples=[["n1"]])
    messages: Several[str] = Field(
        default_factory=list,
        description="These messages, as search and sources name them.",
        examples=[["m1"]],
    )
    topic: str | None = Field(
        None, description="Every sentence and memory that names this.", examples=["Project Heron"]
    )
    time_range: TimeRange | None = Field(None, description="What was said in this stretch of time.")
    conversations: Several[str] = Field(
        default_factory=list, description="What was said in these conversations."
    )
    speakers: Several[str] = Field(default_factory=list, description="What these speakers said.")
    dry_run: bool = Field(False, description="Only tell what would go.")


class ForgetCounts(Answer):
    """How much goes, or went."""

    nodes: int = Field(description="Memories.")
    links: int = Field(description="Links that started or ended at them; 0 in a dry run.")
    messages: int = Field(description="Messages of which nothing is left.")
    batches: int = Field(description="Batches of which nothing is left; 0 in a dry run.")
    bytes: int = Field(description="Bytes of what was said.")
    relations: int = Field(description="Links that stay without their names, since these told of it.")


class ForgetProof(Answer):
    """What vouches for it: records of the audit log, and keyed hashes of the texts."""

    first_record: int = Field(description="The first record of it; 0 where nothing was there.")
    last_record: int = Field(description="The last record of it.")
    record_hash: str = Field(description="The hash of the last record, hexadecimal.")
    hmacs: list[str] = Field(description="HMAC-SHA256 of each erased text, hexadecimal; the first 1000.")
    hmac_count: int = Field(description="How many there are in all.")


class Forgotten(Answer):
    """What is gone, or in a dry run would go."""

    dry_run: bool
    counts: ForgetCounts
    nodes: list[str] = Field(description="The memories; the first 1000.")
    messages: list[str] = Field(description="The messages that go whole; the first 1000.")
    partly: list[str] = Field(description="Messages of which only sentences go; the first 1000.")
    also_found_in: list[str] = Field(
        description="Memories and messages that tell of it too, and stay; the first 1000."
    )
    also_found_count: int = Field(description="How many there are in all.")
    proof: ForgetProof
    compacted: bool = Field(description="Whether the files hold no byte of it any more.")


async def forget(service: Service, agent_id: str, command: ForgetCommand) -> Forgotten:
    """Forget a selection for good, or tell what it is. InvalidRequest where nothing is selected.

    What no longer exists is passed over: asking again is harmless, and makes up for a compaction that failed.
    """
    owner = parse_agent_id(agent_id)
    selection = check_forget(command, service.settings.limits)
    asker = actor()
    if command.dry_run:
        async with service.fleet.using(owner) as agent:
            look = await _looked_up(service, agent, selection, command)
            _, relation_count = await agent.run(partial(agent.workspace.links_to_scrub, look))
            return _told(look, _Done(), relation_count)
    erasing = in_background(_forget(service, owner, selection, command, asker))
    # What is begun ends: half a selection gone is nothing that anybody has asked for.
    erasing.add_done_callback(lambda task: None if task.cancelled() else task.exception())
    return await asyncio.shield(erasing)


def check_forget(command: ForgetCommand, limits: LimitSettings) -> Selection:
    """The selection; refused where it selects nothing, or is outside the limits."""
    for name in ("nodes", "messages", "conversations", "speakers"):
        check_count(name, len(getattr(command, name)), MOST_NAMED)
    for name in ("conversations", "speakers"):
        for index, text in enumerate(getattr(command, name)):
            check_text(f"{name}[{index}]", text, limits.max_name_chars)
            if not text.strip():
                refuse(f"{name}[{index}]", text, "a name; an empty one would select whatever has none")
    time = command.time_range or TimeRange()
    if command.time_range is not None and (time.begin, time.end) == (None, None):
        refuse("time_range", {}, "begin, end, or both: without either, DELETE erases the agent")
    if None not in (time.begin, time.end) and time.begin >= time.end:  # type: ignore[operator]
        refuse("time_range.end", time.end, "later than begin")
    selection = Selection(
        nodes=frozenset(map(parse_node_id, command.nodes)),
        messages=frozenset(_message(index, text) for index, text in enumerate(command.messages)),
        conversations=frozenset(command.conversations),
        speakers=frozenset(command.speakers),
        begin_ms=time.begin,
        end_ms=time.end,
        topic=None if command.topic is None else _topic(command.topic, limits),
    )
    if not selection.kinds:
        refuse("the body", {}, "something to forget: nodes, messages, topic, time_range …", "MISSING_FIELD")
    return selection


def _message(index: int, text: str) -> int:
    number = message_number(text)
    if number is None:
        refuse(f"messages[{index}]", text, "ids such as m1")
    return number


def _topic(words: str, limits: LimitSettings) -> Topic:
    check_text("topic", words, limits.max_keyword_chars)
    try:
        return Topic(words)
    except ValueError:
        refuse("topic", words, "words")


async def _looked_up(
    service: Service, agent: Agent, selection: Selection, command: ForgetCommand
) -> SelectionSearch:
    """What is selected. INVALID_VALUE where only things are that redaction has made like others."""
    look = SelectionSearch(await agent.run(partial(_as_stored, agent.workspace, selection, command)))
    store, shared = agent.workspace.store, service.fleet.shared
    while not look.is_done:
        budget = Budget(service.clock, shared.priority)
        await agent.run_step(lambda budget=budget: store.read(lambda txn: look.step(txn, budget)))  # type: ignore[misc]
    if look.redacted_count and look.is_empty:
        field = "speakers" if look.selection.redacted_speakers else "topic"
        refuse(
            field,
            getattr(command, field),
            f"what redaction left, as given here, which others may share; or the messages, such as {look.elsewhere[0]}",
        )
    return look


def _as_stored(workspace: Workspace, selection: Selection, command: ForgetCommand) -> Selection:
    """A selection that finds what was redacted too: whatever the policy is now, it may have been another one.

    An id that was redacted still tells whose it is. A speaker or a topic does not: several may have become `[email]`.
    """
    door = Door(workspace.parameters, workspace.identity)
    speakers = frozenset(map(redacted, command.speakers)) - selection.speakers
    topic = None if command.topic is None else redacted(command.topic)
    return replace(
        selection,
        conversations=frozenset(form for one in command.conversations for form in door.forms(one)),
        topic=selection.topic and OffloadedTopic(selection.topic, workspace.texts),
        redacted_speakers=speakers,
        redacted_topic=None
        if topic is None or topic == command.topic
        else OffloadedTopic(Topic(topic), workspace.texts),
    )


@dataclass(slots=True)
class _Done:
    """What was erased."""

    tally: Tally | None = None
    records: list[AuditRecord] = field(default_factory=list)
    is_compacted: bool = False


async def _forget(
    service: Service, owner: AgentId, selection: Selection, command: ForgetCommand, asker: str
) -> Forgotten:
    async with service.fleet.using(owner) as agent:
        look = await _looked_up(service, agent, selection, command)
        links, _ = await agent.run(partial(agent.workspace.links_to_scrub, look))
        erasure, done = Erasure.of(look, links), _Done(Tally())
        assert done.tally is not None
        while not erasure.is_done:
            step = await agent.erase(erasure, asker)
            done.tally.add(step.tally)
            done.records += [step.record] if step.record is not None else []
        # Also where nothing was found: nobody finds what was deleted before, and the file may hold it.
        if await agent.run(agent.workspace.holds_leftovers):
            done.is_compacted = await _compacted(agent)
        if done.tally.message_count and agent.embedding is not None:
            agent.embedding.notice()
    return _told(look, done)


async def _compacted(agent: Agent) -> bool:
    """Whether the store could be written anew; where there is no room for that it stays due."""
    try:
        await agent.compact()
    except (Exhausted, Unavailable) as error:
        get_log("forget").warning("compaction waits", agent_id=agent.id, reason=error.reason)
        return False
    return True


def _told(look: SelectionSearch, done: _Done, relation_count: int = 0) -> Forgotten:
    tally = done.tally or Tally(len(look.nodes), 0, len(look.gone_whole), 0, look.byte_count, relation_count)
    hmacs = [proof.hex() for record in done.records for proof in record.proofs]
    first, last = (done.records[0], done.records[-1]) if done.records else (None, None)
    return Forgotten(
        dry_run=done.tally is None,
        counts=ForgetCounts(
            nodes=tally.node_count,
            links=tally.link_count,
            messages=tally.message_count,
            batches=tally.batch_count,
            bytes=tally.byte_count,
            relations=tally.relation_count,
        ),
        nodes=list(map(node_text_id, islice(look.nodes, MOST_TOLD))),
        messages=list(map(message_text_id, islice(look.gone_whole, MOST_TOLD))),
        partly=list(map(message_text_id, islice(look.partially_erased, MOST_TOLD))),
        also_found_in=look.elsewhere,
        also_found_count=look.elsewhere_count,
        proof=ForgetProof(
            first_record=0 if first is None else first.number,
            last_record=0 if last is None else last.number,
            record_hash="" if last is None else last.hash.hex(),
            hmacs=hmacs[:MOST_TOLD],
            hmac_count=len(hmacs),
        ),
        compacted=done.is_compacted,
    )
