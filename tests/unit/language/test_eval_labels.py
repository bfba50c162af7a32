"""The built-in model keeps its quality on the labelled data."""

from __future__ import annotations

from benchmarks.eval_labels import LANGUAGES, measure, report

LEAST = {
    "keyword precision": {"en": 0.78, "zh": 0.66},
    "keyword recall": {"en": 0.75, "zh": 0.60},
    "first keyword right": {"en": 0.88, "zh": 0.80},
    "statement kept at 1/2": {"en": 0.67, "zh": 0.74},
    "golden half equal": {"en": 0.74, "zh": 0.60},
    "segmentation exact": {"en": 0.80, "zh": 0.65},
    "filler precision": {"en": 0.95, "zh": 0.95},
    "relation name right": {"en": 0.72, "zh": 0.73},
}
"""The least share of each measure, a little below the measured one."""

MOST = {"never-words among keywords": 0.02, "misleading at 1/2": 0.02, "misleading at 1/4": 0.02}


def test_the_quality_on_the_labelled_data_does_not_fall() -> None:
    """Every measure reaches its least share, and errors stay rare, in both languages."""
    counts = measure().counts
    for lang in LANGUAGES:

        def share(name: str, lang: str = lang) -> float:
            parts = [counts[name, lang, half] for half in ("odd", "even")]
            return sum(part[0] for part in parts) / sum(part[1] for part in parts)

        assert {name: share(name) for name in LEAST if share(name) < LEAST[name][lang]} == {}
        assert {name: share(name) for name, most in MOST.items() if share(name) > most} == {}


def test_the_report_has_a_column_for_each_language_and_half() -> None:
    """The table separates the items for tuning from the held-out ones."""
    heading, *rows = report().splitlines()
    assert heading.split() == ["en", "odd", "en", "even", "zh", "odd", "zh", "even"]
    assert len(rows) >= 13
