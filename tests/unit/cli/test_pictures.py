"""Text folded to a width, and bars."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from ebbtide.cli.pictures import BAR_WIDTH, fold, importance_bar, indented

TEXTS = [
    "林月: 外婆年轻时住在团岛，每逢起大雾的清晨，她就提着马灯站到灯塔底下，把一只“铜哨子”吹三声。",
    "Lin Yue: At 3:14 in the morning, the payment service charged a tiny bakery in Porto eleven times.",
    "对哦！龙泉有一家小窑，a pair of celadon cups 要 760，杯底可以刻字，but they need twenty days.",
    "x" * 200,
    "",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [12, 40, 80])
def test_folding_loses_nothing_and_keeps_the_width(text: str, width: int) -> None:
    """Folded lines contain every character except the white space at line ends, and none is wider than the limit."""
    lines = fold(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= width and line == line.strip() for line in lines)


def test_chinese_fills_its_lines() -> None:
    """Chinese breaks between characters, but a line never begins with a comma."""
    assert fold("外婆年轻时住在团岛，每逢起雾", 10) == ["外婆年轻时", "住在团岛，", "每逢起雾"]
    assert fold("外婆年轻时，住在", 10) == ["外婆年轻", "时，住在"]


def test_indents_stand_before_every_line() -> None:
    """An indent counts against the width and starts every line."""
    assert indented("one two three", 13, "   ") == "   one two\n   three"


def test_bars_are_full_from_one_on() -> None:
    """A bar has a fixed width, is full from 1 on, and is never empty for a value above 0."""
    assert importance_bar(2.5).plain == importance_bar(1).plain == "█" * BAR_WIDTH
    assert importance_bar(0).plain == "░" * BAR_WIDTH
    assert importance_bar(0.001).plain == "█" + "░" * (BAR_WIDTH - 1)
