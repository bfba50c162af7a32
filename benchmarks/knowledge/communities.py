"""Communities: label propagation over a large network with planted topics, within its time and in short steps."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.knowledge.table import Row
from ebbtide.memory.communities import Propagation

MOST_S = 5.0
LONGEST_STEP_S = 0.1
BUDGET_S = 0.05
"""After this time a step is asked to stop."""
NODES, LINKS, TOPICS = 100_000, 1_000_000, 1_000
WITHIN = 0.8
"""Share of the links that stay within a topic."""
LEAST_AGREEMENT = 0.9

Numbers = NDArray[np.int64]


def planted(nodes: int, links: int, topics: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the topic of each node, and the sources and targets of random links."""
    random = np.random.default_rng(1)
    topic = random.integers(0, topics, nodes)
    order = np.argsort(topic, kind="stable")
    begins = np.searchsorted(topic[order], np.arange(topics + 1))
    sources = random.integers(0, nodes, links)
    low, high = begins[topic[sources]], begins[topic[sources] + 1]
    near = order[low + (random.random(links) * (high - low)).astype(np.int64)]
    targets = np.where(random.random(links) < WITHIN, near, random.integers(0, nodes, links))
    return topic, sources, targets


def agreement(first: Numbers, second: Numbers) -> float:
    """Return the normalised mutual information of two partitions."""

    def entropy(labels: Numbers) -> float:
        shares = np.unique(labels, return_counts=True)[1] / len(labels)
        return float(-(shares * np.log(shares)).sum())

    one, other = entropy(first), entropy(second)
    both = entropy(first * (int(second.max()) + 1) + second)
    return 2 * (one + other - both) / (one + other)


def rows(is_quick: bool) -> list[Row]:
    """Return the rows of communities."""
    share = 10 if is_quick else 1
    topic, sources, targets = planted(NODES // share, LINKS // share, TOPICS // share)
    strengths = np.random.default_rng(2).random(len(sources))
    began_s, longest_s, is_done = time.process_time(), 0.0, False
    propagation = Propagation(len(topic), sources, targets, strengths)
    while not is_done:
        step_s = time.thread_time()
        end_s = step_s + BUDGET_S
        is_done = propagation.advance(lambda end_s=end_s: time.thread_time() >= end_s)  # type: ignore[misc]
        longest_s = max(longest_s, time.thread_time() - step_s)
    took_s = time.process_time() - began_s
    labels = np.zeros(len(topic), dtype=np.int64)
    groups = propagation.groups(1)
    for number, group in enumerate(groups):
        labels[group] = number
    found = agreement(topic, labels)
    size = " nodes, ".join(f"{len(one):,}".replace(",", " ") for one in (topic, sources)) + " links"
    return [
        Row(f"communities, {size}", f"≤ {MOST_S:g} s CPU", f"{took_s:.2f} s", took_s <= MOST_S),
        Row("longest step", f"≤ {LONGEST_STEP_S:g} s", f"{longest_s:.3f} s", longest_s <= LONGEST_STEP_S),
        Row(
            "agreement with planted topics",
            f"≥ {LEAST_AGREEMENT}",
            f"{found:.3f} ({sum(len(group) >= 5 for group in groups)} groups)",
            found >= LEAST_AGREEMENT,
        ),
    ]
