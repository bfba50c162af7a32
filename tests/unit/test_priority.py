"""Background work yields while a request's job runs, but never for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from ebbtide import priority as module
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import Utterance
from ebbtide.priority import RequestPriority


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> RequestPriority:
    """A priority whose pauses end when no request runs: half a minute means "as long as necessary"."""
    monkeypatch.setattr(module, "MIN_PAUSE_S", 30.0)
    monkeypatch.setattr(module, "MAX_PAUSE_S", 30.0)
    return RequestPriority()


def yields(priority: RequestPriority) -> None:
    """Yield for at most half a minute."""
    priority.yield_to_requests(30.0)


def test_background_waits_for_the_last_request(patient: RequestPriority) -> None:
    """Of two overlapping requests, only the end of the second one wakes background work."""
    went_on = threading.Event()

    def background() -> None:
        yields(patient)
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
    yields(patient)
    assert time.monotonic() - begun_s < 10


def test_the_job_of_a_request_does_not_wait_for_itself(patient: RequestPriority) -> None:
    """A job, on any thread, does not wait for its own request; otherwise this test would take a minute."""
    begun_s = time.monotonic()
    with patient.for_a_request():
        yields(patient)
        job = threading.Thread(target=copy_context().run, args=(yields, patient))
        job.start()
        job.join()
        with patient.for_a_request():
            pass
        yields(patient)
    assert time.monotonic() - begun_s < 10


def test_background_work_gets_a_fifth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a permanent load of requests, a pause is at most four times as long as the work before it, and bounded."""
    priority, pauses, now_s = RequestPriority(), [], [0.0]
    monkeypatch.setattr(time, "thread_time", lambda: now_s[0])
    monkeypatch.setattr(priority._no_requests, "wait", pauses.append)

    def background() -> None:
        for worked_s in (0.003, 0.001, 0.0001, 5.0):
            now_s[0] += worked_s
            priority.yield_to_requests()
        now_s[0] += 5.0
        priority.yield_to_requests(0.002)

    with priority.for_a_request():
        worker = threading.Thread(target=background)
        worker.start()
        worker.join()
    assert pauses == pytest.approx([0.012, 0.004, 0.002, 0.02, 0.002])


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
    await model.process("The roof leaks.")
    assert len(asked) == 10
