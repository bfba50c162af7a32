"""Files of agents with every kind of record, for tests of import and restore.

Each agent has several digested batches, a parked and a waiting one, a focus, vectors, shortened and forgotten
memories, dangling links, a corrected and a deleted memory, an erased message, metadata, personal data,
attachments, several scripts, a statement with rulings, a concept, and a compression pass in progress.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ebbtide.changes import Change
from ebbtide.fleet.compression import passes
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import AgentId
from ebbtide.language.port import BadReply
from ebbtide.parameters import AgentParameters
from ebbtide.records import Concept, Link, Node, Source
from ebbtide.statements import Assertion, LedgerState, Ruling
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.integrity.check import check_store
from tests.support.callers import RestCaller
from tests.support.in_process import service_in
from tests.support.moving import MAPS, sent
from tests.support.scripted_model import ScriptedModel

KINDS: dict[str, dict[str, Any]] = {
    "scan": {"pii": "tag", "decay_rate": 0.8, "focus_limit": 3, "min_shrink": 0.05},
    "slots": {
        "strategy": "slots",
        "max_nodes": 110,
        "focus_limit": 4,
        "compression_batch_size": 8,
        "decay_rate": 0.7,
    },
    "withdrawn": {"retention": "none", "locale": "en", "decay_rate": 0.9},
}
"""The parameters of each agent."""

SAID = (
    "I moved to Lisbon in May. My cat Miso came along by train. Call me at +44 20 7946 0958 about Project Heron.",
    "林月五月搬到了青岛，住在海边。她的外婆做得一手好菜。",
    "Clara builds wooden boats in Porto. On Friday she sails to Lisbon with her brother Tomás 🚣‍♀️.",
    "The harbour smells of tar and oranges in the morning. Project Heron starts there.",
    "Zoë naïvely wrote cafe\u0301 twice; mail her at zoe@example.com before the 3rd of June.",
)


ATTACHED = [
    {
        "mime": "image/png",
        "bytes": base64.b64encode(bytes(range(200, 256))).decode(),
        "caption": "A lighthouse 灯塔.",
        "regions": [
            {"box": [0.25, 0.5, 0.25, 0.5], "caption": "Its red lantern."},
            {"page": 2, "begin_ms": 0, "end_ms": 900},
        ],
    }
]


RECORDS = [
    {
        "op": "put",
        "namespace": ["旅行", "Lisbon"],
        "key": "hôtel",
        "value": {"n": [1, 2.5, None, {"ok": True}]},
        "index": ["n[*].text"],
    },
    {"op": "put", "namespace": ["旅行"], "key": "gone", "value": {}},
    {
        "op": "put",
        "namespace": ["cache"],
        "key": "x",
        "value": {"mail": "🚣"},
        "ttl_minutes": 600,
        "no_index": True,
    },
    {"op": "delete", "namespace": ["旅行"], "key": "gone"},
]


async def files(path: Path, names: tuple[str, ...] = tuple(KINDS)) -> dict[tuple[str, str], bytes]:
    """Return the export and the backup of each agent, by (agent, form)."""
    for name in names:
        await _lived(path, name)
    data = DataDirectory(path, **MAPS)
    data.acquire()
    found: dict[tuple[str, str], bytes] = {}
    try:
        for name in names:
            store = data.open_store(AgentId(name))
            store.write(_state)
            workspace = Workspace(store, AgentParameters())
            workspace.passes.owe(2)
            with patch.object(passes, "MIN_VISITS_PER_GROUP", 2):
                workspace.passes.compress([], lambda: True)
            assert store.read(lambda txn: txn.meta.pass_state) is not None, "a pass is under way"
            assert check_store(store) == []
            for form in ("export", "backup"):
                found[name, form] = sent(data, store, form)
            store.close()
    finally:
        data.release()
    return found


def _state(txn: Any) -> None:
    """Write a statement about an entity, said in the first message that was not erased, with rulings and a concept."""
    record = next(one for one in txn.messages.all() if one.role)
    said, entity = txn.messages.text(record) or "", next(txn.entities.all())
    text = said or "外婆做菜很好吃。"
    node, source = txn.meta.next_node_id, Source(record.number, 0, len(said.encode()))
    txn.apply(
        Change(
            nodes=[Node(node, text, "", (entity.name,), 5, len(text), kind="preference", sources=(source,))],
            links=[Link(entity.id, node, "likes", 0.7, 0), Link(node, entity.id, "likes", 0.7, 0)],
            concepts=[Concept(node + 1, (entity.name, "🍲"), (entity.id, node), 1_795_000_000_000)],
            next_node_id=node + 2,
            assertions=[
                Assertion(
                    1,
                    node,
                    entity.id,
                    "likes",
                    "外婆的菜 🍲",
                    source,
                    record.time_ms,
                    1_795_000_000_000,
                    kind="preference",
                    since_ms=-5_000_000_000_000,
                    granularity="year",
                    time_words="1811",
                    attributes={"how": "very much"},
                    valence=0.5,
                    arousal=0.25,
                    scope="team",
                )
            ],
            rulings=[
                Ruling(2, "vote", node, 1_795_000_000_001, value=-1, author="tool:x"),
                Ruling(3, "retract", node, 1_795_000_000_002, reason="搞错了", sources=(source,)),
                Ruling(4, "undo", 3, 1_795_000_000_003),
            ],
            ledger=LedgerState(5, record.number),
        )
    )


async def _lived(path: Path, name: str) -> None:
    model = ScriptedModel()
    async with service_in(path, model, language={"park_after_attempts": 1}) as service:
        await _live(RestCaller(service), f"/v1/agents/{name}", KINDS[name], model)


async def _live(call: RestCaller, agent: str, parameters: dict[str, Any], model: ScriptedModel) -> None:
    await _done(call("PUT", agent, parameters))
    for round_number in range(2):
        for number, text in enumerate(SAID):
            await _remember(call, agent, f"{round_number}-{number}", text, " ".join(reversed(SAID)))
        await _flush(call, agent)
    await _done(
        call("PATCH", f"{agent}/nodes/n2", {"content": "Miso is a very old cat now.", "keywords": ["Miso"]})
    )
    await call("DELETE", f"{agent}/nodes/n3")
    await _done(call("POST", f"{agent}/forget", {"messages": ["m4"]}))
    await _done(call("POST", f"{agent}/records/batch", {"ops": RECORDS}))
    for _ in range(3):
        await _done(call("POST", f"{agent}/compress", {"passes": 3}))
        await _flush(call, agent)
    model.script["segment"].extend([BadReply("told so")] * 3)
    await _remember(call, agent, "parked", "This one is parked. 😀")
    await _flush(call, agent)
    model.always["segment"] = 60.0
    await _remember(call, agent, "waits", "This one waits for its turn.", "And so does this.")


async def _remember(call: RestCaller, agent: str, key: str, *texts: str) -> None:
    messages = [
        {
            "role": ("user", "assistant")[index % 2],
            "content": text,
            "speaker": "Ann" if index % 2 == 0 else "",
            "id": f"{key}/{index}",
            "attachments": ATTACHED if index % 2 else [],
            "timestamp": (1_683_554_400_000, None, -5_000_000_000_000)[index % 3],
            "metadata": {"mood": "calm", "n": index, "share": 0.5, "ok": True},
        }
        for index, text in enumerate(texts)
    ]
    body = {
        "messages": messages,
        "conversation_id": f"c{key[:1]}",
        "metadata": {"topic": "旅行", "nested": {"list": [1, 2.5, None, "x"]}},
        "idempotency_key": key,
    }
    await _done(call("POST", f"{agent}/remember", body))


async def _flush(call: RestCaller, agent: str) -> None:
    await _done(call("POST", f"{agent}/flush", {"passes": True, "vectors": True, "timeout_ms": 60_000}))


async def _done(answer: Any) -> None:
    response = await answer
    assert response.status_code < 300, response.text
