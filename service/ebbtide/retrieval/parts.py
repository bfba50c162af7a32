"""Parts: several questions in one. "When did Ann move, and what did Bob say of it?" asks for two things.

A passage that answers one of them says nothing of the other, and looks as if it said half of what was asked. So each
part is looked for by itself beside the whole. A query is cut where a question ends and another one follows, and before
a conjunction that opens one; what asks nothing is no part.

The rule guarded here: a query that asks for one thing has no parts, whatever it lists ("black and white", 和). Cutting
takes linear time. Deliberately not here: what a part means (`question.py`), and what it counts (`ranking.py`).
"""

from __future__ import annotations

import re

MOST_PARTS = 8

_AUXILIARY = r"(?:did|do|does|was|were|is|are|has|have|had|will|would|can|could|should)(?:n['’]t)?(?![a-z])"
_ALSO = r"(?:另外|还有|以及|并且|同时|此外)[，,]?\s*+"
_CUT = re.compile(
    rf"[?？][\"'”’」』)）]*+\s*+(?:{_ALSO}|(?:and|also|or|but)\b,?\s*+)?|[。！]\s*+(?:{_ALSO})?|[;；]\s*+"
    r"|(?:,\s++|(?<!\s)\s++)(?:and|but)\s++(?:also\s++)?(?=(?:what|how|why|when|where)\b|(?:who|whom|which)\s++"
    rf"{_AUXILIARY})|[，,]\s*+{_ALSO}",
    re.IGNORECASE,
)
"""Between two parts."""

_ASKS = re.compile(
    rf"\b(?:what|which|who|whom|whose|when|where|why|how)\b|^{_AUXILIARY}"
    r"|什么|谁|哪|几|多少|多[久大长高远]|怎|如何|何[时处地]|为何|吗|呢$|是不是|有没有",
    re.IGNORECASE,
)


def parts_of(query: str) -> tuple[str, ...]:
    """What a query asks, part by part, in order; nothing unless these are several."""
    parts = [part for piece in _CUT.split(query) if _ASKS.search(part := piece.strip())]
    return tuple(dict.fromkeys(parts))[:MOST_PARTS] if len(parts) > 1 else ()
