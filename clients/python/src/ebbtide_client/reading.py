"""A stream of events across connections, without any I/O: its lines, its place, whether it is asked for again.

A connection that breaks off, or ends because the daemon stops, is asked for again after the last event that was seen,
so nothing is missed and nothing comes twice. Events that arrive renew the patience.
"""

from __future__ import annotations

import json
from dataclasses import replace

from ebbtide_client import errors, models
from ebbtide_client.calls import Call
from ebbtide_client.models import EventInfo
from ebbtide_client.retries import Retries, Tries

LEAST_TIMEOUT_S = 45.0
"""A daemon with nothing to tell gives a sign of life every 15 s."""


class Reading:
    """One stream."""

    def __init__(self, call: Call[EventInfo], retries: Retries) -> None:
        self.call = call
        self.is_following = (call.query or {}).get("follow") != "false"
        self._retries = retries
        self._tries = Tries(call, retries)
        self._kind = ""

    def line(self, text: str) -> EventInfo | None:
        """The event that ends with a line, or the error that the stream ends with."""
        name, _, value = text.partition(": ")
        if name == "event":
            self._kind = value
        if name != "data":
            return None
        if self._kind == "StreamEnded":
            raise _ended(value)
        try:
            event = self.call.parse(200, json.loads(value))
        except (ValueError, models.Misfit) as error:
            raise errors.UnexpectedAnswer(
                f"an event cannot be read: {error}", reason="UNREADABLE_ANSWER"
            ) from None
        self.call = replace(self.call, query={**(self.call.query or {}), "after": str(event.sequence)})
        self._tries = Tries(self.call, self._retries)
        return event

    def pause_s(self, error: errors.EbbtideError | None) -> float:
        """How long to wait before it is asked for again; raises the error where it is not."""
        lost = error or errors.ConnectionFailed("the stream of events ended", reason="CONNECTION_LOST")
        pause_s = self._tries.pause_s(lost)
        if pause_s is None:
            raise lost
        return pause_s


def _ended(body: str) -> errors.EbbtideError:
    try:
        error = json.loads(body)["error"]
        return errors.refusal(error, int(error["code"]), None, "")
    except (ValueError, KeyError, TypeError):
        return errors.UnexpectedAnswer("the end of a stream cannot be read", reason="UNREADABLE_ANSWER")
