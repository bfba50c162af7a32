"""Backups and exports: damaged and forged files are refused, and everything stored has a place in an export."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from ebbtide.errors import EbbtideError, Exhausted, InvalidRequest, Precondition
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.transfer import backup_file
from ebbtide.store.transfer.backup_file import Manifest, read_backup, write_backup
from ebbtide.store.transfer.export_lines import AnyLine
from tests.support.moving import directory, received, sent


@pytest.fixture
def data() -> Iterator[Any]:
    """A data directory with one agent, ann, whose store is open."""
    with directory() as held:
        yield held


@pytest.fixture
def files(data: Any) -> dict[str, bytes]:
    """A backup and an export of an empty agent."""
    store = data.create_store(Identity("ann", 5, 7, layout.FORMAT_VERSION))
    try:
        return {form: sent(data, store, form) for form in ("backup", "export")}
    finally:
        store.close()


def test_no_flipped_byte_of_a_backup_is_accepted(data: Any, files: dict[str, bytes]) -> None:
    """A flipped byte anywhere in the file is refused, and leaves nothing behind."""
    sound = files["backup"]
    received(data, sound)
    for place in range(len(sound)):
        wrong = bytearray(sound)
        wrong[place] ^= 0x41
        with pytest.raises(EbbtideError) as refused:
            read_backup(io.BytesIO(wrong), data.transfers / "out", max_bytes=1 << 28)
        assert refused.value.reason in ("BACKUP_UNREADABLE", "FORMAT_TOO_NEW", "STORE_FULL"), place


@pytest.mark.parametrize("form", ["backup", "export"])
def test_truncated_backups_are_refused(data: Any, files: dict[str, bytes], form: str) -> None:
    """A truncated backup, or one with extra data, is BACKUP_UNREADABLE."""
    sound = files[form]
    lengths = [*range(0, len(sound) - 1, 97), len(sound) - 2]
    for content in (*(sound[:length] for length in lengths), sound + b"\n", sound + sound):
        with pytest.raises(InvalidRequest) as refused:
            received(data, content)
        assert refused.value.reason == "BACKUP_UNREADABLE"


def test_an_empty_backup_is_reported_as_that(data: Any, tmp_path: Path) -> None:
    """The error for an empty file says that the file ends, and one for another file names the missing member."""
    for content, why in (
        (b"", "it ends before manifest.json"),
        (b"x" * 512, "does not contain manifest.json"),
    ):
        with pytest.raises(InvalidRequest, match=why):
            read_backup(io.BytesIO(content), tmp_path / "out", max_bytes=1 << 28)


def archive(*members: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    """Return a tar archive with arbitrary members."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return into.getvalue()


def test_names_and_links_of_an_archive_mean_nothing(data: Any, tmp_path: Path) -> None:
    """Paths outside the directory, links, devices and extra members are refused, and create no file."""
    link = tarfile.TarInfo("manifest.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    before = set(data.root.rglob("*"))
    for content in (
        archive(("../../escaped", b"x")),
        archive((str(tmp_path / "escaped"), b"x")),
        archive(link),
        archive(("data.mdb", b"x"), ("manifest.json", b"{}")),
    ):
        with pytest.raises(InvalidRequest):
            received(data, content)
    assert not (tmp_path / "escaped").exists()
    assert {path for path in data.root.rglob("*") if path.parent != data.transfers} == before


def made(data_bytes: int, packed: bytes, **fields: Any) -> bytes:
    """Return a backup with correct checksums and arbitrary data."""
    told = {"format": "ebbtide-backup", "version": 1, "ebbtide_version": "0", "store_format": 1}
    manifest = Manifest(**{**told, "agent_id": "ann", "taken_at": 0, "data_bytes": data_bytes, **fields})  # type: ignore[arg-type]
    into = io.BytesIO()
    write_backup(into, manifest, io.BytesIO(packed))
    return into.getvalue()


def test_a_bomb_unpacks_only_to_its_stated_size(data: Any) -> None:
    """Data larger than stated is refused; a stated size beyond the map limit is STORE_FULL."""
    bomb = zstandard.ZstdCompressor().compress(bytes(64 << 20))
    out = data.transfers / "out"
    with pytest.raises(InvalidRequest):
        read_backup(io.BytesIO(made(4096, bomb)), out, max_bytes=1 << 20)
    assert out.stat().st_size <= 8192
    with pytest.raises(Exhausted) as refused:
        read_backup(io.BytesIO(made(64 << 20, bomb)), data.transfers / "none", max_bytes=1 << 20)
    assert refused.value.reason == "STORE_FULL"
    assert not (data.transfers / "none").exists()


def test_newer_formats_are_refused(data: Any) -> None:
    """A newer version of the format is FORMAT_TOO_NEW, even with unknown fields."""
    with pytest.raises(Precondition) as refused:
        received(data, made(0, b"", version=backup_file.VERSION + 1))
    assert refused.value.reason == "FORMAT_TOO_NEW"


def test_sums_that_fit_are_not_enough(data: Any, files: dict[str, bytes]) -> None:
    """Garbage with right checksums, and data of another agent than the manifest names, are BACKUP_UNREADABLE."""
    garbage = bytes(range(256)) * 64
    for content in (made(len(garbage), zstandard.compress(garbage)), made(0, zstandard.compress(b""))):
        with pytest.raises(InvalidRequest) as refused:
            received(data, content)
        assert refused.value.reason == "BACKUP_UNREADABLE"
    other = data.create_store(Identity("bea", 5, 7, layout.FORMAT_VERSION))
    copy = data.make_transfer()
    assert other.copy(copy, lambda: False, lambda: None)
    other.close()
    content = (copy / "data.mdb").read_bytes()
    with pytest.raises(InvalidRequest) as refused:
        received(data, made(len(content), zstandard.compress(content)))
    assert "another agent" in refused.value.message
    assert received(data, made(len(content), zstandard.compress(content), agent_id="bea")).agent_id == "bea"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"type":"robot"}', "robot"),
        ('{"type":"relation","id":-1,"name":"a"}', ">= 1 - at `$.id`"),
        ('{"type":"relation","id":1}', "name"),
        ('{"type":"link","source":1,"target":2,"relation":"x","strength":1.0,"anchor":0}', "defines its relation"),
        (
            '{"type":"message","number":1,"batch":1,"index":0,"role":"user","accepted_at":0,"metadata":5}',
            "no JSON object",
        ),
        ('{"type":"batch","number":1,"accepted_at":0,"first_message":1,"message_count":0,"state":"lost"}', "state"),
        ('{"type":"node","id":1,"content":"a","created_at":0,"original_length":1,"colour":"red"}', "colour"),
        ('{"type":"agent","agent_id":"ann","created_at":0,"seed":"1","parameters":{}}', "must be the first lines"),
        ("[1]", ""),
        ("{", ""),
        (b'{"type":"relation","id":1,"name":"\xff"}', "utf-8"),
        (
            b'{"type":"message","number":1,"batch":1,"index":0,"role":"user","accepted_at":0,"metadata":{"a":"\xff"}}',
            "",
        ),
        ('{"type":"relation","id":1,"name":"a","x":' + "[" * 5000 + "}", ""),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(data: Any, files: dict[str, bytes], line: str | bytes, told: str) -> None:
    """An invalid line refuses the export, and the error names its number."""
    head = files["export"].splitlines()[:2]
    end = b'{"type":"end","lines":3}'
    with pytest.raises(InvalidRequest) as refused:
        received(data, b"\n".join([*head, line if isinstance(line, bytes) else line.encode(), end, b""]))
    assert (refused.value.reason, refused.value.metadata["line"]) == ("BACKUP_UNREADABLE", "3")
    assert told in refused.value.message


def test_an_export_whose_lines_do_not_hold_together_is_refused(data: Any, files: dict[str, bytes]) -> None:
    """An export with a missing source, or with a next number in use, is refused."""
    head = files["export"].splitlines()[:2]
    cited = b'"sources":[{"message":4,"offset":0,"length":1}]'
    node = b'{"type":"node","id":9,"content":"a","created_at":0,"original_length":1,' + cited + b"}"
    with pytest.raises(InvalidRequest, match="findings"):
        received(data, b"\n".join([*head, node, b'{"type":"end","lines":3}', b""]))
    assert received(data, b"\n".join([*head, b'{"type":"end","lines":2}', b""])).counts.node_count == 0


def test_parameters_that_cannot_be_used_are_refused(data: Any, files: dict[str, bytes]) -> None:
    """An agent with parameters that this daemon refuses is INVALID_PARAMETERS."""
    lines = files["export"].splitlines()
    agent = msgspec.json.decode(lines[1])
    for parameters in ({"focus_limit": 0}, {"courage": 1}):
        agent["parameters"] = parameters
        content = b"\n".join([lines[0], msgspec.json.encode(agent), b'{"type":"end","lines":2}', b""])
        with pytest.raises(InvalidRequest) as refused:
            received(data, content)
        assert refused.value.reason == "INVALID_PARAMETERS"


def test_another_agent_is_restored_only_under_a_new_id(data: Any, files: dict[str, bytes]) -> None:
    """A restore under another id is BACKUP_OF_ANOTHER_AGENT; with `rename` it keeps the seed."""
    for content in files.values():
        with pytest.raises(Precondition) as refused:
            received(data, content, AgentId("bea"))
        assert refused.value.reason == "BACKUP_OF_ANOTHER_AGENT"
        staged = received(data, content, AgentId("bea"), rename=True)
        data.install(staged.agent_id, staged.path)
        store = data.open_store(AgentId("bea"))
        assert store.read(lambda txn: txn.meta.identity) == Identity("bea", 5, 7, layout.FORMAT_VERSION)
        store.close()


def test_everything_that_is_stored_has_a_place_in_an_export() -> None:
    """Each table and each entry of META has fields of an export that exist, or is left out on purpose."""
    lines = {line.__struct_config__.tag: line.__struct_encode_fields__ for line in AnyLine.__args__}
    left_out = set()
    for name, exported in (
        *((table.name, table.exported) for table in layout.TABLES),
        *((entry.name, entry.exported) for entry in layout.ENTRIES.values()),
    ):
        if not exported:
            left_out.add(name.decode())
        for place in exported.split(", ") if exported and not exported.startswith("of ") else ():
            line, _, field = place.partition(".")
            assert not field or field in lines[line], place
    assert left_out == {
        *(
            "audit",
            "events",
            "audit_head",
            "proof_key",
            "next_event",
        ),  # the history of the agent where it was
        *("sealed_with", "compaction_due", "leftovers", "citings_due", "has_lives"),  # they describe the file
        *("journal_head", "journal_start", "journal_marks"),  # the place in the log of a cluster
        "statement_uses",  # it only orders results
    }
