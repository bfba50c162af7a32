"""Every function that reads text takes time in proportion to its length, for any content.

The readers are those of `tests/support/text_readers.py`. The texts are families that each repeat a piece; for every
compiled pattern of the package there are texts built from its own repeats. Time is the CPU time of the thread,
without the garbage collector. `make test` tries a sixteenth of the families and texts, another one for each reader and
pattern; `EBBTIDE_LONG_TEXTS=1` (`make chaos`) tries ten times the sizes.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from time import thread_time

import pytest

from ebbtide.privacy import folding
from tests.support.patterns import Found, compiled, made_elsewhere, readers_by_pattern
from tests.support.pumped import pumped, pumps
from tests.support.text_readers import READERS, Reader, families
from tests.support.tier import IS_ALL

IS_LONG = bool(os.environ.get("EBBTIDE_LONG_TEXTS"))
SMALL, LARGE = (1_000, 10_000) if IS_LONG else (400, 3_200)
SLOW_SMALL, SLOW_LARGE = (SMALL, LARGE) if IS_LONG else (200, 1_600)
SLOW_READERS = frozenset(
    {
        "builtin: shorten",
        "builtin: process",
        "builtin: shorten again",
        "question",
        "topic named",
    }
    | {"topic of the text", "key sentences", "portions", "parts for a model"}
)
"""Readers with more work per character: superlinear growth shows at smaller sizes."""

LARGEST = 100_000
MOST_FAULTS = 3
"""Families that a failure names."""

WORST_COUNT = 12 if IS_LONG else 1
"""The number of slowest families that are tried at `LARGEST`."""

FLOOR_S = 0.0015
"""Shorter times are not judged."""

CLEAR_S = 0.05
"""A longer time, far beyond its share, is not measured again; at `LARGEST`, a shorter one is not judged."""

LEEWAY = 3.0
"""How much more than in proportion a text may take: caches, memory, the logarithm. Quadratic work takes 8 times."""

CEILING_S = 8.0
"""No text of `LARGEST` characters takes longer; the slowest reader takes a third of it on a busy core."""

ONE_IN = 1 if IS_ALL or IS_LONG else 16
"""One of so many families and pumped texts is tried."""

_NUMBERS = count()

FAMILIES = families()
SAMPLES = tuple(make(60 if index % 4 else 300) for index, make in enumerate(FAMILIES.values()))


@pytest.fixture(autouse=True, scope="module")
def unfrozen() -> Iterator[None]:
    """Return to the garbage collector what `undisturbed` took from it, except what stays (see tests/conftest.py)."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Disable the garbage collector and thread switches during a measurement.

    It freezes the objects in memory, so that the next test does not search the caches of patterns for garbage again.
    """
    interval = sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(10)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.enable()


def seconds(read: Reader, make: Callable[[int], str], size: int, attempts: int = 1) -> float:
    """Return the CPU time of reading a text of a size, the minimum of some attempts with different texts."""
    taken = []
    for _ in range(attempts):
        text = make(size - next(_NUMBERS) % 50)
        begun = thread_time()
        read(text)
        taken.append(thread_time() - begun)
    return min(taken)


def is_steep(read: Reader, make: Callable[[int], str], small: int, large: int) -> bool:
    """Whether the larger text takes far more than its share of time; a suspicion is measured again."""
    for attempts in (1, 4):
        late = seconds(read, make, large, attempts)
        if late <= FLOOR_S:
            return False
        allowed = LEEWAY * large / small * max(seconds(read, make, small, attempts), 2e-5)
        if late <= allowed:
            return False
        if late > max(2 * allowed, CLEAR_S):
            return True
    return True


def is_super_linear(read: Reader, make: Callable[[int], str], small: int = SMALL, large: int = LARGE) -> bool:
    """Whether two consecutive steps are steep: a single one may only have passed a limit of the reader."""
    if not is_steep(read, make, small, large):
        return False
    return seconds(read, make, large) > 1.0 or is_steep(read, make, large, 8 * large)


def allowed(read: Reader, make: Callable[[int], str], size: int) -> float:
    """Return the CPU time that a text of `LARGEST` characters may take, given its time at a smaller size."""
    return min(CEILING_S, max(CLEAR_S, 2 * LEEWAY * LARGEST / size * seconds(read, make, size, 3)))


def faults(read: Reader, texts: dict[str, Callable[[int], str]], small: int, large: int) -> list[str]:
    """Return the first families on which a reader is superlinear."""
    taken: dict[str, float] = {}
    found: list[str] = []
    for name, make in texts.items():
        taken[name] = seconds(read, make, large)
        if taken[name] > FLOOR_S and is_super_linear(read, make, small, large):
            found.append(name)
        if len(found) == MOST_FAULTS:
            return found
    for name in sorted(taken, key=lambda one: -taken[one])[:WORST_COUNT]:
        if not found and taken[name] > FLOOR_S:
            late = seconds(read, texts[name], LARGEST)
            # A limit or a cache of the reader may lie above one size, and a busy machine slows single readings.
            if all(
                late > allowed(read, texts[name], size)
                and (late := min(late, seconds(read, texts[name], LARGEST, 3))) > CLEAR_S
                for size in (large, LARGEST // 8)
            ):
                found.append(f"{name}: {late:.2f} s")
    return found


@pytest.mark.parametrize(("number", "name"), [*enumerate(READERS)], ids=READERS)
def test_no_text_takes_more_than_its_share(number: int, name: str) -> None:
    """No family of hostile texts makes a reader superlinear."""
    READERS[name]("Ann went out. 我们去了。")  # dictionaries are loaded
    tried = dict(islice(FAMILIES.items(), number % ONE_IN, None, ONE_IN))
    with undisturbed():
        sizes = (SLOW_SMALL, SLOW_LARGE) if name in SLOW_READERS else (SMALL, LARGE)
        assert faults(READERS[name], tried, *sizes) == []


PATTERNS = compiled()


@pytest.mark.parametrize(("number", "found"), [*enumerate(PATTERNS)], ids=[found.name for found in PATTERNS])
def test_no_pattern_is_slow_on_what_resembles_it(number: int, found: Found) -> None:
    """No pumped repeat of a pattern makes it superlinear, with and without a suffix that makes it fail."""

    def tried(text: str) -> object:
        return (
            found.pattern.match(text) if found.is_anchored else sum(1 for _ in found.pattern.finditer(text))
        )

    texts: dict[str, Callable[[int], str]] = {}
    every = list(pumps(found.pattern))
    for parts in every[number % min(ONE_IN, len(every) or 1) :: ONE_IN]:
        texts[repr(parts)] = lambda size, parts=parts: pumped(*parts, size)
    with undisturbed():
        slow = (name for name, make in texts.items() if is_super_linear(tried, make, SLOW_SMALL, SLOW_LARGE))
        assert list(islice(slow, MOST_FAULTS)) == []


# --- completeness ------------------------------------------------------------------------------------------

MADE_WHILE_RUNNING = {
    "fleet/consolidation/causes.py:_value_in": "a literal text, escaped",
    "language/builtin/forms.py:_form": "made once, of a table of forms, which are among the patterns that are tried",
    "normalisation.py:_full_run": "made once, of the combining marks",
    "retrieval/topic.py:_pattern": "made of the words of a topic; examples are among the patterns that are tried",
}
"""Functions that compile a pattern. Every other pattern is a constant of its module, where the tests find it."""

NOT_READERS = {
    ("fleet/consolidation/causes.py", "_value_in"): "a literal text in a quote",
    ("language/builtin/forms.py", "_form"): "a table of the package",
    ("verbs/limits.py", "Kind"): "it applies no pattern; its check does",
    ("privacy/checks.py", "_account_forms"): "a table in the code",
    ("access/key_file.py", "_fault"): "the operator's file of keys",
    ("cli/credentials.py", "_api_key"): "the user's own key",
    ("cli/mcp_bridge.py", "_encoded"): "a name that the user's own client sends",
    ("cli/mcp_bridge.py", "_headers"): "a revision that the user's own client sends",
    ("cli/files/conversation.py", "refused_message"): "a message of the daemon",
    ("cli/times.py", "end_ms"): "an argument of the command line",
    ("normalisation.py", "_is_mark"): "one character",
    ("settings.py", "_fits_a_header"): "the operator's settings",
    ("settings.py", "_is_address"): "the operator's settings",
    ("settings.py", "_is_duration"): "the operator's settings",
    ("settings.py", "_is_endpoint"): "the operator's settings",
    ("settings.py", "_is_name"): "the operator's settings",
    ("settings.py", "_is_token"): "the operator's settings",
    ("settings.py", "s3_address"): "the operator's settings",
    ("store/directory/agent_replacement.py", "finish_all"): "names of directories",
    ("store/directory/data_directory.py", "directory_name"): "an id that was checked",
    ("verbs/catalogue.py", "in_path"): "a route of the catalogue",
    ("verbs/catalogue.py", "verb_name"): "a name of the catalogue",
    ("verbs/requests.py", "_describe"): "the choices of a field",
}
"""Functions that apply a pattern to text that no caller, model or file can make long."""


def test_patterns_are_constants() -> None:
    """Patterns are compiled at the top of their module, so that the tests miss none; exceptions state a reason."""
    assert set(made_elsewhere()) == set(MADE_WHILE_RUNNING)


def test_every_function_with_a_pattern_is_read_with() -> None:
    """A reader runs every function that applies a pattern or normalises, or the function is listed with a reason."""
    wanted = readers_by_pattern()
    assert NOT_READERS.keys() <= wanted
    assert _left_out(wanted - NOT_READERS.keys()) == set()


def _left_out(wanted: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which of these, each as (module, function), no reader runs."""
    left = set(wanted)

    def note(frame: object, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code  # type: ignore[attr-defined]
            path = code.co_filename
            if "/ebbtide/" in path:
                left.discard((path.rpartition("/ebbtide/")[2], code.co_name))

    folding._plain.cache_clear()
    sys.settrace(note)
    try:
        for text in SAMPLES:
            for read in READERS.values() if left else ():
                with suppress(UnicodeError):
                    read(text)
    finally:
        sys.settrace(None)
    return left
