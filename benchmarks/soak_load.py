"""The load of the soak: talkers that use every operation on many agents, over REST and gRPC, and keep a ledger.

A talker behaves like a real client: it waits when a response says so, and sends a batch again under the same key when
the outcome is unknown. Now and then it retries needlessly. The ledger records the acknowledged batches, so that the
end of the run can check them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import grpc.aio
import httpx

from benchmarks.texts import Writer, common_words, rare_words
from tests.support.callers import GrpcCaller

BACK_PRESSURE = {"QUEUE_FULL", "AGENT_BUSY", "TOO_MANY_AGENTS", "AGENT_CLOSING"}
"""Error reasons that ask a client to retry; any other refusal is an error."""

FORGOTTEN = "NODE_FORGOTTEN"
"""A node may be forgotten between a listing and a request for it."""

LONGEST_WAIT_S = 1.0
MOST_TRIES = 120
KEPT_FOR_AGAIN = 20
PAUSE_S = 0.12
"""Longest pause of a talker between two requests."""

TEXT_COUNT = 4000
MOST_MESSAGES = 6

PATCHES: tuple[dict[str, Any], ...] = (
    {"decay_rate": 0.7},
    {"decay_rate": 0.8},
    {"focus_limit": 3},
    {"focus_limit": 6},
    {"long_term_factor": 0.0},
    {"locale": "zh"},
    {"locale": None, "focus_limit": None},
)

Call = Callable[..., Awaitable[Any]]
Step = Callable[["Talker", str], Awaitable[None]]


@dataclass(slots=True)
class Ledger:
    """The requests sent and their results."""

    requests: Counter[str] = field(default_factory=Counter)
    back_pressure: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[str, dict[str, int]] = field(default_factory=dict)
    """By agent and batch: how many messages."""
    sent_again: int = 0

    @property
    def batch_count(self) -> int:
        """Acknowledged batches."""
        return sum(len(batches) for batches in self.acknowledged.values())

    def acknowledge(self, agent: str, batch_id: str, message_count: int) -> None:
        """Note a batch that was answered with 202, perhaps once more."""
        known = self.acknowledged.setdefault(agent, {}).setdefault(batch_id, message_count)
        if known != message_count:
            self.errors["one batch id for two batches"] += 1


class RestCalls:
    """Requests over HTTP."""

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=60.0)

    async def __call__(
        self, method: str, path: str, body: Any = None, *, params: Any = None
    ) -> httpx.Response:
        return await self._client.request(method, path, json=body, params=params)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class GrpcCalls(GrpcCaller):
    """The same requests over gRPC."""

    def __init__(self, target: str) -> None:
        self._unknown: dict[str, str] = {}
        self._shown = ()
        self.channel = grpc.aio.insecure_channel(target)

    async def close(self) -> None:
        """Close the channel."""
        await self.channel.close(None)


class Texts:
    """The texts of messages and queries, in both languages."""

    def __init__(self, seed: int) -> None:
        writer = Writer(seed)
        self._turns = [writer.turns(TEXT_COUNT, chinese=chinese) for chinese in (False, True)]
        self._words = (*common_words(), *rare_words())

    def messages(self, dice: Random) -> list[dict[str, Any]]:
        """Return a few messages in one language, now and then in both."""
        turns = dice.choice(self._turns)
        said = [dice.choice(turns) for _ in range(dice.randint(1, MOST_MESSAGES))]
        if dice.random() < 0.1:
            said.append(dice.choice(dice.choice(self._turns)))
        roles = ("user", "assistant")
        return [{"role": roles[index % 2], "content": text} for index, text in enumerate(said)]

    def keywords(self, dice: Random) -> list[str]:
        """Return no keyword, or a few."""
        return dice.sample(self._words, dice.choice((0, 0, 1, 3)))


class Talker:
    """One client: sends a request, waits a moment, sends the next."""

    def __init__(
        self, number: int, call: Call, ledger: Ledger, texts: Texts, agents: list[str], seed: int
    ) -> None:
        self.dice = Random(f"{seed}/{number}")
        self._number = number
        self._call = call
        self._ledger = ledger
        self._texts = texts
        self._agents = agents
        self._key_count = 0
        self._sent: deque[tuple[str, dict[str, Any], str]] = deque(maxlen=KEPT_FOR_AGAIN)

    async def talk(self, until_s: float) -> None:
        """Continue until the time is up. An error is recorded and does not end the loop."""
        steps, weights = zip(*STEPS, strict=True)
        while time.monotonic() < until_s:
            [step] = self.dice.choices(steps, weights)
            try:
                await step(self, self.dice.choice(self._agents))
            except Exception as error:
                self._ledger.errors[f"{step.__name__}: {type(error).__name__}: {str(error)[:100]}"] += 1
            await asyncio.sleep(self.dice.uniform(0, PAUSE_S))

    async def ask(
        self, method: str, path: str, body: Any = None, *, params: Any = None, may: str = ""
    ) -> dict[str, Any] | None:
        """Return the response, retrying as often as the daemon requests it; None if it refuses."""
        for _ in range(MOST_TRIES):
            response = await self._call(method, path, body, params=params)
            self._ledger.requests[self._call.__class__.__name__] += 1
            if response.status_code < 400:
                answer: dict[str, Any] = response.json()
                return answer
            reason = response.json()["error"]["reason"]
            if reason not in BACK_PRESSURE:
                if reason != may:
                    self._ledger.errors[f"{method} {path}: {reason}"] += 1
                return None
            self._ledger.back_pressure[reason] += 1
            wait_s = min(LONGEST_WAIT_S, float(response.headers.get("retry-after", 0.1)))
            await asyncio.sleep(self.dice.uniform(wait_s / 2, wait_s))
        self._ledger.errors[f"{method} {path}: told to wait {MOST_TRIES} times"] += 1
        return None

    # --- what a talker does ------------------------------------------------------------------------

    async def remember(self, agent: str) -> None:
        """Remember new messages, mostly under a key."""
        body: dict[str, Any] = {"messages": self._texts.messages(self.dice)}
        if self.dice.random() < 0.8:
            self._key_count += 1
            body["idempotency_key"] = f"{self._number}/{self._key_count}"
        answer = await self.ask("POST", f"/v1/agents/{agent}/remember", body)
        if answer is not None:
            self._ledger.acknowledge(agent, answer["batch_id"], len(body["messages"]))
            if "idempotency_key" in body:
                self._sent.append((agent, body, answer["batch_id"]))

    async def remember_again(self, _: str) -> None:
        """Send an earlier batch once more; the response must name the first one."""
        if self._sent:
            agent, body, batch_id = self.dice.choice(self._sent)
            answer = await self.ask("POST", f"/v1/agents/{agent}/remember", body)
            self._ledger.sent_again += 1
            if answer is not None and answer["batch_id"] != batch_id:
                self._ledger.errors["a batch sent again became another one"] += 1

    async def recall(self, agent: str) -> None:
        """Recall with and without keywords, at several depths."""
        body = {
            "keywords": self._texts.keywords(self.dice),
            "depth": self.dice.randint(0, 4),
            "patience_ms": self.dice.choice((0, 20, 200)),
        }
        await self.ask("POST", f"/v1/agents/{agent}/recall", body)

    async def look(self, agent: str) -> None:
        """List a page or two."""
        listing = self.dice.choice(("nodes", "links", "batches", "focus", ""))
        path = f"/v1/agents/{agent}/{listing}".rstrip("/")
        params = {"page_size": 20} if listing in ("nodes", "links", "batches") else None
        answer = await self.ask("GET", path, params=params)
        if answer and listing == "nodes" and answer["nodes"]:
            node = self.dice.choice(answer["nodes"])
            await self.ask("GET", f"{path}/{node['id']}", may=FORGOTTEN)

    async def patch(self, agent: str) -> None:
        """Change the parameters of an agent."""
        await self.ask("PATCH", f"/v1/agents/{agent}", self.dice.choice(PATCHES))

    async def close(self, agent: str) -> None:
        """Close an agent."""
        await self.ask("POST", f"/v1/agents/{agent}/close")

    async def flush(self, agent: str) -> None:
        """Wait a moment for the digest of earlier messages."""
        await self.ask(
            "POST", f"/v1/agents/{agent}/flush", {"timeout_ms": 200, "passes": self.dice.random() < 0.5}
        )

    async def compress(self, agent: str) -> None:
        """Run a compression pass."""
        await self.ask("POST", f"/v1/agents/{agent}/compress", {"passes": 1}, may="TOO_MANY_PASSES")


STEPS: tuple[tuple[Step, int], ...] = (
    (Talker.remember, 35),
    (Talker.remember_again, 4),
    (Talker.recall, 38),
    (Talker.look, 12),
    (Talker.patch, 3),
    (Talker.close, 4),
    (Talker.flush, 3),
    (Talker.compress, 1),
)
"""The steps of a talker, with their weights."""
