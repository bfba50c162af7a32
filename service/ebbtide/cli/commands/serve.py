"""`ebbtide serve`: run the daemon in the foreground until Ctrl-C or SIGTERM.

On a terminal the daemon starts with a banner and logs lines for people. Elsewhere it logs JSON only. Only flags that
were given override the environment and the settings file. Every failure to start is one sentence and an exit code.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ebbtide import __version__
from ebbtide.cli.console import say
from ebbtide.cli.daemon_settings import given, settings_in_force
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, as_failure, sentence
from ebbtide.cli.lean_imports import lean_imports
from ebbtide.errors import EbbtideError

if TYPE_CHECKING:
    from ebbtide.settings import Settings

Port = Annotated[
    int | None, typer.Option("--rest-port", help="Port of the REST interface; 0 selects a free port.")
]
GrpcPort = Annotated[
    int | None, typer.Option("--grpc-port", help="Port of the gRPC interface; 0 selects a free port.")
]
Model = Annotated[
    Literal["builtin", "ollama", "openai"] | None,
    typer.Option("--model", help="Kind of language model; builtin needs no server."),
]
Config = Annotated[Path | None, typer.Option("--config", help="Settings file (TOML).")]


def serve(
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Directory where agents are stored.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    rest_port: Port = None,
    grpc_port: GrpcPort = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Number of worker processes. Each serves its own agents."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Addresses of the log servers, with commas: be a node of a cluster."),
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Name of this node of the cluster.")] = None,
    model: Model = None,
    model_url: Annotated[str | None, typer.Option("--model-url", help="Address of the model server.")] = None,
    model_name: Annotated[
        str | None, typer.Option("--model-name", help="Name of the model on that server.")
    ] = None,
    config: Config = None,
    authentication: Annotated[
        Literal["off", "keys"] | None,
        typer.Option("--authentication", help="Whether requests need an API key."),
    ] = None,
    allow_insecure: Annotated[
        bool,
        typer.Option(
            "--allow-insecure", help="Accept connections from other machines without authentication."
        ),
    ] = False,
    log_format: Annotated[
        Literal["auto", "json", "console"] | None,
        typer.Option("--log-format", help="Format of the log; auto: console on a terminal, else JSON."),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option("--log-level", help="Lowest level that is logged."),
    ] = None,
) -> None:
    """Run the memory daemon until Ctrl-C or SIGTERM."""
    with lean_imports("rich"):
        from ebbtide.privacy.spans import redacted
        from ebbtide.telemetry import configure_log

    flags: dict[str, dict[str, Any]] = {
        "store": {"data_dir": data_dir},
        "server": {
            "host": host,
            "rest_port": rest_port,
            "grpc_port": grpc_port,
            "workers": workers,
            "allow_insecure": True if allow_insecure else None,
        },
        "cluster": {"servers": None if cluster is None else tuple(cluster.split(",")), "node": node},
        "access": {"authentication": authentication},
        "language": {"model": model, "base_url": model_url, "model_name": model_name},
        "log": {"format": log_format, "level": log_level},
    }
    settings = with_log_format(settings_in_force(given(flags), config))
    configure_log(
        settings.log.level,
        settings.log.format,
        log_content=settings.log.log_content,
        without_personal=redacted,
    )
    _run(settings)


def with_log_format(settings: Settings) -> Settings:
    """Return the settings with `log.format` resolved: console on a terminal, else JSON."""
    if settings.log.format != "auto":
        return settings
    form = "console" if sys.stderr.isatty() else "json"
    return settings.model_copy(update={"log": settings.log.model_copy(update={"format": form})})


def _run(settings: Settings) -> None:
    try:
        if settings.server.workers > 1:
            _run_workers(settings)
            return
        with lean_imports("rich"):
            from ebbtide.daemon import serve as run_daemon
        _run_loop(run_daemon(settings, lambda url: _announce(url, settings)))
    except EbbtideError as error:
        raise _start_failure(error, settings) from None
    except OSError as error:
        raise _port_failure(error, settings) from None


def _run_workers(settings: Settings) -> None:
    if sys.platform != "linux":
        raise Failure("Several workers require Linux.", ExitCode.BAD_SETTING, hint="Pass --workers 1.")
    with lean_imports("rich"):
        from ebbtide.workers.parent import Parent

    Parent(settings, _run_loop).serve(lambda url: _announce(url, settings))


def _run_loop(serving: Coroutine[Any, Any, None]) -> None:
    """Run a daemon or a worker to its end."""

    async def run() -> None:
        try:
            await serving
        finally:
            # Everything is closed. A second signal must not look like a failure.
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run())


def _start_failure(error: EbbtideError, settings: Settings) -> Failure:
    failure = as_failure(error)
    if error.reason == "INSECURE_BIND":
        failure.hint = "Pass --authentication keys or --allow-insecure."
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
    if sys.stderr.isatty():
        say(banner(url, settings))


def banner(url: str, settings: Settings) -> str:
    """Return what a person needs to know of a daemon that listens: where it is, what it uses, what to try."""
    key = "" if settings.access.authentication == "off" else ' -H "authorization: Bearer $EBBTIDE_API_KEY"'
    rows = {
        "address": url,
        **({"web view": _view(url)} if settings.server.ui else {}),
        "docs": f"{url}/docs",
        "data directory": str(settings.store.data_dir),
        "model": _model(settings),
        "embedder": _embedder(settings),
        "try": f"curl{key} {url}/v1/agents",
        "stop": "Ctrl-C",
    }
    lines = [f"  {name:<16}{value}" for name, value in rows.items()]
    return "\n".join(["", f"Ebbtide {__version__}", *lines, ""])


def _view(url: str) -> str:
    from ebbtide.rest import view_files

    place = f"{url}{view_files.PATH}"
    return place if view_files.is_built(view_files.FILES) else f"not in this installation, see {place}"


def _model(settings: Settings) -> str:
    language = settings.language
    if language.model == "builtin":
        return "built in, rules for English and Chinese"
    return f"{language.model_name} ({language.model})"


def _embedder(settings: Settings) -> str:
    from ebbtide.language.embedding import BUILTIN_NAME, embedder_name

    name = embedder_name(settings.embedding)
    if name is None:
        return "none, recall uses words and links only"
    kind, _, model = name.partition(":")
    return f"{BUILTIN_NAME} (built in)" if kind == "builtin" else f"{model} ({kind})"


def _port_failure(error: OSError, settings: Settings) -> Failure:
    field = "grpc_port" if error.filename == "grpc_port" else "rest_port"
    port = getattr(settings.server, field)
    place = f"{settings.server.host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return Failure(
            f"Port {port} on {settings.server.host} is in use by another process.",
            ExitCode.PORT_TAKEN,
            hint=f"Choose another with --{field.replace('_', '-')}; 0 selects a free port.",
        )
    why = sentence(error.strerror or str(error))
    return Failure(f"Cannot listen on {place}: {why}", ExitCode.PORT_TAKEN)
