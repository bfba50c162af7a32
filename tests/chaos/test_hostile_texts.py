"""Texts that are slow to process delay other agents by less than a second of CPU time, and a stop succeeds.

Each text is sent as a message, a question, a topic, a correction, a parameter and a body. Meanwhile the test queries
another agent repeatedly; its slowest response counts. The short form sends some of the texts, `make chaos` all.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.onlooker import looking_on
from tests.support.process import Daemon, running_daemon
from tests.support.tier import IS_ALL

pytestmark = pytest.mark.chaos

QUIET = {"EMBEDDING__MODEL": "off"}
GROWTH_BYTES = 200 << 20

FAMILIES: dict[str, Callable[[int], str]] = {
    "dots": lambda n: "hm" + "." * n + "x",
    "marks": lambda n: "a" + ("\u0315\u0300" * n)[: n - 1],
    "more marks": lambda n: ("\u0c55\u0f39\u0345\u1dce" * n)[:n],
    "spaces": lambda n: "中" + " " * (n - 2) + "é",
    "no-width": lambda n: "red\u200bboat" + "\u200b" * n,
    "think": lambda n: "<think>" * (n // 7),
    "braces": lambda n: '{"a":' * (n // 5),
    "brackets": lambda n: "[" * n,
    "quotes": lambda n: "“" * n,
    "digits": lambda n: "1" * n,
    "separated digits": lambda n: "1-" * (n // 2),
    "addresses": lambda n: "a@" * (n // 2),
    "dotted name": lambda n: "a." * (n // 2) + "@",
    "url": lambda n: "http://" + "a/" * (n // 2),
    "newlines": lambda n: "\n" * n + "x",
    "tabs": lambda n: "x" + "\t \r\n" * (n // 4),
    "han": lambda n: "的" * n,
    "mixed": lambda n: "中a" * (n // 2),
    "kana": lambda n: "あア" * (n // 2),
    "hangul": lambda n: "\u1100\u1161" * (n // 2),
    "thai": lambda n: "ก\u0e34" * (n // 2),
    "emoji": lambda n: "👩\u200d" * (n // 2),
    "capitals": lambda n: "Aa" * (n // 2),
    "names": lambda n: "Mr. " * (n // 4),
    "dates": lambda n: "2026-" * (n // 5),
    "chinese dates": lambda n: "二〇二六年" * (n // 5),
    "next": lambda n: "the next " * (n // 9) + "day",
    "ands": lambda n: " and" * (n // 4) + "?",
    "ask": lambda n: "what?" * (n // 5),
    "underscores": lambda n: "_" * n,
    "hex": lambda n: "0" * n + "g",
    "base64": lambda n: "A" * n + "==",
    "key": lambda n: "sk-" + "a-" * (n // 2),
    "token": lambda n: "eyJ" + "a." * (n // 2),
    "password": lambda n: "password " * (n // 9),
    "slashes": lambda n: "/" * n,
    "backslashes": lambda n: "\\" * n,
    "commas": lambda n: "a," * (n // 2),
    "long word": lambda n: "e" * n,
    "apostrophes": lambda n: "a'" * (n // 2),
    "dashes": lambda n: "—" * n,
    "ellipses": lambda n: "…" * n,
}
SHORT_FORM = ("marks", "think", "separated digits")
CHOSEN = list(FAMILIES) if IS_ALL else list(SHORT_FORM)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with another agent that remembers something."""
    with running_daemon(tmp_path_factory.mktemp("hostile") / "data", QUIET) as made:
        made.remember("other", "The kettle is blue.")
        made.flush("other")
        yield made


def resident_bytes(daemon: Daemon) -> int:
    """Return the resident memory of the daemon without its worker processes."""
    pages = int(Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def requests_with(text: str) -> Iterator[tuple[str, str, Any]]:
    """Yield every request that can contain a text: method, path, body."""
    agent = "/v1/agents/ann"
    yield "POST", f"{agent}/remember", {"messages": [{"role": "user", "content": text}]}
    turns = [{"role": "user", "speaker": "Ann", "content": text[:2000]}] * 50
    yield "POST", f"{agent}/remember", {"messages": turns, "idempotency_key": text[:100]}
    yield "POST", f"{agent}/recall", {"query": text[:10_000], "citations": True, "token_budget": 500}
    yield (
        "POST",
        f"{agent}/recall",
        {"query": "kettle " + text[:9000], "key_sentences": True, "token_budget": 50},
    )
    yield "POST", f"{agent}/recall", {"keywords": [text[:200]] * 64}
    yield "POST", f"{agent}/search", {"query": text[-10_000:]}
    yield "PATCH", f"{agent}/nodes/n1", {"content": text}
    yield "POST", f"{agent}/forget", {"topic": text[:200], "dry_run": True}
    yield "POST", f"{agent}/forget", {"topic": "boat", "dry_run": True}
    yield "PUT", f"{agent}2", {"pii": text}


@pytest.mark.parametrize("family", CHOSEN)
def test_no_text_stalls_another_agent(daemon: Daemon, family: str) -> None:
    """With 100 000 characters of each family in every field for text, other agents wait less than a second."""
    text = FAMILIES[family](100_000)
    before = resident_bytes(daemon)
    daemon.client.put("/v1/agents/ann", json={"pii": "redact"})
    daemon.remember("ann", "The kettle is red.")
    with looking_on(daemon, "other", is_known=True):
        for method, path, body in requests_with(text):
            response = daemon.client.request(method, path, json=body, timeout=120)
            assert response.status_code < 500, (path, response.text)
        daemon.flush("ann", timeout_ms=100_000)
    assert resident_bytes(daemon) - before < GROWTH_BYTES
    assert daemon.client.delete("/v1/agents/ann").status_code == 200


BODIES: dict[str, Callable[[], bytes]] = {
    "empty lists": lambda: b'{"messages": [' + b"[]," * 2_700_000 + b"[]]}",
    "empty objects": lambda: b'{"messages": [' + b"{}," * 2_700_000 + b"{}]}",
    "nested lists": lambda: b'{"messages": ' + b"[" * 4_000_000,
    "small messages": lambda: (
        b'{"messages": [' + b",".join(itertools.repeat(b'{"role":"user","content":""}', 280_000)) + b"]}"
    ),
    "numbers": lambda: b'{"keywords": [' + b"1," * 4_000_000 + b"1]}",
    "words": lambda: b'{"keywords": [' + b'"",' * 2_700_000 + b'""]}',
    "fields": lambda: json.dumps({f"k{n}": n for n in range(450_000)}).encode(),
    "digits": lambda: b'{"max_results": ' + b"9" * 8_000_000 + b"}",
    "escapes": lambda: b'{"query": "' + b"\\u0301" * 1_300_000 + b'"}',
    "metadata": lambda: b'{"messages": [], "metadata": {"a": [' + b"[]," * 2_700_000 + b"[]]}}",
}


@pytest.mark.parametrize("kind", list(BODIES) if IS_ALL else ["small messages"])
def test_no_body_stalls_another_agent(daemon: Daemon, kind: str) -> None:
    """Eight megabytes of the smallest values, sent to every route with a body, are refused in time."""
    body = BODIES[kind]()
    before = resident_bytes(daemon)
    headers = {"Content-Type": "application/json"}
    with looking_on(daemon, "other", is_known=True):
        for path in ("ann/remember", "ann/recall", "other/recall", "other/search", "other/forget"):
            response = daemon.client.post(f"/v1/agents/{path}", content=body, headers=headers, timeout=120)
            assert 400 <= response.status_code < 500, (path, response.text[:300])
        response = daemon.client.put("/v1/agents/ann", content=body, headers=headers, timeout=120)
        assert 400 <= response.status_code < 500
    assert resident_bytes(daemon) - before < GROWTH_BYTES


def test_stop_succeeds_in_the_middle_of_it(tmp_path: Path) -> None:
    """SIGTERM during the processing of slow texts stops the daemon normally, within its grace period."""
    with running_daemon(tmp_path / "data", {**QUIET, "SERVER__SHUTDOWN_GRACE_S": 10}) as daemon:
        daemon.client.put("/v1/agents/ann", json={"pii": "redact"})
        for family in SHORT_FORM:
            daemon.remember("ann", *[FAMILIES[family](99_000)] * 5)
        begun = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - begun < 10
