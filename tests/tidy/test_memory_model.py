"""docs/memory-model.md tells lifetimes as the memory model itself makes them, and texts as recall words them."""

from __future__ import annotations

import re

import pytest

from ebbtide.cli.commands import simulation
from ebbtide.memory.wording import word_dangling, word_entity
from ebbtide.parameters import AgentParameters
from tests.tidy.pages import read, rows

PAGE = "docs/memory-model.md"
ENOUGH_PASSES = 600


def lifetimes() -> list[list[str]]:
    """The rows of the table of lifetimes."""
    return [row for row in rows(read(PAGE), "## Parameters worth changing") if len(row) == 4]


@pytest.mark.parametrize("row", lifetimes(), ids=lambda row: "-".join(row[:2]))
def test_lifetimes_are_those_of_the_simulation(row: list[str]) -> None:
    """Each row says when a memory of 60 characters is first cut and when it is forgotten."""
    rate, factor, first_cut, gone = row
    curve = simulation.simulate(simulation.Case(float(rate), float(factor)), ENOUGH_PASSES)
    assert (curve.first_cut, curve.gone) == (int(first_cut), int(gone))


@pytest.mark.parametrize("characters", [20, 200])
def test_lifetimes_of_other_lengths(characters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of the page for shorter and longer memories are those of the default parameters."""
    told = dict(re.findall(r"(\d+) characters (?:are forgotten )?after (\d+)", read(PAGE)))
    monkeypatch.setattr(simulation, "CHARACTERS", characters)
    defaults = AgentParameters()
    case = simulation.Case(defaults.decay_rate, defaults.long_term_factor)
    assert simulation.simulate(case, ENOUGH_PASSES).gone == int(told[str(characters)])


def test_the_default_is_named() -> None:
    """The page gives the defaults that it mentions as they are."""
    defaults = AgentParameters()
    assert re.search(rf"{defaults.decay_rate:g}\b[^|\n]{{0,60}}\b{defaults.long_term_factor:g}\b", read(PAGE))
    for name in ("decay_rate", "link_break_threshold", "delete_threshold", "focus_limit"):
        value = getattr(defaults, name)
        assert re.search(rf"{value:g}[^|.]{{0,20}} \(`{name}`\)|`{name}` \({value:g}\)", read(PAGE)), name


@pytest.mark.parametrize("page", ["README.md", PAGE, "docs/api.md"])
def test_what_is_said_of_the_forgotten_is_what_recall_says(page: str) -> None:
    """The sentences about forgotten things stand on the pages byte for byte."""
    text = read(page)
    if page == "README.md":
        assert word_entity("Clara", knows_more=False, is_chinese=False) in text
    else:
        told = "R" if page == "docs/api.md" else "Clara"
        assert word_dangling(told, "English", "en") in text
    if page == "docs/api.md":
        for relation, locale in (("R", "zh"), ("", "zh"), ("", "en")):
            assert f"`{word_dangling(relation, 'x', locale)}`" in text
