"""A file is replaced as a whole, durably, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ebbtide.store.durable import fresh_file, replace_file


def test_parts_replace_the_old_file(tmp_path: Path) -> None:
    """The file has the parts in order, for its owner only; leftovers of an interrupted write are removed."""
    path = tmp_path / "file"
    path.write_bytes(b"before")
    fresh_file(path).write_bytes(b"half of something")
    replace_file(path, b"one ", b"two")
    assert path.read_bytes() == b"one two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_ownership_is_set_before_any_content(tmp_path: Path) -> None:
    """`adopt` gets the new file while it is empty."""
    sizes: list[int] = []
    replace_file(tmp_path / "file", b"content", adopt=lambda own: sizes.append(os.fstat(own).st_size))
    assert sizes == [0]


@pytest.mark.parametrize("step", ["write", "sync", "adopt", "rename"])
def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """After an error at any step the file is unchanged, and no partial file is left."""
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        if step == "sync":
            patch.setattr("ebbtide.store.durable.os.fsync", refuse)
        elif step == "rename":
            patch.setattr(Path, "replace", refuse)
        content: object = "no bytes" if step == "write" else b"after"
        with pytest.raises((OSError, TypeError)):
            replace_file(path, content, adopt=refuse if step == "adopt" else None)  # type: ignore[arg-type]
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
