"""Texts of every kind sent to the daemon are stored unchanged, or refused with a reason."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import FUZZING
from tests.support.process import Daemon, running_daemon

QUIET = {"EMBEDDING__MODEL": "off"}
ODD = st.sampled_from(
    [
        *("\x00", "\u202e", "\u2066", "\u200d", "\ufeff", "\ud800", "\udfff", "\r\n"),
        *("👩\u200d👩\u200d👧", "𝔘", "é", "e\u0301", "ﷺ", "字"),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=60), st.lists(st.one_of(ODD, st.text(max_size=5)), max_size=12).map("".join)
)
LINE_BYTES = 1 << 20


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for all texts of this file; afterwards its stores and its log are checked."""
    with running_daemon(tmp_path_factory.mktemp("fuzz") / "data", QUIET) as daemon:
        yield daemon
        assert '"level": "error"' not in daemon.log
        assert daemon.stop() == 0


def is_sayable(text: str) -> bool:
    """Whether UTF-8 can encode the text."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def sent(daemon: Daemon, method: str, path: str, body: Any) -> Any:
    """Send a request whose JSON escapes every character, so that it can contain lone surrogates."""
    headers = {"content-type": "application/json"}
    return daemon.client.request(method, path, content=json.dumps(body, ensure_ascii=True), headers=headers)


@FUZZING
@given(text=TEXTS, speaker=TEXTS, conversation=TEXTS)
def test_remembered_text_is_unchanged(fuzzed: Daemon, text: str, speaker: str, conversation: str) -> None:
    """A source returns the same bytes; lone surrogates are refused, and nothing of the batch is stored."""
    body = {
        "messages": [{"role": "user", "content": f"The harbour: {text}", "speaker": speaker}],
        "conversation_id": conversation,
    }
    before = fuzzed.get("ann").json()["counts"]["messages"] if fuzzed.get("ann").status_code == 200 else 0
    response = sent(fuzzed, "POST", "/v1/agents/ann/remember", body)
    if not is_sayable(text + speaker + conversation):
        assert response.status_code == 400, response.text
        assert response.json()["error"]["reason"] in ("INVALID_JSON", "INVALID_VALUE")
        if fuzzed.get("ann").status_code == 200:
            assert fuzzed.get("ann").json()["counts"]["messages"] == before
        return
    assert response.status_code == 202, response.text
    assert fuzzed.flush("ann", timeout_ms=30_000)["digested"]
    batch = fuzzed.get(f"ann/batches/{response.json()['batch_id']}").json()
    whole = f"The harbour: {text}".encode()
    for node_id in batch["node_ids"]:
        for source in fuzzed.get(f"ann/nodes/{node_id}").json()["sources"]:
            cut = whole[source["offset"] : source["offset"] + source["length"]]
            assert cut.decode(), "an offset lies between two characters"


@FUZZING
@given(keywords=st.lists(TEXTS, max_size=4), relations=st.lists(TEXTS, max_size=4), query=TEXTS)
def test_any_recall_is_answered_or_refused(
    fuzzed: Daemon, keywords: list[str], relations: list[str], query: str
) -> None:
    """A recall with any words gets a response."""
    for body in ({"keywords": keywords, "relations": relations, "depth": 3}, {"query": query}):
        response = sent(fuzzed, "POST", "/v1/agents/ann/recall", {**body, "patience_ms": 0})
        assert response.status_code in (200, 400, 404), response.text
        if response.status_code == 400:
            assert response.json()["error"]["reason"] != "INTERNAL"


@FUZZING
@given(agent_id=TEXTS.filter(is_sayable))
def test_agent_ids_are_accepted_unchanged_or_refused(fuzzed: Daemon, agent_id: str) -> None:
    """An accepted agent id is listed byte for byte; ids not in NFC or with forbidden characters are refused."""
    path = f"/v1/agents/{quote(agent_id, safe='')}"
    response = fuzzed.client.put(path, json={})
    if response.status_code in (200, 201):
        assert response.json()["agent_id"] == agent_id == unicodedata.normalize("NFC", agent_id)
        assert fuzzed.client.get(path).json()["agent_id"] == agent_id
        assert fuzzed.client.delete(path).status_code == 200
    else:
        assert response.status_code in (400, 404, 405), response.text


@pytest.mark.full
def test_lines_of_a_megabyte_are_refused_by_name_and_length(fuzzed: Daemon) -> None:
    """A text over the limit is TEXT_TOO_LONG with the name of the field; one at the limit is stored whole."""
    limit = 100_000
    for text in ("x" * LINE_BYTES, "长" * (LINE_BYTES // 3), "𝔘" * (LINE_BYTES // 4)):
        response = sent(
            fuzzed, "POST", "/v1/agents/long/remember", {"messages": [{"role": "user", "content": text}]}
        )
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["reason"] == "TEXT_TOO_LONG"
        assert "messages[0].content" in error["message"]
        assert len(response.text) < 2000, "the refusal does not repeat it"
    kept = ("海边的灯塔" * limit)[:limit]
    fuzzed.remember("long", kept)
    assert fuzzed.flush("long", timeout_ms=60_000)["digested"]
    assert fuzzed.get("long").json()["counts"]["messages"] == 1
