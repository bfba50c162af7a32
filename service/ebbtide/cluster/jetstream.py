"""The log servers: NATS JetStream. The only module that imports `nats`.

One connection on a thread of its own. Every other thread calls blocking functions. The documents and the logs are in
streams with file storage; a stream is read at its leader, but for the records of a replay, which any server may return:
such a read may be stale, and the hash chain and the append after it show that.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from ebbtide.cluster.log import NoAnswer, Record, Refused
from ebbtide.cluster.names import Names, settings_subject, state_stream
from ebbtide.errors import Precondition, Unavailable
from ebbtide.store.codec import make_known
from ebbtide.telemetry import get_log

T = TypeVar("T")

EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
WRONG_LAST_SEQUENCE: Final = 10071
NO_MESSAGE: Final = 10037
STREAM_NOT_FOUND: Final = 10059
SEQUENCE_NOT_FOUND: Final = 10043
UNAVAILABLE: Final = 503
"""The code of an error of servers that have not elected a leader yet."""

REQUEST_S: Final = 2.0
"""Time-out of one request; the callers repeat what had no answer."""

PING_S: Final = 1
LOST_PINGS: Final = 3
"""After this many pings without an answer the connection is replaced: before the lease of a node lapses."""

CONNECT_S: Final = 15.0
"""How long a start waits for the log servers."""

MAX_READ_BYTES: Final = 8 << 20
"""Most bytes of one read of records."""

DIRECT_READS: Final = 6
"""Servers that are queried whether the leader has the last record of an agent. Each is chosen by chance."""

DIRECT_READ_S: Final = 1.0
"""How long these answers are waited for: a paused server is not needed."""

CONFIRMED_AFTER_S: Final = (0.0, 0.1, 0.5)
"""Pauses between reads of a document that only other servers than the leader have: they may lag for a moment."""

LEADER_S: Final = 10.0
"""How long the election of a leader is waited for."""

RECORDS_PER_ERASURE: Final = 64
"""Records that are erased at a time."""

MAX_LAG: Final = 1000
"""Records that a current copy may lack: those that are being copied."""

OLDEST_SERVER: Final = (2, 15, 0)
"""Older servers sync each message alone, and lose records when servers join or leave."""


class Created(msgspec.Struct, frozen=True):
    """The numbers that were fixed when a cluster was created."""

    slot_count: int
    log_streams: int
    format: int = 1


class Copies(NamedTuple):
    """The copies of one stream."""

    configured: int
    """How many there should be."""
    current: int
    """How many have nearly every record."""
    missing: tuple[str, ...]
    """The servers of the others."""

    @property
    def is_complete(self) -> bool:
        """Whether every copy is current."""
        return self.current >= self.configured


_Packed = tuple[str, bytes, str, str, bytes]
make_known(Created, _Packed)


class Servers:
    """One connection to the log servers. Every call blocks and is safe on every thread."""

    def __init__(
        self, addresses: Sequence[str], *, credentials_file: str = "", tls_ca_file: str = ""
    ) -> None:
        self._addresses = list(addresses)
        self._credentials_file = credentials_file
        self._tls_ca_file = tls_ca_file
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="log servers", daemon=True)
        self._thread.start()
        self._client = Client()
        self._names = Names("", 1, 1)
        self._avoided: set[str] = set()
        """Servers that led and lacked a document."""

    # --- connection --------------------------------------------------------------------------------

    def connect(self, timeout_s: float = CONNECT_S) -> None:
        """Connect. Raise NOT_ENOUGH_LOG_SERVERS without a server, and CLUSTER_UNUSABLE for an older one."""
        options: dict[str, Any] = {}
        if self._credentials_file:
            options["user_credentials"] = self._credentials_file
        if self._tls_ca_file:
            options["tls"] = ssl.create_default_context(cafile=self._tls_ca_file)

        async def on_error(error: Exception) -> None:
            get_log("cluster").debug("log server", error=str(error))

        async def connect() -> None:
            await self._client.connect(
                self._addresses,
                allow_reconnect=True,
                max_reconnect_attempts=-1,
                reconnect_time_wait=1,
                connect_timeout=2,
                ping_interval=PING_S,
                max_outstanding_pings=LOST_PINGS,
                error_cb=on_error,
                **options,
            )

        try:
            self._run(asyncio.wait_for(connect(), timeout_s), timeout_s + 1)
        except (OSError, TimeoutError, ValueError, NoAnswer, nats.errors.Error) as error:
            raise Unavailable(
                f"No log server answers at {', '.join(self._addresses)}. An address looks like nats://host:4222.",
                reason="NOT_ENOUGH_LOG_SERVERS",
                retry_after_s=5.0,
            ) from error
        version = self._client.connected_server_version
        if (version.major, version.minor, version.patch) < OLDEST_SERVER:
            raise Precondition(
                f"The log server has version {version}; 2.15.0 or later is required.",
                reason="CLUSTER_UNUSABLE",
            )

    def close(self) -> None:
        """Close the connection and end its thread. Idempotent."""
        if self._loop.is_closed():
            return
        with contextlib.suppress(Exception):
            self._run(asyncio.wait_for(self._client.close(), REQUEST_S), REQUEST_S + 1)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def on_change(self, cluster: str, notify: Callable[[], None]) -> None:
        """Call `notify`, on the thread of the connection, when a lease or the table of slots may have changed."""

        async def changed(_: Msg) -> None:
            notify()

        for subject in (f"{cluster}.state.slots", f"{cluster}.state.node.>"):
            self._run(self._client.subscribe(subject, cb=changed), REQUEST_S)

    # --- creating ----------------------------------------------------------------------------------

    def create(self, cluster: str, *, slot_count: int, log_streams: int, replicas: int) -> list[str]:
        """Create the streams of a cluster. Return their names. Repeatable until it has succeeded.

        Raise CLUSTER_UNUSABLE if the cluster exists. May raise NoAnswer.
        """
        if self.created(cluster) is not None:
            raise Precondition(f"The cluster {cluster} exists already.", reason="CLUSTER_UNUSABLE")
        names = Names(cluster, slot_count, log_streams)
        common = {"retention": "limits", "storage": "file", "num_replicas": replicas, "allow_direct": True}
        logs = [
            {
                **common,
                "name": names.log_stream(number),
                "subjects": [f"{names.log_prefix(number)}.>"],
                "discard": "new",
                "duplicate_window": 0,
                "max_msg_size": 1 << 20,
            }
            for number in range(log_streams)
        ]
        state = {
            **common,
            "name": state_stream(cluster),
            "subjects": [f"{cluster}.state.>"],
            "max_msgs_per_subject": 1,
            "duplicate_window": 0,
        }
        for config in (*logs, state):
            reply = self._api(f"STREAM.CREATE.{config['name']}", config, timeout_s=30.0)
            if reply.get("error", {}).get("code") == UNAVAILABLE:
                raise NoAnswer(reply["error"].get("description", ""))
            if "error" in reply:
                raise Precondition(
                    f"The log servers refuse the stream {config['name']}: {reply['error'].get('description')}.",
                    reason="CLUSTER_UNUSABLE",
                )
        self._publish(settings_subject(cluster), msgspec.msgpack.encode(Created(slot_count, log_streams)), 0)
        return [str(config["name"]) for config in (*logs, state)]

    def created(self, cluster: str) -> Created | None:
        """Return the numbers that were fixed when a cluster was created; None if it does not exist."""
        found = self._message(state_stream(cluster), {"last_by_subj": settings_subject(cluster)})
        return None if found is None else msgspec.msgpack.decode(found[0], type=Created)

    def use(self, names: Names) -> None:
        """Use the streams of a cluster from now on."""
        self._names = names

    def copies(self) -> Copies:
        """Return the copies of the stream that has the fewest, as its leader sees them. May raise NoAnswer."""
        names = self._names
        streams = [names.log_stream(number) for number in range(names.log_streams)]
        return min(map(self._copies, (*streams, state_stream(names.cluster))), key=lambda one: one.current)

    def _copies(self, stream: str) -> Copies:
        reply = self._api(f"STREAM.INFO.{stream}", {})
        if "error" in reply:
            raise NoAnswer(reply["error"].get("description", ""))
        others = (reply.get("cluster") or {}).get("replicas") or []
        # A server that its leader has not heard of for ten seconds is not current.
        missing = [one["name"] for one in others if not one.get("current") or one.get("lag", 0) > MAX_LAG]
        configured = int(reply["config"]["num_replicas"])
        return Copies(configured, min(configured, 1 + len(others) - len(missing)), tuple(sorted(missing)))

    # --- documents ---------------------------------------------------------------------------------

    def read(self, subject: str) -> tuple[bytes, int] | None:
        """Return a document and its sequence. Let another server lead if the leader lacks what another one has."""
        stream = self._names.stream_of(subject)
        for pause_s in CONFIRMED_AFTER_S:
            time.sleep(pause_s)
            found = self._message(stream, {"last_by_subj": subject})
            if found is not None or not any(self._run(self._ends(stream, subject), DIRECT_READ_S + 1)):
                return found
        # It was neither written nor deleted a moment ago: the disk of the leader is damaged.
        self._avoided.add(self.leader(subject))
        if not self.lead_by_another(subject, self._avoided):
            return None
        get_log("cluster").error(
            "a log server lacks documents that another one has", server=sorted(self._avoided)
        )
        raise NoAnswer(f"the server that led {stream} lacks {subject}")

    def write(self, subject: str, data: bytes, expected: int) -> int:
        """Replace a document that has the sequence `expected`. Return the new sequence."""
        return self._publish(subject, data, expected)

    def age_s(self, subject: str) -> float:
        """Return how long ago a document was written, by the clocks of its server and of this machine; for people."""
        stream = self._names.stream_of(subject)
        reply = self._api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
        written = reply.get("message", {}).get("time", "")[:19]
        if not written:
            return 0.0
        return time.time() - datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()

    def erase(self, subject: str, sequence: int) -> None:
        """Overwrite and delete a document that has a sequence, if it is still there."""
        self._run(self._erase(self._names.stream_of(subject), [sequence]), REQUEST_S + 1)

    def subjects(self, prefix: str) -> list[str]:
        """Return the subjects of a stream that begin with `prefix` and a dot."""
        return sorted(self.counts(prefix))

    def counts(self, prefix: str) -> dict[str, int]:
        """Return how many messages each subject has that begins with `prefix` and a dot. May raise NoAnswer."""
        stream, found, offset = self._names.stream_of(f"{prefix}.x"), dict[str, int](), 0
        while True:
            reply = self._api(f"STREAM.INFO.{stream}", {"subjects_filter": f"{prefix}.>", "offset": offset})
            if "error" in reply:
                raise NoAnswer(reply["error"].get("description", ""))
            page = reply["state"].get("subjects") or {}
            found.update(page)
            offset += len(page)
            if not page or offset >= reply.get("total", 0):
                return found

    # --- records -----------------------------------------------------------------------------------

    def append(self, subject: str, record: Record, expected: int) -> int:
        """Append a record. Return its sequence."""
        packed: _Packed = (record.kind, record.hash, record.author, record.agent_id, record.body)
        return self._publish(subject, msgspec.msgpack.encode(packed), expected)

    def at(self, subject: str, sequence: int) -> Record | None:
        """Return the record of an agent at a sequence."""
        found = self._message(self._names.stream_of(subject), {"seq": sequence}, subject)
        return None if found is None else _record(*found)

    def last(self, subject: str) -> Record | None:
        """Return the last record of an agent."""
        found = self._message(self._names.stream_of(subject), {"last_by_subj": subject})
        return None if found is None else _record(*found)

    def after(self, subject: str, sequence: int, most: int) -> list[Record]:
        """Return the next records of an agent after a sequence."""
        stream = self._names.stream_of(subject)
        if most == 1:
            found = self._message(stream, {"seq": sequence + 1, "next_by_subj": subject})
            return [] if found is None else [_record(*found)]
        query = {"seq": sequence + 1, "next_by_subj": subject, "batch": most, "max_bytes": MAX_READ_BYTES}
        return [_record(*found) for found in self._run(self._batch(stream, query), 10 * REQUEST_S)]

    def count(self, subject: str) -> int:
        """Return how many records an agent has."""
        reply = self._api(f"STREAM.INFO.{self._names.stream_of(subject)}", {"subjects_filter": subject})
        if "error" in reply:
            raise NoAnswer(reply["error"].get("description", ""))
        return int((reply["state"].get("subjects") or {}).get(subject, 0))

    def erase_before(self, subject: str, sequence: int) -> bool:
        """Overwrite and delete some records of an agent before a sequence. Return whether none is left."""
        records = self.after(subject, 0, RECORDS_PER_ERASURE)
        erased = [record.sequence for record in records if record.sequence < sequence]
        if erased:
            self._run(self._erase(self._names.stream_of(subject), erased), len(erased) * REQUEST_S)
            return False
        # Any server answered so far, also one that lacks records.
        first = self.after(subject, 0, 1)
        return not first or first[0].sequence >= sequence

    # --- leaders -----------------------------------------------------------------------------------

    def ends(self, subject: str) -> tuple[int, int]:
        """Return the sequence of the last record of an agent at the leader, and the newest one of several servers."""
        found = self.last(subject)
        at_leader = 0 if found is None else found.sequence
        ends = self._run(self._ends(self._names.stream_of(subject), subject), DIRECT_READ_S + 1)
        return at_leader, max(at_leader, *ends, 0)

    async def _ends(self, stream: str, subject: str) -> list[int]:
        """Return the sequence of the last record of an agent at some servers, which may lag."""
        query = json.dumps({"last_by_subj": subject}).encode()

        async def end() -> int:
            reply = await self._client.request(f"$JS.API.DIRECT.GET.{stream}", query, timeout=DIRECT_READ_S)
            return int((reply.headers or {}).get("Nats-Sequence", 0))

        ends = await asyncio.gather(*(end() for _ in range(DIRECT_READS)), return_exceptions=True)
        return [one for one in ends if isinstance(one, int)]

    def leader(self, subject: str) -> str:
        """Return the name of the server that leads the stream of a subject."""
        return self._leading(self._names.stream_of(subject))[0]

    def lead_by_another(self, subject: str, avoided: Collection[str]) -> str:
        """Let a current server lead that is not avoided. Return the new leader; empty: there is no such server."""
        stream = self._names.stream_of(subject)
        leader, others = self._leading(stream)
        others = [name for name in others if name not in avoided]
        if leader not in avoided or not others:
            return "" if leader in avoided else leader
        reply = self._api(f"STREAM.LEADER.STEPDOWN.{stream}", {"placement": {"preferred": others[0]}})
        if "error" in reply:
            raise NoAnswer(reply["error"].get("description", ""))
        deadline_s = time.monotonic() + LEADER_S
        while time.monotonic() < deadline_s:
            with contextlib.suppress(NoAnswer):
                leader, _ = self._leading(stream)
                if leader not in avoided:
                    return leader
            time.sleep(0.1)
        raise NoAnswer(f"{leader} leads {stream} again")

    def _leading(self, stream: str) -> tuple[str, list[str]]:
        """Return the leader of a stream and its other servers that are current."""
        reply = self._api(f"STREAM.INFO.{stream}", {})
        cluster = reply.get("cluster") or {}
        if not cluster.get("leader"):
            raise NoAnswer(f"{stream} has no leader")
        others = [one["name"] for one in cluster.get("replicas") or [] if one.get("current")]
        return cluster["leader"], others

    # --- erasing -----------------------------------------------------------------------------------

    async def _erase(self, stream: str, sequences: Sequence[int]) -> None:
        """Overwrite and delete records. One that is missing already is no error."""

        async def erase(sequence: int) -> None:
            query = json.dumps({"seq": sequence, "no_erase": False}).encode()
            message = await self._client.request(
                f"$JS.API.STREAM.MSG.DELETE.{stream}", query, timeout=REQUEST_S
            )
            reply = json.loads(message.data)
            if (
                "error" in reply
                and reply["error"].get("code") != 404
                and "no message" not in str(reply["error"])
            ):
                raise NoAnswer(reply["error"].get("description", ""))

        await asyncio.gather(*map(erase, sequences))

    async def _batch(self, stream: str, query: dict[str, Any]) -> list[tuple[bytes, int]]:
        """Return messages of a stream, from any of its servers."""
        inbox, found = self._client.new_inbox(), list[tuple[bytes, int]]()
        subscription = await self._client.subscribe(inbox)
        try:
            await self._client.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(query).encode(), inbox)
            while True:
                message = await subscription.next_msg(timeout=REQUEST_S)
                headers = message.headers or {}
                if "Status" in headers:
                    if headers["Status"] not in ("204", "404"):
                        raise NoAnswer
                    return found
                found.append((message.data, int(headers["Nats-Sequence"])))
        finally:
            await subscription.unsubscribe()

    # --- requests ----------------------------------------------------------------------------------

    def _publish(self, subject: str, data: bytes, expected: int) -> int:
        reply = self._request(subject, data, {EXPECTED: str(expected)})
        if "error" in reply:
            if reply["error"].get("err_code") == WRONG_LAST_SEQUENCE:
                raise Refused
            raise NoAnswer(reply["error"].get("description", ""))
        return int(reply["seq"])

    def _message(self, stream: str, query: dict[str, Any], subject: str = "") -> tuple[bytes, int] | None:
        """Return one message as its leader has it; None if there is none, or it has another subject."""
        reply = self._api(f"STREAM.MSG.GET.{stream}", query)
        if "error" in reply:
            if reply["error"].get("err_code") in (NO_MESSAGE, STREAM_NOT_FOUND):
                return None
            raise NoAnswer(reply["error"].get("description", ""))
        message = reply["message"]
        if subject and message["subject"] != subject:
            return None
        return base64.b64decode(message.get("data") or ""), int(message["seq"])

    def _api(self, name: str, query: dict[str, Any], timeout_s: float = REQUEST_S) -> dict[str, Any]:
        return self._request(f"$JS.API.{name}", json.dumps(query).encode(), None, timeout_s)

    def _request(
        self, subject: str, data: bytes, headers: dict[str, str] | None, timeout_s: float = REQUEST_S
    ) -> dict[str, Any]:
        """Return the response of the servers. Raise NoAnswer."""
        request = self._client.request(subject, data, timeout=timeout_s, headers=headers)
        reply: dict[str, Any] = json.loads(self._run(request, timeout_s + 1).data)
        return reply

    def _run(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except (TimeoutError, nats.errors.Error, ConnectionError) as error:
            future.cancel()
            raise NoAnswer(str(error)) from error


def _record(data: bytes, sequence: int) -> Record:
    kind, digest, author, agent_id, body = msgspec.msgpack.decode(data, type=_Packed)
    return Record(kind, digest, author, agent_id, body, sequence)
