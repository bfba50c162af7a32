"""Certificates from files: loaded completely, or refused at a start with the name of the setting."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
from pydantic import ValidationError

from ebbtide.access.tls import read_certificates
from ebbtide.errors import Precondition
from ebbtide.settings import AccessSettings, load_settings


def written(path: Path) -> dict[str, str]:
    """Return settings that name a valid certificate, its key and an authority."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(path / "cert.pem")
    authority.cert_pem.write_to_path(path / "ca.pem")
    return {
        "tls_cert_file": str(path / "cert.pem"),
        "tls_key_file": str(path / "key.pem"),
        "tls_client_ca_file": str(path / "ca.pem"),
    }


def test_valid_files_are_loaded_and_the_key_is_not_shown(tmp_path: Path) -> None:
    """Both servers get the contents of the files; `repr` shows no private key; without settings there is no TLS."""
    names = written(tmp_path)
    found = read_certificates(AccessSettings(**names))
    assert found is not None
    assert found.private_key == (tmp_path / "key.pem").read_bytes()
    assert "PRIVATE" not in repr(found)
    assert read_certificates(AccessSettings()) is None


@pytest.mark.parametrize("name", ["tls_cert_file", "tls_key_file", "tls_client_ca_file"])
def test_files_that_cannot_be_used_are_named(tmp_path: Path, name: str) -> None:
    """A missing, empty or invalid file is TLS_UNUSABLE with the name of the setting, without the file's content."""
    names = written(tmp_path)
    path = Path(names[name])
    for content in (None, b"", b"hunter2"):
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(Precondition) as refused:
            read_certificates(AccessSettings(**names))
        assert refused.value.reason == "TLS_UNUSABLE"
        assert name in refused.value.message
        assert "hunter2" not in refused.value.message


def test_a_key_of_another_certificate_or_with_a_passphrase_is_refused(tmp_path: Path) -> None:
    """Such a key is TLS_UNUSABLE, without a prompt for a passphrase."""
    from cryptography.hazmat.primitives import serialization

    names = written(tmp_path)
    own = serialization.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    locked = own.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (tmp_path / "other").mkdir()
    other = Path(written(tmp_path / "other")["tls_key_file"]).read_bytes()
    for content in (locked, other):
        (tmp_path / "key.pem").write_bytes(content)
        with pytest.raises(Precondition) as refused:
            read_certificates(AccessSettings(**names))
        assert refused.value.reason == "TLS_UNUSABLE"


def test_half_of_tls_is_a_bad_setting(tmp_path: Path) -> None:
    """A certificate without its key, a key without its certificate, and an authority alone are refused at a start."""
    names = written(tmp_path)
    for kept in names:
        with pytest.raises(ValidationError, match="tls_"):
            load_settings({"access": {kept: names[kept]}})
