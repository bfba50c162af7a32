"""P7 and P8: how many recalls a second over REST and gRPC, compared with bare servers that do the same work.

Clients run in a process of their own. All servers run all the time and are loaded in turns. With two cores, the
server has one and the clients the other; more clients would make none of these servers faster.
"""

from __future__ import annotations

import json
from functools import partial

from benchmarks.bare_servers import CONSTANT_PATH, ECHO_METHOD, RECALL_METHOD, RECALL_PATH
from benchmarks.load import CONNECTIONS, Loaded, run_load
from benchmarks.measuring import Spread, in_turns
from benchmarks.plan import AGENT, Plan
from benchmarks.processes import WITH_KEYS, bare_server, key_for, running
from benchmarks.report import Figure, at_least
from benchmarks.stores import copied, install
from benchmarks.texts import common_words
from ebbtide.v1 import recall_pb2

KEYWORD = common_words()[1]
DEPTH = 1
KEYED = "ours, with API keys"
"""A second daemon, which requires an API key; the first one has authentication disabled."""

Place = tuple[str, str, str, bytes] | tuple[str, str, str, bytes, str]
"""Kind, server, path or method, body; and a key where one is required."""

SHARE = 0.6
"""The required share of the bare server's throughput."""


def over_rest(plan: Plan) -> list[Figure]:
    """P7: REST."""
    body = json.dumps({"keywords": [KEYWORD], "depth": DEPTH}).encode()
    impatient = json.dumps({"keywords": [KEYWORD], "depth": DEPTH, "patience_ms": 0}).encode()
    path = f"/v1/agents/{AGENT}/recall"
    scale = plan.scale_for("M")
    store = plan.store(scale)
    data_dir = plan.fresh("rest")
    install(store, data_dir, AGENT)
    guarded = plan.fresh("rest-keys")
    install(store, guarded, AGENT)
    key = key_for(guarded)
    with (
        running(data_dir) as daemon,
        running(guarded, WITH_KEYS) as asking,
        bare_server("http", copied(store, plan.work)) as bare,
    ):
        plan.tell("P7")
        return _compare(
            plan,
            "P7",
            "REST",
            {
                "ours": ("http", daemon.url, path, body),
                "ours, patience 0": ("http", daemon.url, path, impatient),
                "bare FastAPI route": ("http", bare, RECALL_PATH, body),
                "constant route": ("http", bare, CONSTANT_PATH, body),
                KEYED: ("http", asking.url, path, body, key),
            },
        )


def over_grpc(plan: Plan) -> list[Figure]:
    """P8: gRPC."""
    request = recall_pb2.RecallRequest(agent_id=AGENT, keywords=[KEYWORD], depth=DEPTH)
    impatient = recall_pb2.RecallRequest(agent_id=AGENT, keywords=[KEYWORD], depth=DEPTH, patience_ms=0)
    method = "/ebbtide.v1.MemoryService/Recall"
    scale = plan.scale_for("M")
    store = plan.store(scale)
    data_dir = plan.fresh("grpc")
    install(store, data_dir, AGENT)
    guarded = plan.fresh("grpc-keys")
    install(store, guarded, AGENT)
    key = key_for(guarded)
    with (
        running(data_dir) as daemon,
        running(guarded, WITH_KEYS) as asking,
        bare_server("grpc", copied(store, plan.work)) as bare,
    ):
        plan.tell("P8")
        message = request.SerializeToString()
        return _compare(
            plan,
            "P8",
            "gRPC",
            {
                "ours": ("grpc", daemon.grpc_target, method, message),
                "ours, patience 0": ("grpc", daemon.grpc_target, method, impatient.SerializeToString()),
                "bare grpc.aio method": ("grpc", bare, RECALL_METHOD, message),
                "echo": ("grpc", bare, ECHO_METHOD, message),
                KEYED: ("grpc", asking.grpc_target, method, message, key),
            },
        )


def _compare(plan: Plan, row: str, what: str, places: dict[str, Place]) -> list[Figure]:
    """Load each server in turns; `places` names the daemon first and the bare server third."""
    seconds = plan.times(4, 1)
    loads: dict[str, list[Loaded]] = {name: [] for name in places}

    def task(name: str) -> float:
        kind, place, asked, body, *key = places[name]
        loads[name].append(run_load(kind, place, asked, body, seconds, *key))
        return loads[name][-1].per_second

    rounds = plan.times(6, 1)
    rates = in_turns(rounds, {name: partial(task, name) for name in places})
    spreads = {name: Spread.of(found) for name, found in rates.items()}
    ours, impatient, bare, *_ = spreads
    share = spreads[ours].p50 / spreads[bare].p50
    scale = plan.scale_for("M")
    figure = Figure(row, f"{what} recall, {scale.name}, depth {DEPTH}", "1/s", spreads[ours], is_rate=True)
    figure.baselines = {name: spread for name, spread in spreads.items() if name != ours}
    figure.ratio = f"{share:.0%} of {bare}"
    guarded = 100 * spreads[KEYED].p50 / spreads[bare].p50
    figure.claims = [
        at_least(share * 100, SHARE * 100, f"% of {bare}", counts=scale.name == "M"),
        at_least(guarded, SHARE * 100, f"% of {bare}, with API keys", counts=scale.name == "M"),
    ]
    figure.beside = {
        "share without patience, %": 100 * spreads[impatient].p50 / spreads[bare].p50,
        "ours, ms at p95": Spread.of(load.took_ms.p95 for load in loads[ours]).p50,
        "bare, ms at p95": Spread.of(load.took_ms.p95 for load in loads[bare]).p50,
    }
    figure.note = f"{CONNECTIONS} connections"
    return [figure]
