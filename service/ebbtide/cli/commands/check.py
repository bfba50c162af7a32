"""`ebbtide check`: check the stored data of each agent, offline.

A store that cannot be opened is a finding too. One damaged agent does not stop the check of the others.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ebbtide.cli.console import counted, out, progress, say, write_json
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import DataDir, Json, MasterKeyFile
from ebbtide.errors import EbbtideError, NotFound

if TYPE_CHECKING:
    from ebbtide.store.directory.data_directory import DataDirectory
    from ebbtide.store.integrity.check import Finding

MAX_ROWS = 200
"""Findings shown in the table; JSON has them all."""


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with its agent."""

    agent_id: str
    table: str
    key: str
    problem: str
    is_repairable: bool


@dataclass(frozen=True, slots=True)
class Report:
    """The checked agents, the findings, and the findings that a rebuild repaired."""

    checked: list[str] = field(default_factory=list)
    findings: list[Found] = field(default_factory=list)
    repaired: list[Found] = field(default_factory=list)


def check(
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[AGENT]...", help="Only these agents.")
    ] = None,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild what can be derived from the other data.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check stored data, offline. Exit code 7 if it is damaged."""
    from ebbtide.cli.offline import locked

    with locked(data_dir, master_key_file) as (data, _):
        directories = _directories(data, agents or [])
        report = _check_all(data, directories, rebuild)
    if as_json:
        write_json(asdict(report))
    else:
        _show(report)
    if report.findings:
        raise typer.Exit(ExitCode.DAMAGED)


def _directories(data: DataDirectory, agents: list[str]) -> list[str]:
    from ebbtide.ids import parse_agent_id
    from ebbtide.store.directory.data_directory import directory_name

    if not agents:
        return list(data.directories())
    names = [directory_name(parse_agent_id(agent)) for agent in agents]
    for agent, name in zip(agents, names, strict=True):
        if not (data.agents / name).is_dir():
            raise Failure(f"There is no agent {agent} in {data.root}.", ExitCode.NOT_FOUND)
    return names


def _check_all(data: DataDirectory, directories: list[str], rebuild: bool) -> Report:
    report = Report()
    with progress("checking") as bar:
        task = bar.add_task("checking", total=len(directories))
        for directory in directories:
            _check_one(data, directory, rebuild, report)
            bar.advance(task)
    return report


def _check_one(data: DataDirectory, directory: str, rebuild: bool, report: Report) -> None:
    """Add one agent to the report, under the name of its directory if its id cannot be read."""
    from ebbtide.ids import AgentId
    from ebbtide.store.integrity.check import Finding, check_store
    from ebbtide.store.integrity.rebuild import rebuild_store

    agent_id = directory
    before: list[Finding] = []
    try:
        meta = data.meta(directory)
        if meta is None:
            raise NotFound("there is no meta.json", reason="AGENT_NOT_FOUND")
        agent_id = meta.agent_id
        store = data.open_store(AgentId(agent_id))
        try:
            before = check_store(store)
            now = rebuild_store(store) if rebuild and before else before
        finally:
            store.close()
    except Exception as error:  # a damaged file may cause any exception
        now = [Finding("store", directory, _problem(error))]
    report.checked.append(agent_id)
    report.findings.extend(_found(agent_id, finding) for finding in now)
    if rebuild:
        report.repaired.extend(_found(agent_id, finding) for finding in before if finding not in now)


def _found(agent_id: str, finding: Finding) -> Found:
    return Found(agent_id, finding.table, finding.key, finding.problem, finding.is_repairable)


def _problem(error: Exception) -> str:
    if isinstance(error, EbbtideError):
        return error.message
    return f"unreadable: {type(error).__name__}: {error}"


def _show(report: Report) -> None:
    agents = counted(len(report.checked), "agent")
    if report.repaired:
        say(f"{counted(len(report.repaired), 'finding')} repaired.")
    if not report.findings:
        out().print(f"{agents} checked, no findings.", markup=False)
        return
    out().print(_table(report.findings[:MAX_ROWS]))
    if len(report.findings) > MAX_ROWS:
        say(f"… and {len(report.findings) - MAX_ROWS:,} more; --json lists them all.", "dim")
    repairable = sum(finding.is_repairable for finding in report.findings)
    hint = f"; --rebuild can repair {repairable:,}" if repairable else ""
    say(f"{counted(len(report.findings), 'finding')} in {agents} checked{hint}.")


def _table(found: list[Found]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for name in ("agent", "table", "key", "problem"):
        table.add_column(name, overflow="fold")
    table.add_column("repairable")
    for finding in found:
        cells: list[Any] = [finding.agent_id, finding.table, finding.key, finding.problem]
        table.add_row(*map(str, cells), "yes" if finding.is_repairable else "no")
    return table
