"""Text for people and for pipes."""

from __future__ import annotations

import sys

import pytest

from ebbtide.cli.console import write_text

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
