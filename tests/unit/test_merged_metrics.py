"""Metrics of several workers as those of one daemon."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from ebbtide.metrics import Metrics, merged_text


def values(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return every sample."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_the_metrics_of_one_worker_stay_the_same() -> None:
    """Merging one text changes no sample, name or type."""
    metrics = Metrics()
    metrics.request("rest", "recall", "ok", 0.01)
    text = metrics.text()
    assert values(merged_text([text])) == values(text)
    assert sorted(merged_text([text]).splitlines()) == sorted(text.splitlines())


def test_counters_are_added_and_states_are_the_worst() -> None:
    """Counters and histograms are added, the lag is the longest, readiness the lowest."""
    first, second = Metrics(), Metrics()
    first.request("rest", "recall", "ok", 0.01)
    second.request("rest", "recall", "ok", 0.02)
    second.request("grpc", "recall", "ok", 0.02)
    first.digest_lag.set(3)
    second.digest_lag.set(5)
    first.ready.set(2)
    second.ready.set(1)
    first.open_agents.set(4)
    second.open_agents.set(5)
    found = values(merged_text([first.text(), second.text()]))
    rest = (("outcome", "ok"), ("transport", "rest"), ("verb", "recall"))
    assert found["ebbtide_requests_total", rest] == 2
    assert found["ebbtide_request_duration_seconds_count", (("transport", "rest"), ("verb", "recall"))] == 2
    assert found["ebbtide_digest_lag_seconds", ()] == 5
    assert found["ebbtide_ready", ()] == 1
    assert found["ebbtide_open_agents", ()] == 9
