"""The settings of a daemon as the command line reads them: flags over the environment over the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, sentence

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


def given(flags: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The flags that were given: those that are not None, and no empty section."""
    kept = {
        section: {name: value for name, value in fields.items() if value is not None}
        for section, fields in flags.items()
    }
    return {section: fields for section, fields in kept.items() if fields}


def settings_in_force(flags: dict[str, Any], config: Path | None = None) -> Settings:
    """The settings; a Failure names each bad field with its value and range."""
    from ebbtide.settings import load_settings

    try:
        return load_settings(flags, config)
    except ValidationError as error:
        raise Failure(describe(error), ExitCode.BAD_SETTING) from None
    except SettingsError as error:
        raise Failure(f"{sentence(str(error))}", ExitCode.BAD_SETTING) from None
    except FileNotFoundError:
        raise Failure(f"There is no settings file {config}.", ExitCode.NO_CONFIG) from None
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"The settings file {config} is not TOML: {error}.", ExitCode.BAD_SETTING) from None
    except OSError as error:
        raise Failure(
            f"The settings file {config} cannot be read: {error.strerror}.", ExitCode.NO_CONFIG
        ) from None


def describe(error: ValidationError) -> str:
    """Every bad setting with its value and what is allowed, as one sentence each."""
    sentences = []
    for fault in error.errors(include_url=False):
        field = ".".join(str(part) for part in fault["loc"]) or "settings"
        if fault["type"] == "extra_forbidden":
            sentences.append(f"{field}: there is no such setting.")
            continue
        message = fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
        message = allowed(fault["loc"]) or message[:1].lower() + message[1:]
        shown = (
            "(not shown)"
            if {"api_key", "base_url", "master_key"} & set(fault["loc"])
            else repr(fault["input"])
        )
        value = shown if len(shown) <= 40 else shown[:39] + "…"
        is_whole = isinstance(fault["input"], dict)
        sentences.append(f"{field}: {message}." if is_whole else f"{field} = {value}: {message}.")
    return "\n       ".join(sentences)


def allowed(path: tuple[int | str, ...]) -> str:
    """The range or the list of values of a number or choice among the settings; empty for others."""
    from ebbtide.settings import Settings
    from ebbtide.verbs.requests import allowed_values

    values = allowed_values(Settings, path)
    return f"allowed: {values}" if values else ""
