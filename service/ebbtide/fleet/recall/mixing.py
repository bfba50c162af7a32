"""The answer of a query for records, or for memories and records: one order, within one limit.

The scores of memories and of records measure different things, so only ranks are compared: the best memory, the best
record, the second memory, and so on (reciprocal rank fusion, G. Cormack et al. 2009, of lists without common items).
The token budget is filled as for memories alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from operator import itemgetter

from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.recollected import Hit, Recollected, RecordHit
from ebbtide.memory.wording import joined
from ebbtide.retrieval.lexical import weights_of
from ebbtide.retrieval.packing import Candidate, pack
from ebbtide.retrieval.sentences import key_sentences
from ebbtide.retrieval.times import Offset

RANK_OFFSET = 60
"""Added to a rank before the reciprocal is taken, so that the first ranks differ little."""

Block = Callable[[Hit | RecordHit], str]


def mixed(
    found: Recollected,
    records: Sequence[RecordHit],
    query: Query,
    count_tokens: Callable[[str], int],
    locale: str,
    offset: Offset,
) -> Recollected:
    """Return a result with records too: both lists in one order, within the limits of the query."""
    lists: tuple[Sequence[Hit | RecordHit], ...] = (found.memories, records)
    ranked = sorted(((rank, one) for some in lists for rank, one in enumerate(some)), key=itemgetter(0))
    hits = [one for _, one in ranked]
    if query.token_budget is None:
        order = hits[: query.max_results]
        return _ordered(found, order, [(one, "max_results") for one in hits[query.max_results :]])

    def block(one: Hit | RecordHit) -> str:
        return one.block(cites=query.cites, dates=query.dates, locale=locale, offset=offset)

    by_key: dict[Hashable, Hit | RecordHit] = dict(enumerate(hits))
    shortened: dict[str, Hit | RecordHit] = {}

    def shorten(candidate: Candidate, fits: Callable[[str], bool]) -> str:
        return _shorten(by_key[candidate.key], query.text, block, fits, shortened)

    values = [1 / (RANK_OFFSET + rank) if query.with_memories else one.score for rank, one in ranked]
    packed = pack(
        [Candidate(key, block(one), values[key], frozenset()) for key, one in enumerate(hits)],
        max_results=query.max_results,
        token_budget=query.token_budget,
        count=count_tokens,
        word=joined,
        shorten=shorten if query.key_sentences else None,
    )
    kept = [shortened[one.text] if one.key in packed.shortened else by_key[one.key] for one in packed.kept]
    return _ordered(found, kept, [(by_key[key], why) for key, why in packed.dropped])


def _shorten(
    one: Hit | RecordHit,
    query: str,
    block: Block,
    fits: Callable[[str], bool],
    shortened: dict[str, Hit | RecordHit],
) -> str:
    """Return the block of the key sentences that fit; empty if there are none. Note what it is the block of."""
    # The content of a memory begins with its label, that of a record does not.
    label = one.label if isinstance(one, Hit) else ""
    content = key_sentences(
        one.content.removeprefix(label),
        weights_of([query]),
        lambda text: fits(block(replace(one, content=text))),
        label=label,
    )
    if not content:
        return ""
    done = replace(one, content=content, is_shortened=True)
    shortened[block(done)] = done
    return block(done)


def _ordered(
    found: Recollected, order: Sequence[Hit | RecordHit], dropped: Sequence[tuple[Hit | RecordHit, str]]
) -> Recollected:
    left_out = tuple((one, why) for one, why in dropped if isinstance(one, Hit))
    return replace(
        found,
        order=tuple(order),
        memories=tuple(one for one in order if isinstance(one, Hit)),
        records=tuple(one for one in order if isinstance(one, RecordHit)),
        dropped=(*left_out, *found.dropped),
    )
