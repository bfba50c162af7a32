"""The bounds of everything that is stored: one named type for each kind of value.

Stored records (`records.py`, `events.py`, `store/port.py`) and the lines of an export
(`store/transfer/export_lines.py`) use these types, and msgspec checks them wherever a record or a line is decoded. So
an import, a restore, `ebbtide check` and every read of a store apply the same bounds. The ceilings of settings that
limit requests are here too: whatever a daemon may accept, under any settings, fits.

Two bounds differ between a record and an import. Numbers that are given in ascending order may reach `MAX_NUMBER` and
`MAX_COUNT` in a store, but an import or a restore must begin in the lower half (`NextId`, `FirstCount`): an agent that
was accepted never runs out of numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from ebbtide.parameters import AgentParameters

# --- ceilings of settings ------------------------------------------------------------------------------

MAX_MESSAGE_CHARS: Final = 10_000_000
"""Highest `limits.max_message_chars`."""
MAX_NAME_CHARS: Final = 10_000
"""Highest `limits.max_name_chars` and `limits.max_keyword_chars`."""
MAX_RELATION_CHARS: Final = 1000
"""Highest `limits.max_relation_chars`."""
MAX_METADATA_BYTES: Final = 1 << 20
"""Highest `limits.max_metadata_bytes`."""
MAX_MESSAGES: Final = 100_000
"""Highest `limits.max_messages`."""
MAX_KEYWORDS: Final = 10_000
"""Highest `limits.max_keywords`."""

# --- numbers -------------------------------------------------------------------------------------------

MAX_NUMBER: Final = 1 << 53
"""No id or sequence number is larger: a JSON reader that knows floating point only still reads it exactly."""
MAX_COUNT: Final = (1 << 31) - 1
"""No counter is larger: the arrays of the memory network have 32 bits."""
EARLIEST_MS: Final = -62_135_596_800_000
LATEST_MS: Final = 253_402_300_799_999
"""The years 1 to 9999: what a protobuf Timestamp can represent."""

Id = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
"""The number of a node, message or batch, or a place in a queue."""
Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
"""An `Id`, or 0 for none."""
NextId = Annotated[int, Meta(ge=1, le=MAX_NUMBER // 2)]
"""The number that is given next, where an agent comes from a file."""
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
"""How many, or the number of a compression pass."""
FirstCount = Annotated[int, Meta(ge=0, le=MAX_COUNT // 2)]
"""A `Count` that goes on growing, where an agent comes from a file."""
RelationId = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
"""The number of a relation name."""
NextRelationId = Annotated[int, Meta(ge=1, le=MAX_COUNT // 2)]
"""The number of the next relation name, where an agent comes from a file."""
MessageCount = Annotated[int, Meta(ge=0, le=MAX_MESSAGES)]
"""Messages of a batch, or the place of one among them."""
Time = Annotated[int, Meta(ge=EARLIEST_MS, le=LATEST_MS)]
"""Milliseconds since 1970-01-01 UTC, of the years 1 to 9999."""
Seed = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""What an agent's random choices are derived from."""
Version = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
"""The version of a format."""
Strength = Annotated[float, Meta(ge=0, le=1)]
"""The strength of a link."""
Importance = Annotated[float, Meta(ge=0, le=float(MAX_COUNT))]
"""The support of a memory."""

# --- texts ---------------------------------------------------------------------------------------------

REDACTION_GROWTH: Final = 8
"""How much longer redaction makes a text at most: `::1` becomes `[ip]`, in an id with a keyed hash."""
LABEL_CHARS: Final = 1000
"""Room for the label of a speaker before the content of a memory, and for what redaction adds to a short name."""
MAX_TEXT_CHARS: Final = REDACTION_GROWTH * (MAX_MESSAGE_CHARS + MAX_NAME_CHARS) + LABEL_CHARS
MAX_TEXT_BYTES: Final = 4 * MAX_TEXT_CHARS
MAX_METADATA_CHARS: Final = 2 * MAX_METADATA_BYTES
"""A message has its batch's metadata and its own."""
MAX_METADATA_DEPTH: Final = 200
"""Objects and lists within each other in metadata: the reader of requests takes no more."""

Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
"""What was said, or what a memory says."""
Name = Annotated[str, Meta(max_length=REDACTION_GROWTH * MAX_NAME_CHARS + LABEL_CHARS)]
"""A speaker, an id of the caller's, a keyword, a summary, the name of a model."""
RelationName = Annotated[str, Meta(max_length=MAX_RELATION_CHARS)]
"""The name of a link."""
Json = Annotated[str, Meta(max_length=REDACTION_GROWTH * MAX_METADATA_CHARS)]
"""Metadata, written as JSON."""
AgentIdText = Annotated[str, Meta(min_length=1, max_length=128)]
"""An agent id; `parse_agent_id` checks its characters."""
TextLength = Annotated[int, Meta(ge=0, le=MAX_TEXT_CHARS)]
"""Characters of a text."""
ByteLength = Annotated[int, Meta(ge=0, le=MAX_TEXT_BYTES)]
"""A place in a text, or its length, in UTF-8 bytes."""
Hash = Annotated[bytes, Meta(max_length=64)]
"""A hash, or the key of a text; empty for none."""

# --- lists ---------------------------------------------------------------------------------------------

MAX_PASSAGES: Final = 200_000
"""Passages of a message: the longest text is cut into fewer."""
MAX_IDS: Final = 4_000_000
"""Memories of a batch, or that cite a message: more than are ever made of one request."""
MAX_SPANS: Final = 1_000_000
"""Places with personal data in a message."""
MAX_KINDS: Final = 100
"""Kinds of personal data, and parameters of an agent: more than there are."""
MAX_VALUE_BYTES: Final = 1 << 28
"""An entry of a store; read at once, it takes some times as much memory."""

Ids = Annotated[tuple[Id, ...], Meta(max_length=MAX_IDS)]
"""Nodes, as many as a batch or a message may have."""
Keywords = Annotated[tuple[Name, ...], Meta(max_length=MAX_KEYWORDS)]
"""What a memory is found by."""
PersonalCounts = Annotated[dict[Name, Count], Meta(max_length=MAX_KINDS)]
"""How much personal data of each kind."""

# --- vectors -------------------------------------------------------------------------------------------

MAX_DIMENSION: Final = 1 << 16
"""Numbers in a vector."""
LENGTH_TOLERANCE: Final = 0.05
"""How far the square of a vector's length may be from 1; half precision stays within a thousandth."""

Dimension = Annotated[int, Meta(ge=0, le=MAX_DIMENSION)]
"""Numbers in a vector; 0 where that is not known."""
PackedVector = Annotated[bytes, Meta(max_length=2 * MAX_DIMENSION)]
"""A vector as 16-bit floats; empty for none."""
Vectors = Annotated[tuple[PackedVector, ...], Meta(max_length=MAX_PASSAGES)]
"""A vector for each passage of a message."""

# --- agent parameters ----------------------------------------------------------------------------------


def _of_parameter(name: str) -> dict[str, Any]:
    """The bounds that `AgentParameters` declares for a number, by the names that msgspec has for them."""
    found = AgentParameters.model_fields[name].metadata
    return {key: getattr(one, key) for one in found for key in ("gt", "ge", "le") if hasattr(one, key)}


MAX_FOCUS: Final[int] = _of_parameter("focus_limit")["le"]
MAX_DRAWN: Final[int] = _of_parameter("compression_batch_size")["le"]

Scalar = (
    bool
    | Annotated[int, Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]
    | Annotated[float, Meta(ge=-1e308, le=1e308)]
    | Name
    | None
)
Overrides = Annotated[dict[Name, Scalar], Meta(max_length=MAX_KINDS)]
"""Parameters by name; `AgentParameters` checks what each may be."""
DecayRate = Annotated[float, Meta(**_of_parameter("decay_rate"))]
"""By what the strength of a link is multiplied at each scan."""
Strategy = Literal["scan", "slots"]
"""How a pass chooses the nodes that it visits."""
OwedPasses = Annotated[int, Meta(ge=0, le=_of_parameter("max_owed_passes")["le"])]
"""Compression passes that an agent owes."""
Focus = Annotated[tuple[Id, ...], Meta(max_length=MAX_FOCUS)]
"""The nodes in focus."""
Drawn = Annotated[tuple[Id, ...], Meta(max_length=MAX_DRAWN)]
"""The nodes drawn for a pass."""
