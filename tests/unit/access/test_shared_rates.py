"""Rate limits in shared memory: the same decisions as in one process, by several processes together."""

from __future__ import annotations

import os
import random
import signal

from ebbtide.access.rates import Buckets
from ebbtide.access.shared_rates import SharedBuckets


def test_shared_buckets_decide_as_private_ones_do() -> None:
    """For any order of names and times the waits are equal."""
    choose = random.Random(7)
    shared, private = SharedBuckets(2.0), Buckets(2.0)
    now_s = 100.0
    for _ in range(3000):
        now_s += choose.random() * 0.2
        name, per_s = choose.choice([("a", 1.0), ("b", 10.0), ("记忆", 0.5)])
        assert shared.take(name, per_s, now_s) == private.take(name, per_s, now_s)


def test_processes_share_one_bucket() -> None:
    """Tokens that one process takes are missing for the others."""
    shared = SharedBuckets(1.0)
    child = os.fork()
    if not child:
        taken = sum(shared.take("key", 10.0, 5.0) == 0.0 for _ in range(6))
        os._exit(taken)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 6
    assert sum(shared.take("key", 10.0, 5.0) == 0.0 for _ in range(10)) == 4


def test_a_killed_process_leaves_no_lock() -> None:
    """A process that is killed while it has the lock does not block the others."""
    import fcntl

    shared = SharedBuckets(1.0)
    child = os.fork()
    if not child:
        fcntl.lockf(shared._file, fcntl.LOCK_EX)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert shared.take("key", 10.0, 5.0) == 0.0


def test_more_names_than_places_replace_the_least_recently_used() -> None:
    """The memory is bounded; a name in use keeps its bucket among names that come once."""
    shared = SharedBuckets(1.0, most=8)
    assert shared.take("steady", 1.0, 0.0) == 0.0
    for number in range(100):
        now_s = 1e-4 * (number + 1)
        shared.take(f"once-{number}", 1.0, now_s)
        assert shared.take("steady", 1.0, now_s) > 0.0
