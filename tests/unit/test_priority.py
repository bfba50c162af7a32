"""Background work yields while a request's job runs, but never for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ebbtide import priority as module
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import Utterance
from ebbtide.priority import RequestPriority


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> RequestPriority:
    """A priority that yields until it is woken: half a minute means "as long as necessary"."""
    monkeypatch.setattr(module, "MAX_YIELD_S", 30.0)
    return RequestPriority()


def test_background_waits_for_the_last_request(patient: RequestPriority) -> None:
    """Of two overlapping requests, only the end of the second one wakes background work."""
    went_on = threading.Event()

    def background() -> None:
        patient.yield_to_requests()
        went_on.set()

    worker = threading.Thread(target=background)
    with patient.for_a_request():
        with patient.for_a_request():
            worker.start()
        assert not went_on.wait(0.05)
    assert went_on.wait(10)
    worker.join()


def test_work_does_not_pause_without_requests(patient: RequestPriority) -> None:
    """Without requests, and after failed ones, work continues at once; otherwise this test would take half a minute."""
    with pytest.raises(ZeroDivisionError), patient.for_a_request():
        raise ZeroDivisionError
    begun_s = time.monotonic()
    patient.yield_to_requests()
    assert time.monotonic() - begun_s < 10


def test_the_job_of_a_request_does_not_wait_for_itself(patient: RequestPriority) -> None:
    """A job does not wait for its own request; otherwise this test would take a minute."""
    begun_s = time.monotonic()
    with patient.for_a_request():
        patient.yield_to_requests()
        with patient.for_a_request():
            pass
        patient.yield_to_requests()
    assert time.monotonic() - begun_s < 10


def test_a_pause_ends_under_permanent_load() -> None:
    """Under a permanent load of requests, background work continues, slower."""
    priority = RequestPriority()
    with priority.for_a_request():
        for _ in range(10):
            priority.yield_to_requests()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """A thread for the built-in model."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


async def test_the_builtin_model_yields_between_texts(pool: ThreadPoolExecutor) -> None:
    """The built-in model yields before each text and message."""
    asked: list[None] = []
    model = BuiltinModel(pool, lambda: asked.append(None))
    await model.process_many([("The roof leaks.", None)] * 5)
    assert len(asked) == 5
    await model.segment([Utterance("user", "", "The roof leaks.")] * 4, max_chars=100)
    assert len(asked) == 9
