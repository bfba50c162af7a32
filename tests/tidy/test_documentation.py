"""The links of the documentation, and the files, commands and words that it names, exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ebbtide import changes, records
from ebbtide.errors import REASONS
from ebbtide.han import contains_han
from tests.tidy.pages import DOCS, PACKAGE, ROOT, anchors, links, modules, pages, read

HERE = "tests/tidy/"


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    """Every link within the repository leads to a file, and its anchor to a heading."""
    broken = []
    for link in links(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        exists = target.exists() and target.is_relative_to(ROOT)
        if not exists or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


def test_architecture_names_files_that_exist() -> None:
    """Every file and folder that ARCHITECTURE.md names exists."""
    named = set(re.findall(r"`((?:tests/)?[\w/]+(?:\.py|/))`", read("ARCHITECTURE.md")))
    places = [name for name in named if name != "service/ebbtide/"]
    missing = [name for name in sorted(places) if not any((root / name).exists() for root in (PACKAGE, ROOT))]
    assert missing == []


def test_the_code_map_is_complete() -> None:
    """The code map lists every module of the package or its folder."""
    page = read("ARCHITECTURE.md")
    map_text = page[page.index("## Code map") : page.index("## The two stories")]
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", map_text))
    whole_folders = {"cli/demo/", "language/builtin/"}
    missing = [
        path
        for path in (str(m.relative_to(PACKAGE)) for m in modules() if m.name != "__init__.py")
        if path not in named and not any(path.startswith(folder) for folder in whole_folders & named)
    ]
    assert missing == []


def test_places_named_as_protection_exist() -> None:
    """The functions that ARCHITECTURE.md names as protections are in the named files."""
    page = read("ARCHITECTURE.md")
    table = page[page.index("## What protects a memory") : page.index("## Who owns which thread")]
    for names, file in re.findall(r"((?:`[\w.]+`(?:, | and )?)+) in `([\w/]+\.py)`", table):
        source = (PACKAGE / file).read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", names):
            if not name.endswith(".py"):
                assert f"def {name.rpartition('.')[2]}(" in source, (name, file)


def test_every_invariant_names_its_guard() -> None:
    """Each **Invariant:** of ARCHITECTURE.md names a test file that exists."""
    page = read("ARCHITECTURE.md")
    invariants = re.findall(r"\*\*Invariant:\*\*(.*?)(?=\n\n|\Z)", page, re.DOTALL)
    assert len(invariants) > 10
    for invariant in invariants:
        guards = re.findall(r"`(tests/[\w/]+\.py)`", invariant)
        assert guards, invariant
        assert [guard for guard in guards if not (ROOT / guard).is_file()] == []


def test_settings_named_on_pages_exist() -> None:
    """Every `section.setting` that a page names is a setting."""
    from ebbtide.settings import Settings

    known = {
        f"{section}.{name}"
        for section, field in Settings.model_fields.items()
        for name in field.annotation.model_fields  # type: ignore[union-attr]
    }
    sections = "|".join(Settings.model_fields)
    for page in [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "ARCHITECTURE.md"]:
        named = set(re.findall(rf"`((?:{sections})\.[a-z_]+)`", page.read_text(encoding="utf-8")))
        named = {name for name in named if not name.endswith(".py")}
        assert named - {"log.py"} <= known, page.name


def test_reasons_named_on_pages_exist() -> None:
    """Every reason that a page names exists."""
    others = {"DATA_DIR", "EBBTIDE_URL", "HYPOTHESIS_PROFILE", "SWITCH_INTERVAL_S"}
    for page in pages():
        words = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", page.read_text(encoding="utf-8")))
        words = {word for word in words - others if not word.startswith("EBBTIDE_")}
        assert words <= REASONS.keys(), page.name


def test_records_are_listed_and_whole() -> None:
    """Every decision record has a number of its own, is listed and has the five sections."""
    listed = read("docs/adr/README.md")
    records = sorted((DOCS / "adr").glob("[0-9]*.md"))
    assert len({record.name[:4] for record in records}) == len(records)
    for record in records:
        text = record.read_text(encoding="utf-8")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences", "Numbers", "Alternatives"], record.name
        title = text.splitlines()[0].partition(": ")[2]
        assert f"]({record.name}) | {title} |" in listed


def test_the_glossary_has_the_words_of_the_code() -> None:
    """The glossary contains every kind of value of records.py and changes.py, in English and Chinese."""
    page = read("docs/glossary.md")
    words = {word for word, _ in re.findall(r"^\| ([\w ]+?) \| (\S+) \|", page, re.MULTILINE)}
    for kind in ("Message", "Batch", "Receipt", "Source", "Rewrite", "Node", "Link", "Change", "Cue"):
        assert hasattr(records, kind) or hasattr(changes, kind)
        assert kind.lower() in words, kind
    for chinese in re.findall(r"^\| [a-z][\w ]+? \| (\S+) \|", page, re.MULTILINE):
        assert contains_han(chinese), chinese


def test_commands_and_options_are_documented() -> None:
    """operating.md documents every command, and configuration.md every flag of `serve`."""
    import typer.main

    from ebbtide.cli.app import app

    group = typer.main.get_command(app)
    operating, configuration = read("docs/operating.md"), read("docs/configuration.md")
    commands = group.commands  # type: ignore[attr-defined]
    assert [name for name in commands if f"`ebbtide {name}" not in operating] == []
    flags = [option for p in commands["serve"].params for option in p.opts if option.startswith("--")]
    assert [flag for flag in flags if flag != "--help" and f"| `{flag}` |" not in configuration] == []
