"""A stream of events across connections, without I/O: parse lines, keep the position, decide about reconnecting.

A connection that breaks off, or ends because the daemon stops, is requested again after the last received event.
No event is missed and none arrives twice. Each received event resets the count of attempts.
"""

from __future__ import annotations

import json
from dataclasses import replace

from ebbtide_client import decoding, errors
from ebbtide_client.calls import Call
from ebbtide_client.models import EventInfo
from ebbtide_client.retries import Attempts, Retries

LEAST_TIMEOUT_S = 45.0
"""An idle daemon sends a comment every 15 s."""


class EventStream:
    """One stream."""

    def __init__(self, call: Call[EventInfo], retries: Retries) -> None:
        self.call = call
        self.is_following = (call.query or {}).get("follow") != "false"
        self._retries = retries
        self._attempts = Attempts(call, retries)
        self._kind = ""

    def line(self, text: str) -> EventInfo | None:
        """Return the event that a line completes, or None. Raise the error with which the daemon ended the stream."""
        name, _, value = text.partition(": ")
        if name == "event":
            self._kind = value
        if name != "data":
            return None
        if self._kind == "StreamEnded":
            raise _ended(value)
        try:
            event = self.call.parse(200, json.loads(value))
        except (ValueError, decoding.Misfit) as error:
            raise errors.UnexpectedAnswer(
                f"an event cannot be read: {error}", reason="UNREADABLE_ANSWER"
            ) from None
        self.call = replace(self.call, query={**(self.call.query or {}), "after": str(event.sequence)})
        self._attempts = Attempts(self.call, self._retries)
        return event

    def pause_s(self, error: errors.EbbtideError | None) -> float:
        """Return how long to wait before reconnecting. Raise the error if another attempt makes no sense."""
        lost = error or errors.ConnectionFailed("the stream of events ended", reason="CONNECTION_LOST")
        pause_s = self._attempts.pause_s(lost)
        if pause_s is None:
            raise lost
        return pause_s


def _ended(body: str) -> errors.EbbtideError:
    try:
        error = json.loads(body)["error"]
        return errors.refusal(error, int(error["code"]), None, "")
    except (ValueError, KeyError, TypeError):
        return errors.UnexpectedAnswer("the end of the stream cannot be read", reason="UNREADABLE_ANSWER")
