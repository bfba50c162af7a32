"""The bounds of all stored values: one named type for each kind of value.

Stored records (`records.py`, `events.py`) and the lines of an export (`store/transfer/export_lines.py`) use these
types, and msgspec checks them whenever a record or a line is decoded. So an import, a restore, `ebbtide check` and
every read of a store apply the same bounds. The highest values of settings that limit requests are here too: a
request that is valid under any settings fits.

Ascending numbers may reach `MAX_NUMBER` and `MAX_COUNT` in a store, but an import or a restore must start in the lower
half (`NextId`, `FirstCount`). So an accepted agent never runs out of numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from ebbtide.parameters import AgentParameters

# --- limits of settings --------------------------------------------------------------------------------

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

# --- attachments ---------------------------------------------------------------------------------------

MAX_ATTACHMENTS: Final = 16
"""Attachments of a message."""
MAX_ATTACHMENT_BYTES: Final = 1 << 20
"""Size of an attachment."""
MAX_REGIONS: Final = 64
"""Regions of an attachment."""
MAX_CAPTION_CHARS: Final = 2000
"""Characters of the caption of an attachment or a region."""
MAX_MIME_CHARS: Final = 127
"""Characters of a media type."""

# --- records -------------------------------------------------------------------------------------------

MAX_LABELS: Final = 16
"""Labels of a namespace."""
MAX_LABEL_CHARS: Final = 200
"""Characters of a label."""
MAX_RECORD_KEY_CHARS: Final = 500
"""Characters of the key of a record."""
MAX_RECORD_BYTES: Final = 256 << 10
"""Bytes of the value of a record as JSON."""
MAX_INDEX_PATHS: Final = 50
"""Most paths to the texts of a record that a search finds."""
MAX_RECORD_DEPTH: Final = 30
"""Levels of objects and lists in the value of a record: protobuf reads no more."""
MAX_TTL_MINUTES: Final = 100 * 366 * 24 * 60
"""Minutes until a record expires."""

# --- numbers -------------------------------------------------------------------------------------------

MAX_NUMBER: Final = 1 << 53
"""Highest id or sequence number: JSON readers that only have floating point read it exactly."""
MAX_COUNT: Final = (1 << 31) - 1
"""Highest counter: the arrays of the memory network have 32 bits."""
EARLIEST_MS: Final = -62_135_596_800_000
LATEST_MS: Final = 253_402_300_799_999
"""The years 1 to 9999: the range of a protobuf Timestamp."""

Id = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
"""The number of a node, message or batch, or a place in a queue."""
Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
"""An `Id`, or 0 for none."""
NextId = Annotated[int, Meta(ge=1, le=MAX_NUMBER // 2)]
"""The next `Id`, in an agent from a file."""
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
"""A count, or the number of a compression pass."""
FirstCount = Annotated[int, Meta(ge=0, le=MAX_COUNT // 2)]
"""A `Count` that only grows, in an agent from a file."""
RelationId = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
"""The number of a relation name."""
NextRelationId = Annotated[int, Meta(ge=1, le=MAX_COUNT // 2)]
"""The next `RelationId`, in an agent from a file."""
MessageCount = Annotated[int, Meta(ge=0, le=MAX_MESSAGES)]
"""Messages of a batch, or the index of one."""
Time = Annotated[int, Meta(ge=EARLIEST_MS, le=LATEST_MS)]
"""Milliseconds since 1970-01-01 UTC, of the years 1 to 9999."""
Marks = Annotated[int, Meta(ge=-1, le=(1 << 52) - 1)]
"""Signs of a text as bits and counts, with the version of their rules; -1 if they are unknown."""
Seed = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""The seed of an agent's random choices."""
Version = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
"""The version of a format."""
Strength = Annotated[float, Meta(ge=0, le=1)]
"""The strength of a link."""
Importance = Annotated[float, Meta(ge=0, le=float(MAX_COUNT))]
"""The support of a memory."""

# --- texts ---------------------------------------------------------------------------------------------

REDACTION_GROWTH: Final = 8
"""Highest growth of a text by redaction: `::1` becomes `[ip]`, and an id gets a keyed hash."""
LABEL_CHARS: Final = 1000
"""Room for the label of a speaker in a memory, and for what redaction adds to a short name."""
CAPTION_CHARS: Final = MAX_ATTACHMENTS * (1 + MAX_REGIONS)
"""Room for the line ends before captions, which `limits.max_message_chars` does not count."""
MAX_TEXT_CHARS: Final = REDACTION_GROWTH * (MAX_MESSAGE_CHARS + MAX_NAME_CHARS) + LABEL_CHARS + CAPTION_CHARS
MAX_TEXT_BYTES: Final = 4 * MAX_TEXT_CHARS
MAX_METADATA_CHARS: Final = 2 * MAX_METADATA_BYTES
"""A message has the metadata of its batch and its own."""
MAX_METADATA_DEPTH: Final = 200
"""Depth of nested objects and lists in metadata: the parser of requests accepts no more."""

Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
"""The text of a message or a memory."""
Name = Annotated[str, Meta(max_length=REDACTION_GROWTH * MAX_NAME_CHARS + LABEL_CHARS)]
"""A speaker, an id of the caller, a keyword, a summary, or the name of a model."""
RelationName = Annotated[str, Meta(max_length=MAX_RELATION_CHARS)]
"""The name of a link."""
Json = Annotated[str, Meta(max_length=REDACTION_GROWTH * MAX_METADATA_CHARS)]
"""Metadata as JSON."""
AgentIdText = Annotated[str, Meta(min_length=1, max_length=128)]
"""An agent id; `parse_agent_id` checks its characters."""
TextLength = Annotated[int, Meta(ge=0, le=MAX_TEXT_CHARS)]
"""Characters of a text."""
ByteLength = Annotated[int, Meta(ge=0, le=MAX_TEXT_BYTES)]
"""An offset in a text, or its length, in UTF-8 bytes."""
MediaType = Annotated[str, Meta(min_length=3, max_length=MAX_MIME_CHARS)]
"""The type of an attachment."""
AttachmentSize = Annotated[int, Meta(ge=1, le=MAX_ATTACHMENT_BYTES)]
"""Bytes of an attachment."""
AttachmentBytes = Annotated[bytes, Meta(min_length=1, max_length=MAX_ATTACHMENT_BYTES)]
"""The content of an attachment."""
Box = Annotated[tuple[Annotated[float, Meta(ge=0, le=1)], ...], Meta(max_length=4)]
"""x, y, width and height as shares; empty for none."""
RecordingTime = Annotated[int, Meta(ge=-1, le=MAX_COUNT)]
"""Milliseconds from the begin of a recording; -1 for none."""
Hash = Annotated[bytes, Meta(max_length=64)]
"""A hash, or the key of a text; empty for none."""

Label = Annotated[str, Meta(min_length=1, max_length=REDACTION_GROWTH * MAX_LABEL_CHARS + LABEL_CHARS)]
"""One part of the namespace of a record."""
Namespace = Annotated[tuple[Label, ...], Meta(min_length=1, max_length=MAX_LABELS)]
"""The place of a record, from the outermost label on."""
RecordKey = Annotated[
    str, Meta(min_length=1, max_length=REDACTION_GROWTH * MAX_RECORD_KEY_CHARS + LABEL_CHARS)
]
"""The name of a record in its namespace."""
RecordText = Annotated[str, Meta(max_length=REDACTION_GROWTH * MAX_RECORD_BYTES)]
"""The value of a record as JSON."""
IndexPath = Annotated[str, Meta(min_length=1, max_length=REDACTION_GROWTH * MAX_LABEL_CHARS + LABEL_CHARS)]
"""A path to texts in the value of a record."""
IndexPaths = Annotated[tuple[IndexPath, ...], Meta(max_length=MAX_INDEX_PATHS)]
"""The texts of a record that a search finds."""
Minutes = Annotated[int, Meta(ge=0, le=MAX_TTL_MINUTES)]
"""Minutes until something expires; 0 for never."""

# --- lists ---------------------------------------------------------------------------------------------

MAX_PASSAGES: Final = 200_000
"""Passages of a message: the longest text has fewer."""
MAX_IDS: Final = 4_000_000
"""Memories of a batch, or that cite a message: more than one request can create."""
MAX_SPANS: Final = 1_000_000
"""Ranges of personal data in a message."""
MAX_KINDS: Final = 100
"""Kinds of personal data, and parameters of an agent: more than exist."""
MAX_VALUE_BYTES: Final = 1 << 28
"""Size of an entry of a store. Decoding one takes several times as much memory."""

Ids = Annotated[tuple[Id, ...], Meta(max_length=MAX_IDS)]
"""The nodes of a batch or a message."""
Keywords = Annotated[tuple[Name, ...], Meta(max_length=MAX_KEYWORDS)]
"""The keywords of a memory."""
MAX_CONCEPT_KEYWORDS: Final = 3
ConceptKeywords = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=MAX_CONCEPT_KEYWORDS)]
"""The keywords of a concept."""
PersonalCounts = Annotated[dict[Name, Count], Meta(max_length=MAX_KINDS)]
"""The amount of personal data of each kind."""

# --- vectors -------------------------------------------------------------------------------------------

MAX_DIMENSION: Final = 1 << 16
"""Numbers in a vector."""
LENGTH_TOLERANCE: Final = 0.05
"""How far the square of a vector's length may be from 1; half precision stays within a thousandth."""

Dimension = Annotated[int, Meta(ge=0, le=MAX_DIMENSION)]
"""Numbers in a vector; 0 while it is unknown."""
PackedVector = Annotated[bytes, Meta(max_length=2 * MAX_DIMENSION)]
"""A vector as 16-bit floats; empty for none."""
Vectors = Annotated[tuple[PackedVector, ...], Meta(max_length=MAX_PASSAGES)]
"""A vector for each passage of a message."""

# --- agent parameters ----------------------------------------------------------------------------------


def _of_parameter(name: str) -> dict[str, Any]:
    """Return the bounds that `AgentParameters` declares for a number, as arguments of msgspec's `Meta`."""
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
"""Parameters by name; `AgentParameters` checks each value."""
DecayRate = Annotated[float, Meta(**_of_parameter("decay_rate"))]
"""The factor of a link's strength at each scan."""
Strategy = Literal["scan", "slots"]
"""How a pass chooses its nodes."""
OwedPasses = Annotated[int, Meta(ge=0, le=_of_parameter("max_owed_passes")["le"])]
"""Compression passes that an agent owes."""
UncountedTokens = Annotated[int, Meta(ge=0, le=_of_parameter("pass_every_tokens")["le"])]
"""Tokens of memories for which no compression pass is owed yet."""
Focus = Annotated[tuple[Id, ...], Meta(max_length=MAX_FOCUS)]
"""The nodes in focus."""
Drawn = Annotated[tuple[Id, ...], Meta(max_length=MAX_DRAWN)]
"""The nodes drawn for a pass."""
