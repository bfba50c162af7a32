"""The recall benchmark stores everything once, varies one thing per condition, and compares fair pairs.

Most tests use a scripted daemon, because they check the benchmark itself. The short run at the end uses a real daemon.
No test judges the product's figures.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks import recall
from benchmarks.clients import KeepAlive
from benchmarks.processes import connected, running
from benchmarks.recall_baselines import K1, B, PlainWords, baseline, fused, simple_words
from benchmarks.recall_daemon import (
    ABLATIONS,
    CONDITIONS,
    FORGETTING,
    LATER_MESSAGES,
    PARAGRAPHS,
    Told,
    batches_of,
    questioned,
    results_of,
    text_kept,
)
from benchmarks.recall_data import (
    WHOLE,
    Corpus,
    MissingSet,
    Question,
    Turn,
    groups_of,
    read_set,
    spread_out,
    together,
)
from benchmarks.recall_measures import LONGEST_ANSWER, NAMES, ranked_turns
from benchmarks.recall_picture import bars_of, draw
from benchmarks.recall_report import Answered, differences_of, rows_of
from ebbtide.retrieval.ranking_request import SIGNALS
from tests.support.quick_benchmark import run_quickly
from tests.support.tier import IS_ALL

QUICK_TIMEOUT_S = 300
ASKED = recall.NAMES if IS_ALL else ["recency", "bm25", "product"]
"""The conditions of the quick run."""
LATER_COUNT = 3


class ScriptedDaemon(KeepAlive):
    """A daemon that records its input and answers with the results of plain BM25."""

    def __init__(self, parked_count: int = 0) -> None:
        self.batches: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.parameters: dict[str, dict[str, Any]] = {}
        self.questions: list[tuple[str, int, dict[str, Any]]] = []
        """(agent, number of its batches at that time, query)."""
        self._parked_count = parked_count
        self._is_flushed: dict[str, bool] = {}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[bytes, float]:
        agent, _, verb = path.removeprefix("/v1/agents/").partition("/")
        answer: dict[str, Any] = {}
        if method == "PUT":
            self.parameters[agent] = body
        elif verb == "remember":
            self.batches[agent].append(body)
            self._is_flushed[agent] = False
        elif verb == "flush":
            self._is_flushed[agent] = True
            answer = {
                "digested": True,
                "passes_done": True,
                "parked_batches": self._parked_count,
                "unembedded_messages": 0,
            }
        elif verb == "recall":
            assert self._is_flushed[agent], "asked before everything was digested"
            self.questions.append((agent, len(self.batches[agent]), body))
            answer = {"memories": self._found(agent, body)}
        return json.dumps(answer).encode(), 1.5

    def _found(self, agent: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        said = [message for batch in self.batches[agent] for message in batch["messages"]]
        texts = [f"{message['speaker']}: {message['content']}" for message in said]
        places = PlainWords(texts).ask(body["query"])[: body["max_results"]]
        return [
            {
                "content": texts[place],
                "state": "living",
                "sources": [{"message_id": said[place]["id"]}, {"message_id": ""}],
            }
            for place in places
        ]


def tiny() -> list[Corpus]:
    """Return the tiny set."""
    corpora = read_set("tiny", Path("/nowhere"))
    assert not isinstance(corpora, MissingSet)
    return corpora


def asked_of(daemon: ScriptedDaemon, *names: str) -> list[Any]:
    """Run the tiny set under these conditions."""
    return list(questioned(daemon, tiny(), names, LATER_COUNT, lambda _: None))


def answered(condition: str, qid: str, worth: float, category: str = "single") -> Answered:
    """Return an answered question with the same value for all measures."""
    return Answered("tiny", "c", qid, category, condition, dict.fromkeys(NAMES, worth), 1.0)


# --- reading -------------------------------------------------------------------------------------------------


def test_the_tiny_set_holds_together() -> None:
    """Both languages are present, all evidence is in its own corpus, and no question contains its own answer."""
    corpora = tiny()
    assert [corpus.is_chinese for corpus in corpora] == [False, True]
    for corpus in corpora:
        turn_ids = {turn.turn_id for turn in corpus.turns}
        assert len(turn_ids) == len(corpus.turns) >= 20
        assert len(corpus.questions) >= 10
        assert all(group <= turn_ids for question in corpus.questions for group in question.gold)
        assert all(turn.timestamp_ms for turn in corpus.turns)


def test_a_missing_set_is_reported(tmp_path: Path) -> None:
    """A missing data set causes a message with file and folder, and the run succeeds."""
    missing = read_set("locomo", tmp_path)
    assert isinstance(missing, MissingSet)
    assert str(missing).startswith("locomo is skipped:")
    assert "locomo.jsonl" in str(missing) and str(tmp_path) in str(missing)
    places = ["--json", str(tmp_path / "told.json"), "--questions", str(tmp_path / "told.jsonl")]
    assert recall.main(["--sets", "locomo", "--data", str(tmp_path), *places]) == 0
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert told["rows"] == [] and str(missing) in told["notes"]


def test_a_limit_selects_questions_evenly() -> None:
    """A limited run selects questions evenly from first to last. A large limit selects all of them."""
    questions = [Question(str(number), "?", "c", (frozenset("a"),)) for number in range(10)]
    assert [question.qid for question in spread_out(questions, 3)] == ["0", "3", "6"]
    assert len(spread_out(questions, 10)) == len(spread_out(questions, None)) == 10


def test_corpora_put_together_stay_apart() -> None:
    """In one agent no two turns share an id, and every question keeps the evidence of its own corpus."""
    corpora = tiny()
    one = together(corpora)
    assert len({turn.turn_id for turn in one.turns}) == sum(len(corpus.turns) for corpus in corpora)
    assert len(one.sessions) == sum(len(corpus.sessions) for corpus in corpora)
    texts = {turn.turn_id: turn.text for turn in one.turns}
    asked = [(corpus, question) for corpus in corpora for question in corpus.questions]
    for (corpus, question), moved in zip(asked, one.questions, strict=True):
        own = {turn.turn_id: turn.text for turn in corpus.turns}
        assert [{texts[i] for i in group} for group in moved.gold] == [
            {own[i] for i in group} for group in question.gold
        ]


def test_adversarial_questions_stand_apart() -> None:
    """LoCoMo's category 5 is in no average except its own."""
    assert groups_of("locomo", "5-adversarial") == ("5-adversarial (apart)",)
    assert groups_of("locomo", "1-multi-hop") == (WHOLE, "1-multi-hop")


# --- baselines -----------------------------------------------------------------------------------------------


def test_bm25_is_bm25() -> None:
    """The score of a text equals the formula, computed by hand; texts without a word of the query are not found."""
    words = PlainWords(["kiln kiln glaze", "glaze", "marathon train dog"])
    idf = math.log1p((3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 * (K1 + 1) / (2 + K1 * (1 - B + B * 3 / (7 / 3)))
    assert words.scores("kiln")[0] == pytest.approx(expected)
    assert words.ask("the kiln's glaze") == [0, 1]
    assert words.ask("nothing known") == []


def test_words_are_the_usual_ones() -> None:
    """English words are stemmed and stop words dropped, Chinese becomes pairs of characters. A text may mix both."""
    assert list(simple_words("She was painting the KILNS")) == ["paint", "kiln"]
    assert list(simple_words("陶艺课 E417猫")) == ["陶艺", "艺课", "e417", "猫"]


def test_fusion_is_by_rank() -> None:
    """Results that both rankings put first come first, results of one ranking still count, and ties keep its order."""
    assert fused([[1, 2, 3], [1, 3, 4]]) == [1, 3, 2, 4]
    assert fused([[1], [2]]) == [1, 2]


def test_recency_is_the_latest_first() -> None:
    """The simplest baseline returns the last turns for every question."""
    corpus = tiny()[0]
    places = baseline("recency", corpus)("anything")
    assert places == list(reversed(range(len(corpus.turns))))


# --- through a daemon ----------------------------------------------------------------------------------------


def test_a_corpus_is_remembered_once_and_whole() -> None:
    """Every turn is sent once, in order, under its id, with speaker and time; a session is a batch."""
    daemon = ScriptedDaemon()
    asked_of(daemon, "product")
    for number, corpus in enumerate(tiny()):
        batches = daemon.batches[f"plain-{number}"]
        assert [batch["conversation_id"] for batch in batches] == list(corpus.sessions)
        sent = [message for batch in batches for message in batch["messages"]]
        told = [(m["id"], m["speaker"], m["content"], m["timestamp"], m["role"]) for m in sent]
        assert told == [(t.turn_id, t.speaker, t.text, t.timestamp_ms, "user") for t in corpus.turns]


def test_paragraphs_are_no_conversation() -> None:
    """Sessions of one turn each share batches, without a conversation that would make them neighbours."""
    turns = tuple(Turn(f"p{n}", f"p{n}", "Title", "Text.", None) for n in range(PARAGRAPHS + 1))
    batches = list(batches_of(Corpus("cmrc", "c", False, turns, ())))
    assert [len(batch["messages"]) for batch in batches] == [PARAGRAPHS, 1]
    assert not any("conversation_id" in batch for batch in batches)
    assert "timestamp" not in batches[0]["messages"][0]


def test_answers_are_read_by_their_sources() -> None:
    """With a daemon that is plain BM25 the figures equal those of plain BM25."""
    corpora = {corpus.corpus_id: corpus for corpus in tiny()}
    outcomes = asked_of(ScriptedDaemon(), "product")
    assert len(outcomes) == sum(len(corpus.questions) for corpus in corpora.values())
    for name, corpus, question, told in outcomes:
        assert (name, told.took_ms) == ("product", 1.5)
        results = results_of(told, len)
        ask = baseline("bm25", corpora[corpus.corpus_id])
        turns = [corpus.turns[place] for place in ask(question.text)][:LONGEST_ANSWER]
        assert ranked_turns(results) == [turn.turn_id for turn in turns]
        assert [result.token_count for result in results] == [len(turn.spoken) for turn in turns]


def test_conditions_differ_in_one_thing() -> None:
    """One condition switches off each signal, one more both semantic ones; all others send the same query."""
    singles = [{"without": [name]} for name in SIGNALS]
    assert [condition.asks for condition in ABLATIONS.values()] == [
        *singles,
        {"without": ["semantic", "window"]},
    ]
    daemon = ScriptedDaemon()
    asked_of(daemon, "product", "no-archive", *ABLATIONS)
    bodies = [body for agent, _, body in daemon.questions if agent == "plain-0"]
    plain = {key: value for key, value in bodies[0].items() if key != "query"}
    assert plain == {"max_results": 50, "citations": True, "mode": "hybrid", "archive": "always"}
    changed = [{k: v for k, v in body.items() if k != "query" and plain.get(k) != v} for body in bodies]
    assert all(len(one) <= 1 for one in changed)
    assert {"archive": "never"} in changed


def test_unrelated_batches_come_after_the_corpus() -> None:
    """Unrelated batches exist only for the conditions that name them, and forgetting is off on an agent of its own."""
    daemon = ScriptedDaemon()
    outcomes = asked_of(daemon, "product", *FORGETTING)
    names = [name for name, *_ in outcomes]
    assert set(names) == {"product", *FORGETTING}
    for name, (agent, batch_count, _) in zip(names, daemon.questions, strict=True):
        corpus = tiny()[int(agent.rpartition("-")[2])]
        expected = len(corpus.sessions) + (LATER_COUNT if name.startswith("later") else 0)
        assert batch_count == expected, name
        assert ("no-forgetting" in name) == agent.startswith("kept-")
        assert daemon.parameters[agent] == CONDITIONS[name].keeping.parameters
    latest = daemon.batches["plain-0"][-1]["messages"]
    assert len(latest) == LATER_MESSAGES
    assert all(message["timestamp"] > tiny()[0].turns[-1].timestamp_ms for message in latest)


def test_a_shortened_memory_is_seen_as_short() -> None:
    """The score is the remaining share of the evidence: all, half, or several memories of one turn together."""
    turns = (Turn("a", "s", "Ann", "0123456789", None), Turn("b", "s", "Ann", "01234", None))
    question = Question("q", "?", "c", (frozenset({"a"}), frozenset({"b"})))
    corpus = Corpus("tiny", "c", False, turns, (question,))
    kept = [
        text_kept(Told(memories, {}, 1.0), corpus, question)
        for memories in (
            [("Ann: 0123456789", ("a",))],
            [("01234", ("a",))],
            [("012", ("a",)), ("56", ("a",)), ("01234", ("b",)), ("x", ("c",))],
            [("x", ("c",))],
        )
    ]
    assert kept == [1.0, 0.5, 0.75, None]


def test_an_agent_with_a_lost_batch_is_not_measured() -> None:
    """An agent that parked a batch is not measured."""
    with pytest.raises(RuntimeError, match="parked"):
        asked_of(ScriptedDaemon(parked_count=1), "product")


# --- reporting -----------------------------------------------------------------------------------------------


def test_averages_are_over_questions() -> None:
    """A row is the mean over its questions, the whole set before its categories."""
    rows = rows_of([answered("bm25", "1", 1.0), answered("bm25", "2", 0.0, "multi")])
    assert [(row.group, row.question_count, row.means["R@10"]) for row in rows] == [
        (WHOLE, 2, 0.5),
        ("multi", 1, 0.0),
        ("single", 1, 1.0),
    ]


def test_differences_are_over_shared_questions() -> None:
    """The product is compared with BM25, and its variants with it, over the questions that both answered."""
    found = differences_of(
        [
            answered("bm25", "1", 0.0),
            answered("bm25", "2", 1.0),
            answered("product", "1", 1.0),
            answered("no-graph", "1", 0.5),
        ]
    )
    told = {(one.condition, one.against): (one.question_count, one.interval.mean) for one in found}
    assert told == {("product", "bm25"): (1, 1.0), ("no-graph", "product"): (1, -0.5)}


def test_the_cost_of_forgetting_is_reported_separately() -> None:
    """After much further text, forgetting is compared with not forgetting, not only with a fresh memory."""
    worths = {"product": 1.0, "later": 0.5, "later-no-forgetting": 0.75}
    found = differences_of([answered(condition, "1", worth) for condition, worth in worths.items()])
    told = {(one.condition, one.against): one.interval.mean for one in found if one.measure == "R@10"}
    assert told[("later", "later-no-forgetting")] == -0.25
    assert told[("later", "product")] == -0.5


@pytest.mark.timeout(QUICK_TIMEOUT_S)
@pytest.mark.full
def test_the_short_form_runs(tmp_path: Path) -> None:
    """The quick run asks the tiny set under each condition through a real daemon, and keeps every question."""
    places = {
        "--json": tmp_path / "told.json",
        "--questions": tmp_path / "told.jsonl",
        "--markdown": tmp_path / "told.md",
        "--plot": tmp_path / "told.png",
    }
    given: dict[str, Path | str] = {**places, "--conditions": ",".join(ASKED)}
    run_quickly("benchmarks.recall", given, QUICK_TIMEOUT_S - 20)
    told = json.loads(places["--json"].read_text(encoding="utf-8"))
    whole = {row["condition"]: row for row in told["rows"] if row["group"] == WHOLE}
    assert whole.keys() >= {*ASKED}
    assert whole["product"]["means"]["R@20"] > 0, "sources lead back to turns"
    asked = [json.loads(line) for line in places["--questions"].read_text(encoding="utf-8").splitlines()]
    question_count = sum(len(corpus.questions) for corpus in tiny())
    assert sum(1 for line in asked if line["condition"] == "product") == question_count
    pairs = {(one["condition"], one["against"]) for one in told["differences"]}
    expected = {("product", "bm25"), ("no-words", "product"), ("later", "later-no-forgetting")}
    assert pairs >= {pair for pair in expected if {*pair} <= {*ASKED}}
    assert places["--plot"].read_bytes().startswith(b"\x89PNG")
    assert "| all | product |" in places["--markdown"].read_text(encoding="utf-8")


def picture_rows() -> list[dict[str, Any]]:
    """Return the results of a run over two sets, one of them with one more condition."""
    asked = [
        ("locomo", WHOLE, "product", 0.75),
        ("locomo", WHOLE, "no-words", 0.05),
        ("locomo", WHOLE, "bm25", 0.6),
        ("locomo", "multi-hop", "bm25", 0.1),
        ("cmrc", WHOLE, "bm25", 1.0),
        ("cmrc", WHOLE, "product", 0.99),
    ]
    names = ("set_name", "group", "condition")
    return [
        {**dict(zip(names, one, strict=False)), "question_count": 7, "means": {"R@10": one[3]}}
        for one in asked
    ]


def test_the_picture_shows_the_measurements() -> None:
    """The picture shows complete sets with their conditions, and the baseline before the product."""
    sets, bars = bars_of(picture_rows())
    assert sets == ["locomo\n7 questions", "cmrc\n7 questions"]
    assert list(bars) == ["bm25", "product", "no-words"]
    assert bars == {
        "bm25": [(0, 60.0), (1, 100.0)],
        "product": [(0, 75.0), (1, 99.0)],
        "no-words": [(0, 5.0)],
    }


@pytest.mark.parametrize("count", [0, 1, 6])
def test_a_picture_is_drawn_of_any_run(tmp_path: Path, count: int) -> None:
    """A picture can be drawn of a run without any measurement."""
    draw({"rows": picture_rows()[:count]}, tmp_path / "new" / "picture.png")
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_daemon_obeys_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EBBTIDE_* variables configure the measured daemon, and a benchmark's own settings take precedence."""
    monkeypatch.setenv("EBBTIDE_EMBEDDING__MODEL", "openai")
    monkeypatch.setenv("EBBTIDE_EMBEDDING__NAME", "a-model")
    monkeypatch.setenv("EBBTIDE_BENCH_DATA", str(tmp_path))
    with running(tmp_path / "data", {"EMBEDDING__MODEL": "ollama"}) as daemon, connected(daemon) as client:
        embedder = client.told("GET", "/v1/model")["embedder"]
    assert (embedder["kind"], embedder["name"]) == ("ollama", "a-model")
