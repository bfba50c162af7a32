"""Agents restored into a data directory offline: the logs record what was replaced, as with a daemon."""

from __future__ import annotations

import io
from pathlib import Path

from ebbtide.cli.offline import OfflineClient
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.audit.erased_agents import LOG
from ebbtide.store.chain import AuditEntry
from tests.support.in_process import settings_for
from tests.support.moving import directory, sent


def test_a_replacement_offline_is_recorded(tmp_path: Path) -> None:
    """Both logs have a record with the end of the deleted log. A truncated log of deleted agents is broken."""
    settings = settings_for(tmp_path)
    with directory(tmp_path) as data:
        store = data.create_store(Identity("ann", 1, 7, layout.FORMAT_VERSION))
        lines = sent(data, store, "export")
        kept = store.write(lambda txn: txn.audit.append(AuditEntry(5, "-", "deleted", {}), "ann"))
        store.close()
        client = OfflineClient(data, settings)
        for number in (1, 2):
            done = client.upload(
                "ann", io.BytesIO(lines), replace=True, rename=False, progress=lambda _: None
            )
            assert done["replaced"]
            [fresh] = client.list_audit_records("ann")
            assert (fresh["action"], fresh["actor"], fresh["details"]["form"]) == ("restored", "-", "export")
            assert fresh["details"]["replaced_records"] == 1 and fresh["at"] > 0
            told = client.list_erased_agents()
            assert [one["action"] for one in told] == ["replaced"] * number
        assert told[0]["details"]["last_record"] == kept.hash.hex()
        assert client.verify_audit("ann", [])["intact"] and client.verify_erased_agents([])["intact"]
        (tmp_path / "audit" / LOG).unlink()
        found = client.verify_erased_agents([])
        assert (found["intact"], found["broken_record"]) == (False, 1) and found["problem"]
