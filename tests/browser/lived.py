"""Agents for the tests of the web view: one whose memories were shortened and forgotten, and one with hostile texts."""

from __future__ import annotations

import re
from typing import Final

from ebbtide_client import Client
from tests.support.fading import GARDEN, HARBOUR, KETTLE, QUICKLY

HOSTILE: Final = (
    "<img src=x onerror=\"document.title='ran'\"> is what Eve said",
    "<script>document.title='ran'</script> is a text",
    "<svg/onload=document.title='ran'> is a text too",
    "javascript:document.title='ran' is no link",
    "\"><b>bold</b><i class='x'> ends an attribute",
    "{{constructor.constructor('document.title=1')()}} is no template",
    "${document.title='ran'} is no template either",
    "\u202emoc.elpmaxe\u202c is written from right to left",
    "\u2066isolated\u2069 and \u200bnothing\u200b between",
    "Zalgo Z\u0337\u0321\u0345a\u0336l\u0335g\u0334o\u0338 has many marks",
    "w" * 400 + " is a long word",
    "&lt;b&gt; &amp; &#60; are entities",
    "<!-- a comment --> <style>*{display:none}</style>",
    "<a href='//example.org'>click here</a>",
    "<iframe src='//example.org'></iframe> is a frame",
    "林月说：<b>你好</b>，世界",
    "👩‍👩‍👧‍👦🏴‍☠️ is a family and a flag",
    "'; DROP TABLE memories; --",
    "\\u003cimg src=x\\u003e is escaped",
    "<math><mtext></mtext><mglyph><svg><mtext><style><path id='</style><img onerror=1>'>",
)
"""Texts that would run, hide or break something if a page took them for more than text."""


TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of writing."""


def as_shown(text: str) -> str:
    """Return a text as the view shows it: with numbers for the characters that change the direction of writing."""
    return TURNING.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text)


def live_through(client: Client, agent: str) -> None:
    """Make an agent that shortened some of its memories and forgot others."""
    client.open_agent(agent, parameters=dict(QUICKLY))
    for text in (
        KETTLE,
        HARBOUR,
        GARDEN,
        "Clara builds wooden boats in Porto, together with her brother Tom.",
    ):
        tell(client, agent, text)
        client.compress(agent, passes=3)
        client.flush(agent, passes=True, timeout_ms=20_000)


def tell(client: Client, agent: str, text: str) -> None:
    """Make an agent remember a text, and wait for the memories."""
    client.remember(agent, [{"role": "user", "speaker": "Ann", "content": text}])
    client.flush(agent, passes=True, timeout_ms=20_000)
