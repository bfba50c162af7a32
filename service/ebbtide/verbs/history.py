"""get_history: when memories were made, shortened and forgotten.

Births and ends come from the table of lives, which is complete; shortenings, focus and erasures from the event log,
whose oldest events are dropped. A page is read in steps, and other jobs of the agent run between them. The events are
read as columns of numbers (`columns_of`), without an object for each.

A memory without a life was deleted: its number is only among the erased ones. Entities and concepts have no lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ebbtide.events import EventKind, PackedRun, columns_of
from ebbtide.memory.columns import Array
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.columns import Columnar, Integers, table
from ebbtide.verbs.limits import Between
from ebbtide.verbs.paging import AgentPageRequest, from_token, number_of, to_token
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import violation

DEFAULT_ROWS: Final = 100_000
MAX_ROWS: Final = 200_000
"""Lives and events on a page."""

LIVES_PER_STEP: Final = 20_000
"""Ids whose lives one job reads."""

EVENTS_PER_STEP: Final = 10_000
RECORDS_PER_STEP: Final = 500
"""Events, and records of events, after which a job ends: about 3 ms."""


class GetHistoryRequest(AgentPageRequest):
    """Which page of the history to return."""

    page_size: Annotated[int, Between(1, MAX_ROWS, "INVALID_PAGE")] | None = Field(
        None, description=f"Most lives and events on the page, 1-{MAX_ROWS}; default {DEFAULT_ROWS}."
    )
    from_pass: Annotated[int, Between(0, None)] | None = Field(
        None, description="Only what happened from this pass on; births count with `after`."
    )
    to_pass: Annotated[int, Between(0, None)] | None = Field(
        None, description="Only what happened up to this pass; births count with `after`."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_pass is not None and self.to_pass is not None and self.from_pass > self.to_pass:
            raise violation("INVALID_VALUE", "must be at least from_pass", "to_pass")
        return self

    @property
    def size(self) -> int:
        """Most lives and events on the page."""
        return DEFAULT_ROWS if self.page_size is None else self.page_size

    def wanted(self, passes: Array) -> Array:
        """Return for each pass whether it is within the range."""
        is_wanted = np.ones(len(passes), dtype=np.bool_)
        if self.from_pass is not None:
            is_wanted &= passes >= self.from_pass
        if self.to_pass is not None:
            is_wanted &= passes <= self.to_pass
        return is_wanted


class HistoryBorn(Columnar):
    """Columns with one entry for each memory and statement that was made, by id."""

    id: Integers = Field(description="Number of the node: 17 is n17.")
    after: Integers = Field(description="Completed passes when it was made.")
    length: Integers = Field(description="Characters that it had at first.")


class HistoryShortened(Columnar):
    """Columns with one entry for each shortening, in order."""

    id: Integers = Field(description="Number of the node.")
    pass_number: Integers = Field(description="The pass that shortened it.")
    length: Integers = Field(description="Characters that it had then.")


class HistoryForgotten(Columnar):
    """Columns with one entry for each memory and statement that a pass forgot, by id."""

    id: Integers = Field(description="Number of the node.")
    pass_number: Integers = Field(description="The pass that forgot it.")


class HistoryErased(Columnar):
    """Columns with one entry for each memory and statement that was deleted, in order."""

    id: Integers = Field(description="Number of the node.")
    event: Integers = Field(description="Number of the event of its deletion.")


class HistoryFocus(Columnar):
    """Columns with one entry for each change of the focus, in order, and the memories in focus."""

    pass_number: Integers = Field(description="Completed passes at that time.")
    offset: Integers = Field(
        description="Where its memories begin in `id`; they end where those of the next begin."
    )
    id: Integers = Field(
        description="Numbers of the memories in focus, newest first, one change after the other."
    )


class AgentHistory(Columnar):
    """The lives of memories and statements, as columns."""

    first_pass: int = Field(
        description="The number of passes completed before the oldest event that is kept. Shortenings, focus and "
        "erasures of earlier passes are missing."
    )
    passes: int = Field(description="Completed compression passes since creation.")
    complete: bool = Field(description="Whether the events since creation are kept.")
    last_event: int = Field(
        description="Number of the latest event that the page reflects. Follow the events after that of the first page."
    )
    born: HistoryBorn = Field(description="Births, without those of deleted memories.")
    shortened: HistoryShortened = Field(description="Shortenings, without those of deleted memories.")
    forgotten: HistoryForgotten = Field(description="Memories and statements that a pass forgot.")
    erased: HistoryErased = Field(description="Deletions of memories that lived.")
    focus: HistoryFocus = Field(description="Changes of the focus.")
    next_page_token: str = Field(description="Empty on the last page.")


class _Place(NamedTuple):
    """Where reading continues: at a node of the lives, or at an event."""

    part: str
    number: int
    passes: int | None = None
    """Completed passes before that event; None if unknown."""

    @classmethod
    def of(cls, token: str) -> Self:
        """Return the place in a token; the beginning without one."""
        part, _, rest = (from_token(token, "history") or f"{_LIVES}-0").partition("-")
        number, _, passes = rest.partition("-")
        return cls(
            _LIVES if part == _LIVES else _EVENTS, number_of(number), number_of(passes) if passes else None
        )

    @property
    def token(self) -> str:
        """The token of the page that begins here."""
        passes = "" if self.passes is None else f"-{self.passes}"
        return to_token(f"{self.part}-{self.number}{passes}", "history")


_LIVES, _EVENTS = "lives", "events"

_SHORTENED: Final = EventKind.NODE_COMPRESSED.value
_FOCUS: Final = EventKind.FOCUS_MOVED.value
_PASS: Final = EventKind.PASS_COMPLETED.value
_WITH_ROWS: Final = {_SHORTENED, EventKind.MEMORY_ERASED.value, _FOCUS}

_NONE: Final = (np.zeros(0, dtype=np.int64),) * 3


class _Frame(NamedTuple):
    """The fields of a page about the history as a whole."""

    first_pass: int
    passes: int
    complete: bool
    last_event: int


@dataclass(frozen=True, slots=True)
class _Rows:
    """The columns that one step read."""

    born: Sequence[Array] = _NONE[:3]
    shortened: Sequence[Array] = _NONE[:3]
    forgotten: Sequence[Array] = _NONE[:2]
    erased: Sequence[Array] = _NONE[:2]
    focus: Sequence[Array] = _NONE
    """Completed passes and the number of memories in focus at each change, and the memories."""
    count: int = 0
    """Lives and events."""


async def get_history(service: ReadingService, request: GetHistoryRequest) -> AgentHistory:
    """Return when memories were made, shortened and forgotten, as columns of numbers."""
    place: _Place | None = _Place.of(request.page_token)
    steps, room = [_Rows()], request.size
    async with service.fleet.using(request.owner) as agent:
        store = agent.workspace.store
        frame = await agent.run(lambda: store.read(_frame))
        while place is not None and room > 0:
            read = _lives if place.part == _LIVES else _events
            rows, place = await agent.run(partial(store.read, partial(read, place, room, request)))
            steps.append(rows)
            room -= rows.count
    return AgentHistory(
        **frame._asdict(),
        born=table(HistoryBorn, _joined([rows.born for rows in steps])),
        shortened=table(HistoryShortened, _joined([rows.shortened for rows in steps])),
        forgotten=table(HistoryForgotten, _joined([rows.forgotten for rows in steps])),
        erased=table(HistoryErased, _joined([rows.erased for rows in steps])),
        focus=_focus(*_joined([rows.focus for rows in steps])),
        next_page_token="" if place is None else place.token,
    )


def _joined(steps: Sequence[Sequence[Array]]) -> list[Array]:
    """Return the columns of all steps, one step after the other."""
    return [np.concatenate(parts) for parts in zip(*steps, strict=True)]


def _focus(passes: Array, sizes: Array, ids: Array) -> HistoryFocus:
    return HistoryFocus(pass_number=passes, offset=np.cumsum(sizes) - sizes, id=ids)


def _frame(txn: ReadTransaction) -> _Frame:
    is_complete = _is_complete(txn)
    return _Frame(
        first_pass=0 if is_complete else txn.events.passes_before(0),
        passes=txn.meta.finished_passes,
        complete=is_complete,
        last_event=txn.meta.next_event - 1,
    )


def _is_complete(txn: ReadTransaction) -> bool:
    """Return whether the creation of the first node is kept: nothing happened to a node before it."""
    if txn.meta.next_node_id == 1:
        return True
    makes = (EventKind.NODE_CREATED.value, EventKind.ENTITY_MADE.value)
    for _, record in txn.events.packed():
        made = [run.columns[0][0] for run in record.runs if run.kind in makes]
        if made:
            return min(made) == 1
    return False


def _lives(
    place: _Place, room: int, request: GetHistoryRequest, txn: ReadTransaction
) -> tuple[_Rows, _Place | None]:
    """Return the lives of the next ids."""
    end = place.number + LIVES_PER_STEP
    lives = txn.lives.columns(place.number, end)
    is_born = request.wanted(lives.after)
    is_forgotten = (lives.forgotten_in > 0) & request.wanted(lives.forgotten_in)
    counted = np.flatnonzero(is_born | is_forgotten)
    if len(counted) > room:
        end = int(lives.node_id[counted[room]])
        is_before = lives.node_id < end
        is_born, is_forgotten = is_born & is_before, is_forgotten & is_before
    rows = _Rows(
        born=[column[is_born] for column in (lives.node_id, lives.after, lives.length)],
        forgotten=[column[is_forgotten] for column in (lives.node_id, lives.forgotten_in)],
        count=min(len(counted), room),
    )
    return rows, _Place(_LIVES, end) if end < txn.meta.next_node_id else _Place(_EVENTS, 0)


def _events(
    place: _Place, room: int, request: GetHistoryRequest, txn: ReadTransaction
) -> tuple[_Rows, _Place | None]:
    """Return what the next events tell: as many as fit, or those of one step."""
    found, passes, following = _Found(room), place.passes, place.number
    for count, (first, record) in enumerate(txn.events.packed(place.number)):
        if count == RECORDS_PER_STEP or following - place.number >= EVENTS_PER_STEP:
            return found.rows(txn, request), _Place(_EVENTS, following, passes)
        if passes is None or first > following:
            passes = txn.events.passes_before(max(first, place.number))
        following = first
        for run in record.runs:
            kind, run_count = run.kind, run.count
            if kind in _WITH_ROWS and following + run_count > place.number:
                skipped = max(0, place.number - following)
                taken = found.take(run, skipped, following, passes)
                if skipped + taken < run_count:
                    return found.rows(txn, request), _Place(_EVENTS, following + skipped + taken, passes)
            following += run_count
            if kind == _PASS and following > place.number:
                passes = sum(run.numbers)  # the last of numbers that are stored as differences
    return found.rows(txn, request), None


class _Found:
    """The events of a step that have a row. There is room for a number of them."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._count = 0
        self._shortened: list[PackedRun] = []
        self._erased: tuple[list[int], ...] = ([], [], [])
        self._focus: list[PackedRun] = []
        self._focus_passes: list[int] = []

    def take(self, run: PackedRun, skipped: int, first: int, passes: int) -> int:
        """Add the events of a run after the skipped ones, as far as there is room, and return how many were added.

        `first` is the number of the first event of the run, and `passes` the number of passes completed before it.
        """
        taken = min(run.count - skipped, self._room - self._count)
        if taken == 0:
            return 0
        self._count += taken
        end = skipped + taken
        if run.kind == _FOCUS:
            self._focus.append(run)
            self._focus_passes.append(passes)
        elif run.kind == _SHORTENED:
            self._shortened.append(run if taken == run.count else run.part(skipped, end))
        else:
            events = range(first + skipped, first + end)
            columns = (run.columns[0][skipped:end], events, [passes] * taken)
            for column, values in zip(self._erased, columns, strict=True):
                column += values
        return taken

    def rows(self, txn: ReadTransaction, request: GetHistoryRequest) -> _Rows:
        """Return the rows within the range of passes, without shortenings of memories that were deleted since."""
        ids, _, lengths, passes = columns_of(EventKind.NODE_COMPRESSED, self._shortened)
        is_wanted = request.wanted(passes) & _have_lives(txn, ids)
        node, event, erased_in = np.array(self._erased, dtype=np.int64)
        is_erased = (node > 0) & request.wanted(erased_in)
        return _Rows(
            shortened=[column[is_wanted] for column in (ids, passes, lengths)],
            erased=[node[is_erased], event[is_erased]],
            focus=self._focus_within(request),
            count=self._count,
        )

    def _focus_within(self, request: GetHistoryRequest) -> list[Array]:
        passes = np.array(self._focus_passes, dtype=np.int64)
        is_wanted = request.wanted(passes)
        [numbers] = columns_of(EventKind.FOCUS_MOVED, self._focus)
        lengths = np.array([len(run.numbers) for run in self._focus], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        # Each run has the number of memories, the memories, and then entities.
        sizes = numbers[starts]
        places = np.arange(len(numbers)) - np.repeat(starts, lengths)
        is_memory = (places > 0) & (places <= np.repeat(sizes, lengths)) & np.repeat(is_wanted, lengths)
        return [passes[is_wanted], sizes[is_wanted], numbers[is_memory]]


def _have_lives(txn: ReadTransaction, ids: Array) -> Array:
    """Return for each id whether it has a life."""
    if not len(ids):
        return np.zeros(0, dtype=np.bool_)
    first, end = int(ids.min()), int(ids.max()) + 1
    is_known = np.zeros(end - first, dtype=np.bool_)
    is_known[txn.lives.columns(first, end).node_id - first] = True
    found: NDArray[np.bool_] = is_known[ids - first]
    return found
