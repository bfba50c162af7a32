"""Numbers of an import beyond their bounds are refused at once, over every transport and offline."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.cli.app import main
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.ids import AgentId
from ebbtide.store.integrity.check import check_store
from tests.support.callers import CALLERS, MOSTLY_REST, CallerIn, reason_of
from tests.support.moving import directory
from tests.support.using import used

ANN = "/v1/agents/ann"

HEADER = {"type": "header", "format": "ebbtide-export", "version": 2, "ebbtide_version": "0.1.0", "agent_id": "ann",
          "exported_at": 1_795_301_931_388}  # fmt: skip
AGENT = {"type": "agent", "agent_id": "ann", "created_at": 0, "seed": "7", "parameters": {}}
MESSAGE = {
    "type": "message",
    "number": 1,
    "batch": 1,
    "index": 0,
    "role": "user",
    "accepted_at": 5,
    "content": "a b c",
}
BATCH = {"type": "batch", "number": 1, "accepted_at": 5, "first_message": 1, "message_count": 1, "state": "waiting",
         "position": 1}  # fmt: skip
NODE = {"type": "node", "id": 1, "content": "a b c", "created_at": 5, "original_length": 5,
        "sources": [{"message": 1, "offset": 0, "length": 5}], "batch": 1}  # fmt: skip
ENTITY = {"type": "entity", "id": 2, "name": "Lisbons", "key": "lisbon", "named_by": 1}
RELATION = {"type": "relation", "id": 1, "name": "next"}
LINK = {"type": "link", "source": 1, "target": 1, "relation": "next", "strength": 0.5, "anchor": 0}
RECORD = {
    "type": "record",
    "namespace": ["n"],
    "key": "k",
    "value": {},
    "version": 1,
    "created_at": 5,
    "updated_at": 5,
}
NEXT = {
    "next_node": 3,
    "next_message": 2,
    "next_batch": 2,
    "next_position": 2,
    "next_relation": 2,
    "next_record_version": 2,
}

FAR = (-1, 2**53 + 1, 2**63, 2**64 - 1, 10**30)


def export(agent: dict[str, Any] | None = None, **changes: dict[str, Any]) -> bytes:
    """Return an export of one line of each type, with some fields changed, by the type of the line."""
    lines = [HEADER, AGENT | NEXT | (agent or {}), RELATION, MESSAGE, BATCH, NODE, ENTITY, RECORD, LINK]
    lines = [line | changes.get(str(line["type"]), {}) for line in lines]
    end = {"type": "end", "lines": len(lines)}
    return b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, end])


def tiny(**agent: Any) -> bytes:
    """Return the export of an empty agent."""
    lines = [HEADER, AGENT | agent, {"type": "end", "lines": 2}]
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


CASES: dict[str, bytes] = {
    "texts_from": tiny(texts_from=4611686018427387904),
    "texts_from beyond the messages": tiny(texts_from=1 << 40),
    "decay_rate": tiny(decay_rate=1e308),
    "decay_rate of 0": tiny(decay_rate=0.0),
    "decay_rate as a parameter": tiny(parameters={"decay_rate": 1e308}),
    "a seed of 30 digits": tiny(seed="9" * 30),
    "a seed beyond 63 bits": tiny(seed=str(2**63)),
    "a seed below 0": tiny(seed="-1"),
    "a seed in other digits": tiny(seed="１２"),
    "created_at": tiny(created_at=10**30),
    "a focus too long": tiny(focus=list(range(1, 66))),
    "passes owed": tiny(owed_passes=100_001),
    "a timestamp": export(message={"timestamp": 2**63}),
    "a timestamp of the year 10000": export(message={"timestamp": 253_402_300_800_000}),
    "a strength": export(link={"strength": 1e308}),
    "an anchor": export(link={"anchor": 2**31}),
    "a content beyond its lines": export(batch={"message_count": 2**31}),
    "scans that never were": export(node={"scans": 7, "last_pass": 0}),
    "a parameter that is a list": tiny(parameters={"focus_limit": [[]] * 1000}),
    "very many parameters": tiny(parameters={f"p{number}": 1 for number in range(101)}),
    "very many nodes of a batch": export(batch={"nodes": [1] * 5_000_001}),
    "an entity with a control character": export(entity={"name": "lis\x07bon", "key": "lis\x07bon"}),
    "an entity that turns the text": export(entity={"name": "lisbon\u202e"}),
    "an entity of 500 letters": export(entity={"name": "a" * 500, "key": "a" * 500}),
    "an entity of one mark": export(entity={"name": "!", "key": "!"}),
    "an entity under the key of another name": export(entity={"key": "porto"}),
    "metadata longer than any": export(message={"metadata": {"a": "x" * (2 << 20)}}),
    "metadata nested 1000 deep": export(message={"metadata": json.loads('{"a":' * 900 + "1" + "}" * 900)}),
    **{
        f"{name} = {far}": tiny(**{name: far})
        for name in (*NEXT, "next_digested", "finished_passes")
        for far in FAR
    },
    "a record under no label": export(record={"namespace": []}),
    "a record with a value that is a list": export(record={"value": []}),
    "a record nested too deeply": export(record={"value": json.loads('{"a":' * 31 + "1" + "}" * 31)}),
    "a record of a version to come": export(record={"version": 9}),
    "a record of version 0": export(record={"version": 0}),
    **{f"node id {far}": export(node={"id": far}) for far in FAR},
    **{f"message number {far}": export(message={"number": far}) for far in FAR},
    **{f"batch number {far}": export(batch={"number": far}) for far in FAR},
}


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def test_numbers_beyond_their_bounds_are_refused(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each number is refused at once with the name of its line; nothing is left behind, and the agent stays."""
    async with caller_in(tmp_path) as call:
        assert (await call.upload(f"{ANN}/restore", export())).status_code == 200
        before = (await call("GET", ANN)).json()
        for name, content in CASES.items():
            async with asyncio.timeout(20):
                answer = await call.upload(f"{ANN}/restore", content, replace=True)
            assert answer.status_code == 400, name
            assert reason_of(answer) in ("BACKUP_UNREADABLE", "INVALID_PARAMETERS"), (name, answer.text)
        after = (await call("GET", ANN)).json()
        assert after["created_at"] == before["created_at"] and after["counts"]["messages"] == 1
        await used(call, ANN)


def test_offline_they_are_refused_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`ebbtide import --data-dir` applies the same bounds, and creates no agent."""
    for number, (name, content) in enumerate(CASES.items()):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(content)
        with pytest.raises(SystemExit) as ended:
            main(["import", str(file), "--data-dir", str(tmp_path / "data")])
        assert ended.value.code == ExitCode.REFUSED, (name, capsys.readouterr())
    with directory(tmp_path / "data") as data:
        assert list(data.directories()) == [] and not list(data.transfers.iterdir())


async def test_an_agent_at_the_bounds_works(tmp_path: Path, caller_in: CallerIn) -> None:
    """An agent with the highest accepted numbers supports every operation, and the checker finds no fault."""
    half, count = 2**52, 2**30 - 1
    far = half - 1
    highest = dict.fromkeys(NEXT, half) | {"next_relation": count, "next_digested": half}
    agent = highest | {"finished_passes": count, "seed": str(2**63 - 1), "created_at": 253_402_300_799_999,
                       "focus": [far], "decay_rate": 1.0, "texts_from": far, "owed_passes": 3}  # fmt: skip
    content = export(
        agent,
        relation={"id": count - 1},
        message={"number": far, "batch": far, "timestamp": -62_135_596_800_000},
        batch={"number": far, "first_message": far, "position": far},
        node={"id": far, "batch": far, "sources": [{"message": far, "offset": 0, "length": 5}], "scans": count,
              "last_pass": count},
        link={"source": far, "target": far, "anchor": 3},
    )  # fmt: skip
    async with caller_in(tmp_path) as call:
        answer = await call.upload(f"{ANN}/restore", content)
        assert answer.status_code == 200, answer.text
        async with asyncio.timeout(60):
            await used(call, ANN)
        async with call.service.fleet.using(AgentId("ann")) as open_agent:
            assert await open_agent.run(lambda: check_store(open_agent.workspace.store)) == []
