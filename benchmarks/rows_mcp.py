"""P15: a recall over MCP, compared with the same recall over REST, and what the MCP server adds to the daemon's memory.

Both ask the same questions in turns, over one connection each. The MCP SDK is imported with the first MCP request; the
memory before it is that of a daemon whose MCP server is not used.
"""

from __future__ import annotations

from itertools import cycle

from benchmarks.clients import KeepAlive
from benchmarks.measuring import Spread, in_turns, resident
from benchmarks.plan import AGENT, Plan
from benchmarks.processes import connected, running
from benchmarks.report import Figure, at_most
from benchmarks.stores import install
from benchmarks.texts import common_words

ACCEPT = "application/json, text/event-stream"
BUDGET = 800
TIMES = 3.0
"""A recall over MCP may take this many times one over REST."""


def recall_over_mcp(plan: Plan) -> list[Figure]:
    """P15: the time of a recall, and resident memory."""
    scale = plan.scale_for("M")
    data_dir = plan.fresh("mcp")
    install(plan.store(scale), data_dir, AGENT)
    plan.tell("P15")
    words = cycle(f"{one} {two}" for one, two in zip(common_words(), common_words()[1:], strict=False))
    with running(data_dir) as daemon, connected(daemon) as rest, KeepAlive(daemon.url, accept=ACCEPT) as mcp:

        def over_rest() -> float:
            body = {"query": next(words), "citations": True, "token_budget": BUDGET, "patience_ms": 500}
            return rest.ask("POST", f"/v1/agents/{AGENT}/recall", body)[1]

        def over_mcp() -> float:
            call = {"name": "recall", "arguments": {"query": next(words), "max_tokens": BUDGET}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            return mcp.ask("POST", f"/v1/agents/{AGENT}/mcp", message)[1]

        over_rest()
        unused_mb = resident(daemon.process.pid).anonymous
        first_ms = over_mcp()
        used_mb = resident(daemon.process.pid).anonymous
        took = in_turns(plan.times(200, 10), {"MCP": over_mcp, "REST": over_rest})
    ours, plain = Spread.of(took["MCP"]), Spread.of(took["REST"])
    figure = Figure("P15", f"recall over MCP, {scale.name}", "ms", ours)
    figure.baselines = {"REST": plain}
    figure.ratio = f"{ours.p50 / plain.p50:.2f} × at p50, {ours.p95 / plain.p95:.2f} × at p95"
    figure.claims = [at_most(ours.p50, round(TIMES * plain.p50, 2), "ms", what="p50")]
    figure.beside = {
        "first request, ms": first_ms,
        "memory before it, MB": unused_mb,
        "memory after it, MB": used_mb,
    }
    return [figure]
