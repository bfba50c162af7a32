"""Run the cases of clients/conformance with the Python client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from typing import Any

import httpx
import pytest

from ebbtide_client import Client, EbbtideError, Retries, Unavailable
from tests.tidy.pages import ROOT

FOLDER = ROOT / "clients" / "conformance"
TYPES = {"string": str, "number": (int, float), "boolean": bool}


def cases() -> list[tuple[str, dict[str, Any]]]:
    """Return every case with the name of its file."""
    return [
        (path.stem, case) for path in sorted(FOLDER.glob("*.json")) for case in json.loads(path.read_text())
    ]


def run(client: Client, case: dict[str, Any], agent: str) -> None:
    """Run a case. Raise AssertionError at the first step with another result."""
    names: dict[str, Any] = {"agent": agent, "other": f"{agent}-other"}
    for number, step in enumerate(case["steps"], 1):
        place = f"{case['name']}, step {number}: {step['call']}"
        expected = filled(step.get("expect"), names)
        try:
            result = call(client, step, names)
        except EbbtideError as error:
            check_error(error, step.get("error"), place)
            continue
        assert "error" not in step, f"{place}: no error, but {result}"
        if expected is not None:
            check(result, expected, place)
        names |= {name: part(result, path) for name, path in step.get("save", {}).items()}


def call(client: Client, step: dict[str, Any], names: dict[str, Any]) -> Any:
    """Return the result of a step as JSON."""
    method = getattr(client, re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", step["call"]))
    result = method(*filled(step["args"], names), **filled(step.get("options", {}), names))
    return as_json(list(result) if isinstance(result, Iterator) else result)


def as_json(result: Any) -> Any:
    """Return a result of the client without its classes."""
    if isinstance(result, list):
        return [as_json(one) for one in result]
    return json.loads(json.dumps(asdict(result))) if is_dataclass(result) else result  # type: ignore[arg-type]


def filled(value: Any, names: dict[str, Any]) -> Any:
    """Return a value with the saved parts in place of their names."""
    if isinstance(value, str) and value.startswith("$"):
        return names[value[1:]]
    if isinstance(value, list):
        return [filled(one, names) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, names) for name, one in value.items()}
    return value


def part(value: Any, path: str) -> Any:
    """Return the part of a result at a path such as `nodes.0.id`."""
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def check(found: Any, expected: Any, place: str) -> None:
    """Compare a result with what a case expects."""
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), f"{place}: {found}"
        for index, one in enumerate(expected):
            check(found[index], one, f"{place}.{index}")
    elif not isinstance(expected, dict):
        assert found == expected, f"{place}: {found!r}, not {expected!r}"
    elif "$contains" in expected:
        assert expected["$contains"] in found, f"{place}: {found!r}"
    elif "$length" in expected:
        assert len(found) == expected["$length"], f"{place}: {found!r}"
    elif "$type" in expected:
        assert isinstance(found, TYPES[expected["$type"]]), f"{place}: {found!r}"
    else:
        for name, one in expected.items():
            assert name in found, f"{place}: no {name} in {found}"
            check(found[name], one, f"{place}.{name}")


def check_error(error: EbbtideError, expected: dict[str, Any] | None, place: str) -> None:
    """Compare an error with what a case expects."""
    assert expected is not None, f"{place}: {error!r}"
    assert (type(error).__name__, error.reason) == (expected["class"], expected["reason"]), (
        f"{place}: {error!r}"
    )
    if "fields" in expected:
        assert [one.field for one in error.violations] == expected["fields"], place


# --- requests ------------------------------------------------------------------------------------------

BUSY = {"code": 503, "status": "UNAVAILABLE", "reason": "SERVER_BUSY", "message": "busy", "metadata": {}}


def request_cases() -> list[dict[str, Any]]:
    """Return what each operation sends."""
    rows: list[dict[str, Any]] = json.loads((FOLDER / "requests" / "requests.json").read_text())
    return rows


def check_request(row: dict[str, Any]) -> None:
    """Call an operation of a client whose daemon is busy, and compare what it sends."""
    sent: list[httpx.Request] = []

    def busy(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(503, json={"error": BUSY})

    retries = Retries(attempts=2, first_pause_s=0)
    client = Client("http://daemon", transport=httpx.MockTransport(busy), retries=retries)
    with client, pytest.raises(Unavailable):
        call(client, row, {})
    place = f"{row['call']} {row['args']}"
    request = sent[0]
    assert (request.method, request.url.raw_path.decode().partition("?")[0]) == (row["method"], row["path"])
    query = row.get("query", {})
    found = {name: read_like(text, query.get(name)) for name, text in request.url.params.items()}
    assert found == query, place
    if "body" in row:
        check(json.loads(request.content), row["body"], place)
    assert len(sent) == (2 if row["repeats"] else 1), place
    assert sent[-1].content == request.content, place


def read_like(text: str, expected: Any) -> Any:
    """Return an option of a query, read as JSON if an object is expected."""
    return json.loads(text) if isinstance(expected, dict) else text
