"""Certificates are reloaded from their files: complete pairs only, and never in place of working ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.access.renewal import Renewal
from ebbtide.errors import Precondition
from ebbtide.settings import AccessSettings
from tests.unit.access.test_tls import written


def renewed(path: Path) -> dict[str, bytes]:
    """Return the contents of the files of another certificate, by their names."""
    path.mkdir()
    written(path)
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_a_renewed_pair_is_loaded_once_complete(tmp_path: Path) -> None:
    """A new certificate without its key is ignored silently; with its key, the pair takes effect."""
    renewal = Renewal(AccessSettings(**written(tmp_path)))
    before, fresh = renewal.current, renewed(tmp_path / "fresh")
    (tmp_path / "cert.pem").write_bytes(fresh["cert.pem"])
    renewal.look()
    assert (renewal.current, renewal.fault) == (before, "")
    (tmp_path / "key.pem").write_bytes(fresh["key.pem"])
    renewal.look()
    assert renewal.current.chain == fresh["cert.pem"]
    assert renewal.current.private_key == fresh["key.pem"]
    assert renewal.fault == ""


@pytest.mark.parametrize("name", ["cert.pem", "key.pem", "ca.pem"])
@pytest.mark.parametrize("content", [None, b"", b"hunter2"])
def test_damaged_files_are_reported_and_working_certificates_stay(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    """A missing, empty or invalid file is reported from the second check until it is repaired, without its content."""
    renewal = Renewal(AccessSettings(**written(tmp_path)))
    before, good = renewal.current, (tmp_path / name).read_bytes()
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    renewal.look()
    assert renewal.fault == ""
    for _ in range(3):
        renewal.look()
        assert "tls_" in renewal.fault and "hunter2" not in renewal.fault
        assert renewal.current is before
    (tmp_path / name).write_bytes(good)
    renewal.look()
    assert renewal.fault == ""
    assert renewal.current is before, "the same certificates, read again, replace nothing"


def test_a_removed_authority_is_no_longer_trusted(tmp_path: Path) -> None:
    """A new authority replaces the old one."""
    renewal = Renewal(AccessSettings(**written(tmp_path)))
    (before,) = renewal.current.context.get_ca_certs(binary_form=True)
    (tmp_path / "ca.pem").write_bytes(renewed(tmp_path / "fresh")["ca.pem"])
    renewal.look()
    (after,) = renewal.current.context.get_ca_certs(binary_form=True)
    assert before != after


def test_unusable_files_are_refused_at_a_start(tmp_path: Path) -> None:
    """Unusable files at a start are TLS_UNUSABLE: there is no earlier certificate to keep."""
    names = written(tmp_path)
    (tmp_path / "key.pem").write_bytes(b"")
    with pytest.raises(Precondition) as refused:
        Renewal(AccessSettings(**names))
    assert refused.value.reason == "TLS_UNUSABLE"
