"""Read the settings of a daemon: flags override the environment, which overrides the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, sentence

if TYPE_CHECKING:
    from pydantic import ValidationError

    from ebbtide.settings import Settings


def given(flags: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the flags that are not None, without empty sections."""
    kept = {
        section: {name: value for name, value in fields.items() if value is not None}
        for section, fields in flags.items()
    }
    return {section: fields for section, fields in kept.items() if fields}


def settings_in_force(flags: dict[str, Any], config: Path | None = None) -> Settings:
    """Return the settings. Raise a Failure that names each bad field with its value and range."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

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
    """Return one sentence for each bad setting, with its value and the allowed ones."""
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
    """Return the allowed range or values of a setting; empty if it has none."""
    from ebbtide.settings import Settings
    from ebbtide.verbs.requests import allowed_values

    values = allowed_values(Settings, path)
    return f"allowed: {values}" if values else ""
