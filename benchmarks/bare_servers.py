"""Minimal servers to compare the daemon with: `python -m benchmarks.bare_servers http STORE`.

A bare FastAPI route and a bare grpc.aio method call the same engine function in an executor. Next to each, a second
one answers without doing any work. There are no limits, checks, logs or fleet. Prints the address it listens on.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.stores import open_store
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue
from ebbtide.v1 import recall_pb2

RECALL_PATH, CONSTANT_PATH = "/recall", "/constant"
RECALL_METHOD, ECHO_METHOD = "/bare.Bare/Recall", "/bare.Bare/Echo"


class Engine:
    """The engine on one thread. Like the daemon, it runs one job of an agent at a time."""

    def __init__(self, store: Path) -> None:
        self._workspace = Workspace(open_store(store), AgentParameters())
        self._pool = ThreadPoolExecutor(1)

    async def recall(self, keywords: list[str], depth: int) -> tuple[str, int]:
        """Return the text that a cue recalls, and the number of waiting batches."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._recall, keywords, depth)

    def _recall(self, keywords: list[str], depth: int) -> tuple[str, int]:
        answer, counts = self._workspace.recall(Cue(keywords=keywords, depth=depth))
        return answer.text("auto"), counts.pending_batches


def serve_http(engine: Engine) -> None:
    """FastAPI under uvicorn, with the same event loop and parser as the daemon."""
    import uvicorn
    from fastapi import FastAPI
    from fastapi.responses import JSONResponse
    from pydantic import BaseModel

    class Body(BaseModel):
        keywords: list[str] = []
        depth: int = 2

    app = FastAPI()

    async def recall(body: Body) -> JSONResponse:
        text, pending = await engine.recall(body.keywords, body.depth)
        return JSONResponse({"text": text, "pending_batches": pending})

    async def constant(body: Body) -> JSONResponse:
        return JSONResponse({"text": "", "pending_batches": 0})

    # With annotations as text FastAPI would look for Body among the globals of this module.
    recall.__annotations__["body"] = constant.__annotations__["body"] = Body
    app.post(RECALL_PATH, response_model=None)(recall)
    app.post(CONSTANT_PATH, response_model=None)(constant)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="warning", access_log=False)
    _announce(f"http://127.0.0.1:{listener.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listener])


async def serve_grpc(engine: Engine) -> None:
    """Serve two methods of grpc.aio with the messages of the daemon's interface."""
    import grpc
    import grpc.aio

    async def recall(request: Any, _: Any) -> Any:
        text, pending = await engine.recall(list(request.keywords), request.depth)
        return recall_pb2.RecallResponse(text=text, pending_batches=pending)

    async def echo(request: Any, _: Any) -> Any:
        return recall_pb2.RecallResponse(text=request.agent_id)

    def handler(call: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            call,
            request_deserializer=recall_pb2.RecallRequest.FromString,
            response_serializer=recall_pb2.RecallResponse.SerializeToString,
        )

    server = grpc.aio.server()
    calls = {"Recall": handler(recall), "Echo": handler(echo)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("bare.Bare", calls)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    _announce(f"127.0.0.1:{port}")
    await server.wait_for_termination()


def _announce(place: str) -> None:
    print(place, flush=True)


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=("http", "grpc"))
    parser.add_argument("store", type=Path)
    asked = parser.parse_args()
    engine = Engine(asked.store)
    if asked.kind == "http":
        serve_http(engine)
    else:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve_grpc(engine))


if __name__ == "__main__":
    _main()
