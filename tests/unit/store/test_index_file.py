"""The file of an index: taken whole and where it fits, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ebbtide.store.directory.index_file import load_index, save_index


class Index:
    """An index as the file knows it: bytes under an identity."""

    def __init__(self, image: bytes | None = None, identity: str = "model\nlibrary 1") -> None:
        self.image, self.index_identity = image, identity
        self.is_readable = True

    def index_image(self) -> bytes | None:
        """What is to be kept."""
        return self.image

    def take_index(self, image: bytes) -> bool:
        """What came back."""
        self.image = image
        return self.is_readable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the index `some bytes` under the stamp `now`."""
    path = tmp_path / "vectors.index"
    save_index(path, "now", Index(b"some bytes"))
    return path


def test_what_was_kept_comes_back(path: Path) -> None:
    """Byte for byte; the file is for its owner only, and nothing is left beside it."""
    index = Index()
    assert load_index(path, "now", index) and index.image == b"some bytes"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_later_index_replaces_the_earlier(path: Path) -> None:
    """Also where a file from a write that was cut off lies in the way."""
    path.with_name(path.name + ".new").write_bytes(b"half")
    save_index(path, "later", Index(b"other bytes"))
    index = Index()
    assert not load_index(path, "now", index) and index.image is None
    assert load_index(path, "later", index) and index.image == b"other bytes"


def test_without_an_index_the_file_goes(path: Path) -> None:
    """An index that was given up is not found at the next opening."""
    save_index(path, "now", Index())
    assert not path.exists() and not load_index(path, "now", Index())


@pytest.mark.parametrize(
    ("stamp", "identity"),
    [("then", "model\nlibrary 1"), ("now", "other\nlibrary 1"), ("now", "model\nlibrary 2")],
)
def test_an_index_of_something_else_is_not_taken(path: Path, stamp: str, identity: str) -> None:
    """Of other content, another model or another version of the library."""
    index = Index(identity=identity)
    assert not load_index(path, stamp, index) and index.image is None


def test_a_damaged_file_counts_as_none(path: Path) -> None:
    """Cut at any place, with any byte changed, with more at the end: nothing of it reaches the library."""
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole + b"x", b"\0" * 4096, b"\xff" * 4096]
    for content in damaged:
        path.write_bytes(content)
        index = Index()
        assert not load_index(path, "now", index) and index.image is None


def test_what_is_no_file_counts_as_none(tmp_path: Path) -> None:
    """A directory in its place, or no directory at all."""
    assert not load_index(tmp_path, "now", Index())
    assert not load_index(tmp_path / "nowhere" / "vectors.index", "now", Index())


def test_an_index_that_the_library_refuses_is_not_taken(path: Path) -> None:
    """Whole, and yet of no use: the answer is the library's."""
    index = Index()
    index.is_readable = False
    assert not load_index(path, "now", index)


def test_a_write_that_fails_leaves_the_earlier_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the caller's to know; the file is as it was, and no half of another lies beside it."""

    def full(descriptor: int) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("ebbtide.store.durable.os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        save_index(path, "later", Index(b"other bytes"))
    monkeypatch.undo()
    assert load_index(path, "now", Index())
    assert [file.name for file in path.parent.iterdir()] == [path.name]
