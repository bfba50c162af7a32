"""Text for people and for pipes."""

from __future__ import annotations

import sys

import pytest

from ebbtide.cli.console import out, report, say, write_text
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure

HOSTILE = "\x1b[31mRed\x07ford\u009b2J\tsaid\nso\n"


@pytest.mark.parametrize(
    ("is_terminal", "shown"), [(True, "\ufffd[31mRed\ufffdford\ufffd2J\tsaid\nso\n"), (False, HOSTILE)]
)
def test_a_memory_cannot_control_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool, shown: str
) -> None:
    """Control characters of a memory are replaced on a terminal, and unchanged in a pipe."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    write_text(HOSTILE)
    assert capsys.readouterr().out == shown


def test_no_table_message_or_error_controls_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables, coloured messages and errors contain no escape sequence but those of the console itself."""
    from rich.table import Table

    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    table = Table("text")
    table.add_row("\x1b]0;owned\x07 \x1b[2J")
    out().print(table)
    say("\x1b]0;owned\x07", "yellow")
    report(Failure("\x1b]0;owned\x07", ExitCode.USAGE, hint="\x1b]0;owned\x07"))
    found = capsys.readouterr()
    for shown in (found.out, found.err):
        assert "owned" in shown
        assert "\x1b]" not in shown
        assert "\x1b[2J" not in shown
        assert "\x07" not in shown
