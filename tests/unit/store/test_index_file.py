"""The file of an index: loaded where it is whole and fits, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ebbtide.store.directory.index_file import load_index, save_index


class Index:
    """An index: bytes under an identity."""

    def __init__(self, image: bytes | None = None, identity: str = "model\nlibrary 1") -> None:
        self.image, self.index_identity = image, identity
        self.is_readable = True

    def index_image(self) -> bytes | None:
        """Return the bytes to save."""
        return self.image

    def take_index(self, image: bytes) -> bool:
        """Load the bytes."""
        self.image = image
        return self.is_readable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the index `some bytes` under the stamp `now`."""
    path = tmp_path / "vectors.index"
    save_index(path, "now", Index(b"some bytes"))
    return path


def test_a_saved_index_is_loaded(path: Path) -> None:
    """An index is loaded byte for byte; only its owner can read the file."""
    index = Index()
    assert load_index(path, "now", index) and index.image == b"some bytes"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_later_index_replaces_the_earlier(path: Path) -> None:
    """A leftover of an interrupted write does not prevent saving."""
    path.with_name(path.name + ".new").write_bytes(b"half")
    save_index(path, "later", Index(b"other bytes"))
    index = Index()
    assert not load_index(path, "now", index) and index.image is None
    assert load_index(path, "later", index) and index.image == b"other bytes"


def test_without_an_index_the_file_is_removed(path: Path) -> None:
    """Saving without an index removes the file."""
    save_index(path, "now", Index())
    assert not path.exists() and not load_index(path, "now", Index())


@pytest.mark.parametrize(
    ("stamp", "identity"),
    [("then", "model\nlibrary 1"), ("now", "other\nlibrary 1"), ("now", "model\nlibrary 2")],
)
def test_an_index_of_other_content_is_not_loaded(path: Path, stamp: str, identity: str) -> None:
    """An index of other content, another model or another library version is not loaded."""
    index = Index(identity=identity)
    assert not load_index(path, stamp, index) and index.image is None


def test_a_damaged_file_counts_as_none(path: Path) -> None:
    """A truncated, changed or extended file never reaches the library."""
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole + b"x", b"\0" * 4096, b"\xff" * 4096]
    for content in damaged:
        path.write_bytes(content)
        index = Index()
        assert not load_index(path, "now", index) and index.image is None


def test_other_file_types_count_as_no_index(tmp_path: Path) -> None:
    """A directory in place of the file, or a missing directory, counts as no index."""
    assert not load_index(tmp_path, "now", Index())
    assert not load_index(tmp_path / "nowhere" / "vectors.index", "now", Index())


def test_an_index_that_the_library_refuses_is_not_loaded(path: Path) -> None:
    """The library may refuse a valid file."""
    index = Index()
    index.is_readable = False
    assert not load_index(path, "now", index)


def test_a_write_that_fails_leaves_the_earlier_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed save raises, leaves the file unchanged, and leaves no partial file."""

    def full(descriptor: int) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("ebbtide.store.durable.os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        save_index(path, "later", Index(b"other bytes"))
    monkeypatch.undo()
    assert load_index(path, "now", Index())
    assert [file.name for file in path.parent.iterdir()] == [path.name]
