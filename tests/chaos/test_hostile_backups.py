"""Hostile backups are refused by a running daemon over both transports, and offline, while others are served."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import grpc
import pytest
import zstandard
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from ebbtide.v1 import memory_service_pb2_grpc as services
from ebbtide.v1 import moving_pb2
from tests.support import hostile_backup as hostile
from tests.support.forks import run_command
from tests.support.hostile_backup import FORGED_FILES, backup_of, forged_archives, forged_frames
from tests.support.onlooker import IS_LONG, looking_on, transfer_bytes
from tests.support.process import Daemon, running_daemon
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

MIB = 1 << 20
REFUSED = {"BACKUP_UNREADABLE", "STORE_FULL", "REQUEST_TIMED_OUT"}
PLAIN = {"EMBEDDING__MODEL": "off"}
LARGE = 512 * MIB if IS_LONG else 24 * MIB
"""The unpacked size of bombs whose headers are valid."""


@cache
def bombs() -> dict[str, bytes]:
    """Return the most expensive kinds, a few in the short form."""
    # Noise of one kind: 200 times smaller packed, which is just about allowed.
    block = os.urandom(2600) + bytes(MIB - 2600)
    packer = zstandard.ZstdCompressor(level=1).compressobj(size=LARGE)
    packed = b"".join(packer.compress(os.urandom(5000) + block[5000:]) for _ in range(LARGE // MIB))
    made = {
        "large and no store": backup_of(b"", LARGE, packed + packer.flush()),
        "a text that unpacks to a gigabyte": backup_of(hostile.inflated_text()),
        "branches with one child many times": backup_of(hostile.thicket()),
    }
    if IS_LONG:
        made |= {name: backup_of(make()) for name, make in FORGED_FILES.items()}
        frames = {name: make() for name, make in forged_frames().items()}
        made |= {name: backup_of(b"", size, packed) for name, (packed, size) in frames.items()}
        made |= {name: make() for name, make in forged_archives().items()}
    return made


def over_rest(daemon: Daemon, content: bytes) -> str:
    """Return the reason of a refused restore over REST."""
    kind = {"content-type": "application/octet-stream"}
    answer = daemon.client.post("/v1/agents/ann/restore", content=content, headers=kind)
    assert answer.status_code >= 400, answer.text
    reason: str = answer.json()["error"]["reason"]
    return reason


def over_grpc(daemon: Daemon, content: bytes) -> str:
    """Return the reason of a refused restore over gRPC."""

    def messages() -> Iterator[moving_pb2.RestoreAgentRequest]:
        yield moving_pb2.RestoreAgentRequest(agent_id="ann")
        for begin in range(0, len(content), MIB):
            yield moving_pb2.RestoreAgentRequest(chunk=content[begin : begin + MIB])

    with grpc.insecure_channel(daemon.grpc_target) as channel:
        try:
            services.MemoryServiceStub(channel).RestoreAgent(messages(), timeout=60)
        except grpc.RpcError as error:
            status = rpc_status.from_call(error)  # type: ignore[arg-type]
            info = error_details_pb2.ErrorInfo()
            assert status is not None and any(detail.Unpack(info) for detail in status.details)
            return info.reason
    raise AssertionError("it was taken")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("restore", [over_rest, over_grpc])
def test_bombs_in_backups_trouble_no_other_agent(
    tmp_path: Path, restore: Callable[[Daemon, bytes], str]
) -> None:
    """Each is refused, others recall in time, memory and disk stay bounded, no file is left, and the daemon stops."""
    with running_daemon(tmp_path / "data", PLAIN) as daemon:
        with looking_on(daemon) as seen:
            before = seen.peak_bytes
            for name, content in bombs().items():
                seen.under_way = name
                assert restore(daemon, content) in REFUSED, name
            assert seen.peak_bytes - before < 200 * MIB
            # The received bytes, unpacked, and their copy.
            assert seen.most_disk_bytes < 2.5 * LARGE
        wait_until(lambda: transfer_bytes(daemon.data_dir) == 0)
        assert daemon.get("ann").status_code == 404
        assert daemon.stop() == 0


def test_the_command_line_refuses_bombs_with_a_sentence(tmp_path: Path) -> None:
    """Offline each is one sentence and an exit code; no file is left, and the next files are restored."""
    kinds = {name: FORGED_FILES[name]() for name in ("branches with one child many times", "2^50 pages")}
    bad = []
    for number, content in enumerate(kinds.values()):
        bad.append(tmp_path / f"bad{number}.ebb")
        bad[-1].write_bytes(backup_of(content))
    good = tmp_path / "good.ebb"
    good.write_bytes(backup_of(hostile.sound_file(node_count=0)))
    data_dir = tmp_path / "data"
    done = run_command("restore", *map(str, [*bad, good]), "--data-dir", str(data_dir), env=os.environ)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    told = " ".join(done.stderr.split())
    assert told.count("[BACKUP_UNREADABLE]") == 2 and "2 of the files could not be restored" in told
    assert "ann: " in done.stdout
    assert transfer_bytes(data_dir) == 0
