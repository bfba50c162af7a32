"""A wall clock that is changed: time is metadata only, so nothing is delayed, lost or reordered."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.keys import KEYS_ON, bearer, new_key
from tests.support.process import running_daemon
from tests.support.unsteady_daemon import MODULE, nonsense_file, set_clock
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

DAY_S = 86_400.0
SETTINGS = {"LANGUAGE__RETRY_BASE_MS": 100, "LANGUAGE__RETRY_CAP_MS": 500, "EMBEDDING__MODEL": "off"}


def test_clock_set_back_and_forth_loses_and_disorders_nothing(tmp_path: Path) -> None:
    """The clock jumps by years before each batch and across a restart; nothing is lost or reordered."""
    data_dir = tmp_path / "data"
    facts = []
    with running_daemon(data_dir, SETTINGS, module=MODULE) as daemon:
        for number, days in enumerate((0, 400, -3000, 0, 9000, -1, 30)):
            set_clock(data_dir, days * DAY_S)
            facts.append(f"Fact number {number}.")
            daemon.remember("ann", facts[-1], idempotency_key=f"key {number}")
            if number == 3:
                assert daemon.stop() == 0
                daemon.start()
            answer = daemon.flush("ann", timeout_ms=30_000)
            assert (answer["digested"], answer["passes_done"]) == (True, True)
        assert [node["content"] for node in daemon.get("ann/nodes").json()["nodes"]] == facts
        found = daemon.post("ann/recall", {"query": "Which fact is number 2?"}).json()
        assert facts[2] in found["text"]
        ready = daemon.client.get("/readyz").json()
        assert not [why for why in ready["reasons"] if "waited" in why]
        batches = daemon.get("ann/batches").json()["batches"]
        assert [batch["state"] for batch in batches] == ["digested"] * len(facts)
        # An idempotency key stays valid, however old the clock makes it.
        for number, fact in enumerate(facts):
            assert daemon.remember("ann", fact, idempotency_key=f"key {number}") == f"b{number + 1}"


def test_delayed_batch_is_due_after_its_pause_when_the_clock_is_set_back(tmp_path: Path) -> None:
    """A delayed batch waits for its pause, not until the clock is back at its old time."""
    data_dir = tmp_path / "data"
    nonsense_file(data_dir).touch()
    with running_daemon(data_dir, SETTINGS, module=MODULE) as daemon:
        batch_id = daemon.remember("ann", "This is nonsense about a kettle.")
        wait_until(lambda: daemon.get(f"ann/batches/{batch_id}").json()["attempts"] >= 1, 30)
        set_clock(data_dir, -30 * DAY_S)
        nonsense_file(data_dir).unlink()
        # Another batch wakes the digest; the first one must not be left behind for a month.
        daemon.remember("ann", "The cup is red.")
        answer = daemon.flush("ann", timeout_ms=30_000)
        assert (answer["digested"], answer["parked_batches"]) == (True, 0)
        assert daemon.get(f"ann/batches/{batch_id}").json()["state"] == "digested"


YEAR_2200_S = 7_258_118_400
JUMPS: dict[str, Callable[[], float]] = {
    "a year back": lambda: -365 * DAY_S,
    "a year ahead": lambda: 365 * DAY_S,
    "to 1970": lambda: -time.time(),
    "to 2200": lambda: YEAR_2200_S - time.time(),
}


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_jumps_loses_nothing_and_stops_no_request(tmp_path: Path, jump: str) -> None:
    """Remember, digest, passes, receipts, retention and rate limits continue to work; no response is a server error.

    Only retention by days follows the clock: a year ahead texts are withdrawn, back in time none is.
    """
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    key = new_key(data_dir, "read", "write", "admin")
    access = {f"ACCESS__{name.upper()}": value for name, value in KEYS_ON.items()}
    settings = {**SETTINGS, **access, "ACCESS__REQUESTS_PER_S": 20}
    facts = [f"Fact number {number} is about the harbour." for number in range(6)]
    with running_daemon(data_dir, settings, module=MODULE) as daemon:
        daemon.client.headers.update(bearer(key))
        for agent, retention in (("ann", "keep"), ("pia", "days:30")):
            created = daemon.client.put(f"/v1/agents/{agent}", json={"retention": retention})
            assert created.status_code == 201, created.text
        for number, fact in enumerate(facts):
            if number in (2, 4):
                # Set once while work is in progress, then set back.
                set_clock(data_dir, JUMPS[jump]() if number == 2 else 0.0)
            for agent in ("ann", "pia"):
                daemon.remember(agent, fact, idempotency_key=f"key {number}")
        daemon.post("ann/compress", {"passes": 2})
        set_clock(data_dir, JUMPS[jump]())
        for agent in ("ann", "pia"):
            done = daemon.flush(agent, timeout_ms=30_000)
            assert (done["digested"], done["passes_done"], done["parked_batches"]) == (True, True, 0)
            for number, fact in enumerate(facts):
                assert daemon.remember(agent, fact, idempotency_key=f"key {number}") == f"b{number + 1}"
            assert len(daemon.get(f"{agent}/nodes").json()["nodes"]) == len(facts)
        assert daemon.client.get("/readyz").json()["status"] == "ready"
        # More concurrent requests than the rate allows: some must wait, but for less than a second, never a year.
        answers = [daemon.get("ann") for _ in range(60)]
        waits = [float(one.headers["retry-after"]) for one in answers if one.status_code == 429]
        assert {one.status_code for one in answers} <= {200, 429}
        assert waits == [] or max(waits) <= 1
        wait_until(lambda: daemon.get("ann").status_code == 200, 5)
        assert daemon.stop() == 0
        daemon.start()
        daemon.client.headers.update(bearer(key))
        assert len(daemon.get("ann/nodes").json()["nodes"]) == len(facts)
        assert '"level": "error"' not in daemon.log
