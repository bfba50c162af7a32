"""The ledger of statements: the same answers as the oracle, and the time and the memory that they take.

Times are of the processor, so that they depend little on the load of the machine: the best of three for each question.
"First" means that nothing was computed before, as for a question about what was known at a time. The request for a
profile has no bar. It is compared with one that does nothing, in turns.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.clients import KeepAlive
from benchmarks.knowledge.table import Row
from benchmarks.measuring import Spread, in_turns
from benchmarks.processes import connected, running
from benchmarks.texts import Writer
from ebbtide.changes import Change
from ebbtide.memory.slot_names import SLOTS
from ebbtide.memory.statements import DAY_MS, Ledger, Replay
from ebbtide.records import Identity, Source
from ebbtide.statements import Assertion
from ebbtide.store import layout
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.text_caches import clear_text_caches
from tests.support.knowledge.comparison import live
from tests.support.knowledge.histories import history

HISTORIES, QUICK_HISTORIES = 400, 40
STATEMENTS = 10_000
ENTITIES = 100
TOPICS = 120
"""Topics that are no known slot."""
NOW_MS = 20_000 * DAY_MS
QUESTIONS, QUICK_QUESTIONS = 500, 100
FEW, MANY = 500, 5000
ROUNDS, QUICK_ROUNDS = 200, 30
IN_A_PROFILE = 300


PROFILE_MS, FIRST_PROFILE_MS, SLOT_MS, FIRST_USE_MS = 2.0, 10.0, 1.0, 1000.0
STATEMENT_BYTES = 120
TIMES_FOR_TEN_TIMES = 20.0
"""Ten would be linear, a hundred quadratic. Larger arrays miss the cache more often."""


# --- the oracle --------------------------------------------------------------------------------------------


def _differs(seed: int) -> bool:
    """Return whether the ledger and the oracle differ in one history, after every step of some of them."""
    try:
        live(history(Random(seed), 40 if seed % 5 == 1 else 14), is_every_step=seed % 5 == 0)
    except AssertionError:
        return True
    return False


def _compared(count: int) -> Row:
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        differing = sum(processes.map(_differs, range(count), chunksize=10))
    what = "as_of, known_at, undo, erasure: histories that differ from the oracle"
    return Row(what, "0", f"{differing} of {count}", differing == 0)


# --- time and memory ---------------------------------------------------------------------------------------


def assertions(count: int = STATEMENTS) -> list[Assertion]:
    """Return assertions about entities of equal size, a third of them on known slots. Some report changes."""
    random, texts = Random(1), Writer(1).texts(count)
    topics = [f"{one} {random.randrange(1000)}" for one in ("the color of", "visits", "opinion on")]
    slots = [*SLOTS, *(f"{random.choice(topics)} {number}" for number in range(TOPICS))]
    found = []
    for entry, text in enumerate(texts, 1):
        value = text.keywords[0] if random.random() < 0.5 else " ".join(text.keywords[:2])
        found.append(
            Assertion(
                entry,
                100 + entry,
                1 + random.randrange(ENTITIES),
                random.choice(slots),
                value,
                Source(entry, 0, len(value) + 20),
                NOW_MS - (count - entry) * 60_000,
                NOW_MS - (count - entry) * 60_000,
                negated=random.random() < 0.05,
                reports_change=random.random() < 0.2,
                since_ms=NOW_MS - random.randrange(900) * DAY_MS if random.random() < 0.2 else None,
                confidence=random.choice((0.6, 0.8, 0.9, 1.0)),
                author=random.choice(("user", "rules@1", "tool:calendar")),
            )
        )
    return found


def _cpu_ms(task: Callable[[], object]) -> float:
    begin = time.thread_time()
    task()
    return 1000 * (time.thread_time() - begin)


def _best_ms(task: Callable[[], object], count: int = 3) -> float:
    return min(_cpu_ms(task) for _ in range(count))


def _questions(entries: list[Assertion], count: int) -> list[Row]:
    ledger, random = Ledger(entries), Random(2)
    first, again, slots = [], [], []
    for _ in range(count):
        one = random.choice(entries)
        as_of = NOW_MS - random.randrange(30) * DAY_MS

        def profile(replay: Replay, subject: int = one.subject, as_of: int = as_of) -> None:
            list(replay.profile(subject, as_of, NOW_MS))

        def slot(one: Assertion = one, as_of: int = as_of) -> None:
            Replay(ledger, None).in_force(one.subject, one.slot, as_of, NOW_MS)

        first.append(_best_ms(lambda: profile(Replay(ledger, None))))
        again.append(_best_ms(lambda: profile(ledger.known())))
        slots.append(_best_ms(slot))
    size = f"one of {ENTITIES} with {len(entries)} statements"
    return [
        _within(f"profile, {size}, p95", PROFILE_MS, Spread.of(again)),
        _within(f"first profile, {size}, p95", FIRST_PROFILE_MS, Spread.of(first)),
        _within(f"first answer for a slot as_of, {size}, p95", SLOT_MS, Spread.of(slots)),
    ]


def _within(what: str, bar_ms: float, spread: Spread) -> Row:
    measured = f"{spread.p95:.2f} ms of the processor (p50 {spread.p50:.2f})"
    return Row(what, f"≤ {bar_ms:g} ms", measured, spread.p95 <= bar_ms)


def _memory(entries: list[Assertion]) -> Row:
    def loaded() -> Ledger:
        return Ledger(entries)

    loaded()  # what is loaded only once, such as compiled patterns
    gc.collect()
    tracemalloc.start()
    ledger = loaded()
    ledger.known().versions(1, "likes")  # builds the indexes
    gc.collect()
    size = tracemalloc.get_traced_memory()[0] / len(entries)
    tracemalloc.stop()
    estimated = ledger.resident_bytes / len(entries)
    measured = f"{size:.0f} bytes ({estimated:.0f} counted in the memory budget)"
    return Row("memory of a statement", f"≤ {STATEMENT_BYTES} bytes", measured, size <= STATEMENT_BYTES)


def _first_use(entries: list[Assertion]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        identity = Identity("ann", 1, 7, layout.FORMAT_VERSION)
        store = LmdbStore.create(Path(folder), identity, map_bytes=1 << 26, max_map_bytes=1 << 28)
        store.write(lambda txn: txn.apply(Change(assertions=entries)))
        took_ms = _best_ms(lambda: store.read(lambda txn: Ledger(txn.statements.entries())), 3)
        store.close()
    what = f"first use of a ledger of {len(entries)} statements"
    return Row(what, f"≤ {FIRST_USE_MS:g} ms", f"{took_ms:.0f} ms of the processor", took_ms <= FIRST_USE_MS)


# --- one slot with many values -----------------------------------------------------------------------------

SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "contested": lambda number: {"slot": "residence", "object": f"place {number}"},
    "changing": lambda number: {"slot": "residence", "object": f"place {number}", "reports_change": True},
    "reported late": lambda number: {
        "slot": "residence",
        "object": f"place {number}",
        "reports_change": True,
        "since_ms": NOW_MS - (number * 7919) % 100_003 * 60_000,
    },
    "repeated": lambda number: {
        "slot": "residence",
        "object": f"place {number % 7}",
        "reports_change": not number % 5,
    },
    "listed": lambda number: {"slot": "likes", "object": f"thing {number}", "negated": not number % 100},
}
"""How the values of a slot follow one another."""


def _slot_ms(fields: Callable[[int], dict[str, Any]], count: int) -> Callable[[], float]:
    def said(number: int) -> Assertion:
        given = {"negated": False, "reports_change": False, "since_ms": None} | fields(number)
        time_ms = NOW_MS + number * 60_000
        return Assertion(
            number,
            100 + number,
            1,
            source=Source(number, 0, 9),
            told_at_ms=time_ms,
            known_at_ms=time_ms,
            **given,
        )

    ledger = Ledger(said(number) for number in range(1, count + 1))
    slot = said(1).slot

    def measured() -> float:
        clear_text_caches()
        return _cpu_ms(lambda: Replay(ledger, None).versions(1, slot))

    return measured


def _linear() -> Row:
    found = {}
    for name, fields in SHAPES.items():
        tasks = {str(count): _slot_ms(fields, count) for count in (FEW, MANY)}
        took = in_turns(5, tasks)
        found[name] = min(took[str(MANY)]) / min(took[str(FEW)])
    most = max(found.values())
    measured = f"{most:.1f} × ({', '.join(f'{name} {times:.1f}' for name, times in found.items())})"
    what = f"replay of a slot with {MANY} values, compared with {FEW}"
    return Row(what, f"≤ {TIMES_FOR_TEN_TIMES:g} ×", measured, most <= TIMES_FOR_TEN_TIMES)


# --- the request -------------------------------------------------------------------------------------------


def _stored(client: KeepAlive) -> None:
    texts = Writer(3).texts(IN_A_PROFILE)
    slots = [*SLOTS]
    for number, text in enumerate(texts):
        topic = slots[number] if number < len(slots) else f"topic {number % 100}"
        said = {"object": text.content[:60], "content": text.content[:150], "negated": False}
        body = {"subject": "user", "topic": topic, **said}
        client.ms("POST", "/v1/agents/ann/statements", body)


def _request(rounds: int) -> Row:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), {"EMBEDDING__MODEL": "off"}) as daemon,
        connected(daemon) as client,
    ):
        _stored(client)
        tasks = {
            "profile": partial(client.ms, "GET", "/v1/agents/ann/profile"),
            "request": partial(client.ms, "GET", "/healthz"),
        }
        in_turns(5, tasks)
        took = in_turns(rounds, tasks)
    ours, empty = Spread.of(took["profile"]), Spread.of(took["request"])
    times = ours.p50 / empty.p50
    measured = f"{times:.0f} × ({ours.p50:.1f} and {empty.p50:.2f} ms)"
    what = f"request for a profile of {IN_A_PROFILE} statements with quotes, median"
    return Row(what, "none", f"{measured} of a request that does nothing", True)


def rows(is_quick: bool) -> list[Row]:
    """Return the rows of the ledger."""
    entries = assertions()
    return [
        _compared(QUICK_HISTORIES if is_quick else HISTORIES),
        *_questions(entries, QUICK_QUESTIONS if is_quick else QUESTIONS),
        _memory(entries),
        _first_use(entries),
        _linear(),
        _request(QUICK_ROUNDS if is_quick else ROUNDS),
    ]
