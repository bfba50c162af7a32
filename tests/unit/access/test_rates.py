"""Token buckets: never more than the rate allows, never less, and a bounded number of buckets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ebbtide.access.rates import Buckets, remote_of


@given(
    st.floats(0.1, 1000),
    st.floats(0, 10),
    st.lists(st.floats(0, 3), min_size=1, max_size=200),
)
def test_no_period_exceeds_the_rate(per_s: float, burst_s: float, pauses_s: list[float]) -> None:
    """In any period, the permitted requests are at most the burst plus the rate times the duration."""
    buckets = Buckets(burst_s)
    let_through: list[float] = []
    now_s = 100.0
    for pause_s in pauses_s:
        now_s += pause_s
        if buckets.take("a", per_s, now_s) == 0.0:
            let_through.append(now_s)
    size = max(1.0, per_s * burst_s)
    for first, begun_s in enumerate(let_through):
        for last in range(first, len(let_through)):
            assert last - first + 1 <= size + (let_through[last] - begun_s) * per_s + 1e-6


@given(st.floats(0.1, 1000), st.floats(0, 10))
def test_a_request_passes_after_the_stated_wait(per_s: float, burst_s: float) -> None:
    """The next request passes after the seconds that a refusal names, and not before."""
    buckets, now_s, wait_s = Buckets(burst_s), 5.0, 0.0
    for _ in range(20_000):
        wait_s = buckets.take("a", per_s, now_s)
        if wait_s:
            break
    assert 0 < wait_s <= 1 / per_s + 1e-9
    assert buckets.take("a", per_s, now_s + wait_s / 2) > 0
    assert buckets.take("a", per_s, now_s + wait_s * 1.001 + 1e-6) == 0.0


def test_names_do_not_share_a_bucket() -> None:
    """Names do not share a bucket; a clock that moves backwards adds no tokens."""
    buckets = Buckets(1.0)
    assert [buckets.take("a", 2.0, 1.0) == 0.0 for _ in range(3)] == [True, True, False]
    assert buckets.take("b", 2.0, 1.0) == 0.0
    assert buckets.take("a", 2.0, 0.0) > 0


def test_buckets_are_bounded() -> None:
    """Beyond the bound the least recently used bucket is removed; those in use stay empty."""
    buckets = Buckets(0.0, most=10)
    assert buckets.take("mine", 0.001, 1.0) == 0.0
    for number in range(1000):
        buckets.take(f"n{number}", 0.001, 1.0)
        assert buckets.take("mine", 0.001, 1.0) > 0
        assert len(buckets) <= 10


def test_addresses_of_one_remote_are_equal() -> None:
    """All spellings of an IPv4 address are one remote; an IPv6 /64 is one remote; so are all invalid addresses."""
    assert remote_of("192.0.2.7") == remote_of("::ffff:192.0.2.7") != remote_of("192.0.2.8")
    assert remote_of("2001:db8:1:2::1") == remote_of("2001:db8:1:2:ffff::9") != remote_of("2001:db8:1:3::1")
    assert remote_of("127.0.0.1") == "127.0.0.1"
    assert remote_of("fe80::1%eth0") == remote_of("fe80::2%eth1")
    assert remote_of("") == remote_of("testclient") == ""


@given(st.one_of(st.ip_addresses().map(str), st.text(max_size=20)))
def test_any_text_is_some_remote(address: str) -> None:
    """Any text that a transport reports as an address has a remote, and a remote is its own remote."""
    assert remote_of(remote_of(address)) == remote_of(address)
