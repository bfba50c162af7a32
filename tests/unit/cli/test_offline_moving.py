"""Agents put into a data directory at rest: what was there is told of as by a daemon."""

from __future__ import annotations

import io
from pathlib import Path

from ebbtide.cli.files.moving import AtRest
from ebbtide.cli.offline import OfflineClient
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.audit.erased_agents import LOG
from ebbtide.store.chain import AuditEntry
from tests.support.in_process import settings_for
from tests.support.moving import directory, sent


def test_who_is_replaced_offline_is_told_of(tmp_path: Path) -> None:
    """In both logs, with the end of the log that is gone; and a log of replaced agents that was cut is broken."""
    settings = settings_for(tmp_path)
    with directory(tmp_path) as data:
        store = data.create_store(Identity("ann", 1, 7, layout.FORMAT_VERSION))
        lines = sent(data, store, "export")
        kept = store.write(lambda txn: txn.audit.append(AuditEntry(5, "-", "deleted", {}), "ann"))
        store.close()
        place, resting = AtRest(data, settings), OfflineClient(data, settings)
        for number in (1, 2):
            done = place.put("ann", io.BytesIO(lines), replace=True, rename=False, moved=lambda _: None)
            assert done["replaced"]
            [fresh] = resting.audit("ann")
            assert (fresh["action"], fresh["actor"], fresh["details"]["form"]) == ("restored", "-", "export")
            assert fresh["details"]["replaced_records"] == 1 and fresh["at"] > 0
            told = resting.erased_agents()
            assert [one["action"] for one in told] == ["replaced"] * number
        assert told[0]["details"]["last_record"] == kept.hash.hex()
        assert resting.verify_audit("ann", [])["intact"] and resting.verify_erased([])["intact"]
        (tmp_path / "audit" / LOG).unlink()
        found = resting.verify_erased([])
        assert (found["intact"], found["broken_record"]) == (False, 1) and found["problem"]
