"""The simulated forgetting curve."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from ebbtide.cli import app as command_line
from ebbtide.cli.commands.simulation import Case, simulate


@pytest.mark.parametrize(("rate", "factor", "cut", "gone"), [(0.97, 0.0, 94, 142), (0.95, 0.02, 62, 120)])
def test_the_curve_has_the_documented_figures(rate: float, factor: float, cut: int, gone: int) -> None:
    """The first cut and the end are close to the figures of the memory model, section 5.2."""
    curve = simulate(Case(rate, factor), 200)
    assert curve.first_cut is not None and math.isclose(curve.first_cut, cut, rel_tol=0.06)
    assert curve.gone is not None and math.isclose(curve.gone, gone, rel_tol=0.02)
    assert curve.kept[0] == 1 and curve.kept == sorted(curve.kept, reverse=True)


def test_a_curve_that_does_not_end_says_so() -> None:
    """An event that did not happen within the simulated passes is None, not a number."""
    curve = simulate(Case(0.99, 0.05), 30)
    assert (curve.first_cut, curve.gone, len(curve.kept)) == (None, None, 31)


def test_curves_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--out` writes a picture; `--json` keeps standard output JSON."""
    pytest.importorskip("matplotlib")
    target = tmp_path / "curve.svg"
    with pytest.raises(SystemExit) as caught:
        command_line.main(["curve", "--passes", "12", "--out", str(target), "--json"])
    assert not caught.value.code
    assert len(json.loads(capsys.readouterr().out)["curves"]) == 9
    assert target.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("name", ["curve.doc", "none/curve.png"])
def test_bad_targets_are_refused_first(name: str, tmp_path: Path) -> None:
    """A picture that could not be written is refused before anything is simulated."""
    with pytest.raises(SystemExit) as caught:
        command_line.main(["curve", "--out", str(tmp_path / name)])
    assert caught.value.code == 2
