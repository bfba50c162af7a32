"""`ebbtide serve`: run the daemon in the foreground until Ctrl-C or SIGTERM.

Only flags that were given reach the settings, so that environment and file keep their say. Everything that can
be wrong at a start is one sentence with its own exit code.
"""

from __future__ import annotations

import asyncio
import errno
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from ebbtide.cli.console import err
from ebbtide.cli.daemon_settings import given, settings_in_force
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, as_failure, sentence
from ebbtide.errors import EbbtideError

if TYPE_CHECKING:
    from ebbtide.settings import Settings

Port = Annotated[
    int | None, typer.Option("--rest-port", help="Port of the REST interface; 0 takes a free one.")
]
GrpcPort = Annotated[
    int | None, typer.Option("--grpc-port", help="Port of the gRPC interface; 0 takes a free one.")
]
Model = Annotated[
    Literal["builtin", "ollama", "openai"] | None,
    typer.Option("--model", help="Kind of language model; builtin needs no server."),
]
Config = Annotated[Path | None, typer.Option("--config", help="Settings file (TOML).")]


def serve(
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Where agents are kept.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    rest_port: Port = None,
    grpc_port: GrpcPort = None,
    model: Model = None,
    model_url: Annotated[str | None, typer.Option("--model-url", help="Address of the model server.")] = None,
    model_name: Annotated[str | None, typer.Option("--model-name", help="Model on that server.")] = None,
    config: Config = None,
    authentication: Annotated[
        Literal["off", "keys"] | None,
        typer.Option("--authentication", help="Whether callers must show an API key."),
    ] = None,
    allow_insecure: Annotated[
        bool, typer.Option("--allow-insecure", help="Listen beyond this machine, unauthenticated.")
    ] = False,
    log_format: Annotated[
        Literal["json", "console"] | None, typer.Option("--log-format", help="Form of the log.")
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option("--log-level", help="Least severe level written."),
    ] = None,
) -> None:
    """Run the memory daemon until Ctrl-C or SIGTERM."""
    from ebbtide.privacy.spans import redacted
    from ebbtide.telemetry import configure_log

    flags: dict[str, dict[str, Any]] = {
        "store": {"data_dir": data_dir},
        "server": {
            "host": host,
            "rest_port": rest_port,
            "grpc_port": grpc_port,
            "allow_insecure": True if allow_insecure else None,
        },
        "access": {"authentication": authentication},
        "language": {"model": model, "base_url": model_url, "model_name": model_name},
        "log": {"format": log_format, "level": log_level},
    }
    settings = settings_in_force(given(flags), config)
    configure_log(
        settings.log.level,
        settings.log.format,
        log_content=settings.log.log_content,
        without_personal=redacted,
    )
    _run(settings)


def _run(settings: Settings) -> None:
    from ebbtide.daemon import serve as run_daemon

    async def run() -> None:
        try:
            await run_daemon(settings, lambda url: _announce(url, settings))
        finally:
            # Everything is closed; a second signal on the way out must not look like a failure.
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(run())
    except EbbtideError as error:
        raise _start_failure(error, settings) from None
    except OSError as error:
        raise _port_failure(error, settings) from None


def _start_failure(error: EbbtideError, settings: Settings) -> Failure:
    failure = as_failure(error)
    if error.reason == "INSECURE_BIND":
        failure.hint = "On the command line: --authentication keys, or --allow-insecure."
    elif isinstance(error.__cause__, OSError) and error.reason == "STORE_UNAVAILABLE":
        why = error.__cause__.strerror or str(error.__cause__)
        failure.message = f"The data directory {settings.store.data_dir} cannot be used: {why}."
    return failure


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _announce(url: str, settings: Settings) -> None:
    console = err()
    rows = [
        ("Ebbtide listens at", url),
        ("memories are kept in", str(settings.store.data_dir)),
        (
            "a first memory",
            _curl(
                settings,
                url,
                "remember",
                '{"messages": [{"role": "user", "content": "I moved to Lisbon in May."}]}',
            ),
        ),
        ("and back again", _curl(settings, url, "recall", '{"keywords": ["Lisbon"]}')),
        ("to stop", "Ctrl-C"),
    ]
    for label, value in rows:
        console.print(Text.assemble((f"{label:>20}  ", "dim"), value), soft_wrap=True)


def _curl(settings: Settings, url: str, verb: str, body: str) -> str:
    asks = settings.access.authentication != "off"
    key = ' -H "authorization: Bearer $EBBTIDE_API_KEY"' if asks else ""
    return f"curl -H 'content-type: application/json'{key} {url}/v1/agents/ann/{verb} -d '{body}'"


def _port_failure(error: OSError, settings: Settings) -> Failure:
    field = "grpc_port" if error.filename == "grpc_port" else "rest_port"
    port = getattr(settings.server, field)
    place = f"{settings.server.host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return Failure(
            f"Port {port} on {settings.server.host} is taken by another process.",
            ExitCode.PORT_TAKEN,
            hint=f"Choose another with --{field.replace('_', '-')}; 0 takes a free one.",
        )
    why = sentence(error.strerror or str(error))
    return Failure(f"Cannot listen on {place}: {why}", ExitCode.PORT_TAKEN)
