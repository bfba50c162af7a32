"""The daemon: its parts and its life cycle.

It opens its parts in this order, because each needs the one before: lock of the data directory (two daemons never share
one) → thread pools → language model → fleet (resumes unfinished work) → servers.

It closes them in reverse order:

1. Readiness becomes `unavailable`, so that clients send no more requests.
2. The servers complete the requests in flight, whose agents are still open.
3. The fleet closes: each agent finishes its current job and closes its store.
4. The model and the thread pools close. Waiting batches stay in the inboxes.
5. The lock is released, when nothing uses the data directory any more.

If a step fails, the error is logged and the next step runs. Signals are handled in `process/`, not by the servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from ebbtide import __version__
from ebbtide.access.authentication import Authentication
from ebbtide.access.key_file import KeyFile
from ebbtide.access.keyring import Keyring
from ebbtide.access.renewal import Renewal
from ebbtide.access.shared_rates import SharedLimits
from ebbtide.clock import Clock, SystemClock
from ebbtide.errors import Precondition
from ebbtide.fleet.runtime.fleet import Fleet
from ebbtide.fleet.runtime.shared import DigestPolicy, SharedResources
from ebbtide.forwarding.peers import Peers
from ebbtide.heap import configure_heap
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.embedders import make_embedder
from ebbtide.language.embedding import Embedder
from ebbtide.language.port import LanguageModel
from ebbtide.language.served.limiter import PriorityLimiter
from ebbtide.language.served.retry import ModelClient, RetryPolicy
from ebbtide.metrics import Metrics
from ebbtide.offload.pool import TextWorkers
from ebbtide.priority import RequestPriority
from ebbtide.process.supervision import Supervision
from ebbtide.process.watchdog import BEAT_S
from ebbtide.rest import view_files
from ebbtide.rest.server import RestServer
from ebbtide.rpc.server import GrpcServer
from ebbtide.settings import Settings
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.keys import is_open_to_all, master_key_of
from ebbtide.telemetry import get_log, in_background
from ebbtide.tracing import start_tracing, stop_tracing
from ebbtide.verbs.merging import answer_others, directories_elsewhere
from ebbtide.verbs.service import Service
from ebbtide.verbs.transfers import Transfers

if TYPE_CHECKING:
    from ebbtide.cluster.node import ClusterNode

LANGUAGE_THREADS = 2
"""Threads for the built-in model. More would only wait for the interpreter lock."""

EMBEDDING_THREADS = 2
"""One for background embedding and one for queries, which must not wait behind it."""

SWITCH_INTERVAL_S = 0.0001
"""How soon a busy thread yields. With Python's default of 5 ms, a short read takes 20 ms while a thread is busy."""

DESCRIPTORS_PER_AGENT = 4
DESCRIPTORS_KEPT = 64
CONNECTIONS_SHARE = 8
"""File descriptors for each open agent, and for logs and listings. Each port may use an eighth for connections."""

MAX_DESCRIPTORS = 1 << 20
"""The assumed limit of file descriptors if there is none."""

DEFAULT_MAX_OPEN = 1000

CLUSTER_JOB_THREADS = 32
"""Least job threads of a node of a cluster: each waits while the log servers sync a record."""

DEFERRED_MODULES = (
    "ebbtide.language.builtin.segmentation",
    "ebbtide.language.builtin.model",
    "ebbtide.fleet.recall.recollection",
)
"""Modules that the first batch or the first query needs. The daemon imports them after it has started to listen."""

ModelMaker = Callable[[Settings, BuiltinModel], LanguageModel]


def make_model(settings: Settings, builtin: BuiltinModel) -> LanguageModel:
    """Return the configured language model. `builtin` is the built-in one."""
    language = settings.language
    if language.model == "builtin":
        return builtin
    # Imported here, so that only daemons with a model server load an HTTP client.
    from ebbtide.language.served.server import server_model

    return server_model(language, builtin.texts)


def refuse_insecure_bind(settings: Settings) -> None:
    """Raise INSECURE_BIND if other machines can reach the daemon without authentication, unless this is allowed."""
    host = settings.server.host
    if settings.server.allow_insecure or settings.access.authentication != "off":
        return
    if not is_loopback(host):
        raise Precondition(
            f"listening on {host} without authentication would let anyone in the network read and erase "
            "every memory; listen on 127.0.0.1, set access.authentication to keys, or set "
            "server.allow_insecure",
            reason="INSECURE_BIND",
        )


def admitted_bind(settings: Settings) -> Renewal | None:
    """Check the address and return the certificates, or None without TLS. Raise INSECURE_BIND, TLS_UNUSABLE."""
    refuse_insecure_bind(settings)
    renewal = Renewal(settings.access) if settings.access.tls_cert_file else None
    if renewal is None and settings.access.authentication != "off" and not is_loopback(settings.server.host):
        get_log("access").warning(
            "API keys travel unencrypted: set access.tls_cert_file, or put TLS in front"
        )
    return renewal


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _descriptor_limit() -> int:
    """Raise the limit of file descriptors as far as possible, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def connection_limit(configured: int) -> int:
    """Return the connection limit of each port: the configured one, or its share of the descriptors if that is less."""
    return max(1, min(configured, _descriptor_limit() // CONNECTIONS_SHARE))


def open_agent_limit(configured: int, connections: int) -> int:
    """Return the limit of open agents: the configured one, or the number that the remaining descriptors allow."""
    if configured:
        return configured
    limit = _descriptor_limit()
    kept = min(DESCRIPTORS_KEPT, limit // 4) + 2 * connections
    return max(1, min(DEFAULT_MAX_OPEN, (limit - kept) // DESCRIPTORS_PER_AGENT))


@dataclass(frozen=True, slots=True)
class Share:
    """The resources that a worker shares with the other workers of its daemon."""

    data: DataDirectory
    limits: SharedLimits
    peers: Peers


def locked_directory(settings: Settings) -> DataDirectory:
    """Return the data directory, locked.

    Raise CLUSTER_UNUSABLE for the files of another cluster, or of one without the settings of a cluster, and
    DATA_DIRECTORY_LOCKED, MASTER_KEY_REFUSED, STORE_UNAVAILABLE.
    """
    is_node = bool(settings.cluster.servers)
    if is_node and settings.server.workers > 1:
        raise Precondition(
            "A node of a cluster has one worker. Set server.workers to 1.", reason="CLUSTER_UNUSABLE"
        )
    data = DataDirectory(
        settings.store.data_dir,
        initial_map_bytes=settings.store.initial_map_bytes,
        max_map_bytes=settings.store.max_map_bytes,
        master_key=master_key_of(settings.encryption),
    )
    data.acquire()
    try:
        data.refuse_other_cluster(settings.cluster.name if is_node else "")
        if not is_node:
            # A node asks its cluster first: the master key may have been rotated.
            data.keys.admit()
    except BaseException:
        data.release()
        raise
    _warn_of_open_key(settings)
    return data


@contextlib.asynccontextmanager
async def opened(
    settings: Settings,
    *,
    clock: Clock | None = None,
    make: ModelMaker = make_model,
    on_beat: Callable[[float], None] | None = None,
    worker: Share | None = None,
    cluster: ClusterNode | None = None,
) -> AsyncIterator[Service]:
    """Open the daemon without servers, and yield the service that the verbs use.

    `on_beat` gets each measured lag of the event loop. `worker` is for a worker, whose parent has locked the data
    directory; `cluster` for a node of a cluster.
    """
    clock = clock or SystemClock()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    configure_heap()
    # On busy cores, BLAS threads wait for each other, and a product takes 15 times as long.
    threadpool_limits(1, user_api="blas")
    async with contextlib.AsyncExitStack() as life:
        tracing = start_tracing(settings.telemetry)
        if tracing is not None:
            life.callback(_careful("tracing", partial(stop_tracing, tracing)))
        data = locked_directory(settings) if worker is None else worker.data
        life.callback(_careful("lock", data.release))
        if cluster is not None:
            await _open_node(life, cluster, data)
        job_pool = _pool(life, _job_threads(settings), "job")
        query_pool = _pool(life, 1, "query")
        recall_pool = _pool(life, 1, "recall")
        background_pool = _pool(life, settings.fleet.job_threads, "background")
        language_pool = _pool(life, LANGUAGE_THREADS, "language")
        embedding_pool = _pool(life, EMBEDDING_THREADS, "embedding")
        offload_pool = _pool(life, 1, "offload")
        texts = TextWorkers(settings.limits.text_timeout_ms / 1000)
        life.callback(_careful("text workers", texts.close))
        priority = RequestPriority()
        transfers = Transfers(settings.limits.transfer_timeout_s, priority.yield_to_requests)
        life.callback(_careful("transfers", transfers.shutdown))
        builtin = BuiltinModel(language_pool, priority.yield_to_requests, texts)
        model = make(settings, builtin)
        life.push_async_callback(model.close)
        embedder = make_embedder(
            settings.embedding, settings.language, embedding_pool, priority.yield_to_requests
        )
        if embedder is not None:
            life.push_async_callback(embedder.close)
        metrics = Metrics(None if cluster is None else cluster.metrics)
        limiter = PriorityLimiter(settings.language.model_concurrency)
        model_client = ModelClient(model, limiter, _retry_policy(settings), metrics=metrics)
        pools = (job_pool, query_pool, recall_pool, background_pool)
        shared = _shared_resources(settings, pools, data, model_client, builtin, clock, priority, embedder)
        fleet = _fleet(settings, shared)
        fleet.start()
        life.push_async_callback(fleet.stop)
        watching_loop = in_background(_watch_loop(metrics, on_beat))
        life.push_async_callback(_end, watching_loop)
        limits = None if worker is None else worker.limits
        authentication = await life.enter_async_context(_authentication(settings, clock, fleet, limits))
        life.push_async_callback(transfers.finish)
        service = Service(
            fleet, model_client, settings, clock, offload_pool, authentication, transfers, metrics, texts
        )
        service.peers = None if worker is None else worker.peers
        try:
            yield service
        finally:
            service.is_accepting = False
            for stop in service.at_stop:
                await stop()


def _job_threads(settings: Settings) -> int:
    """Return the number of job threads: in a cluster more, since each waits for its appends."""
    return max(settings.fleet.job_threads, CLUSTER_JOB_THREADS if settings.cluster.servers else 0)


def _fleet(settings: Settings, shared: SharedResources) -> Fleet:
    """Return the fleet with the limits of the settings."""
    return Fleet(
        shared,
        settings.memory,
        max_open=open_agent_limit(
            settings.fleet.max_open_agents, connection_limit(settings.server.max_connections)
        ),
        max_resident_bytes=settings.fleet.max_resident_bytes,
        compression_concurrency=settings.fleet.compression_concurrency,
        max_event_streams=settings.limits.max_event_streams,
    )


def _pool(life: contextlib.AsyncExitStack, thread_count: int, name: str) -> ThreadPoolExecutor:
    """Return a thread pool that ends with the daemon."""
    pool = ThreadPoolExecutor(thread_count, name)
    life.callback(_careful(f"{name} threads", pool.shutdown))
    return pool


def _warn_of_open_key(settings: Settings) -> None:
    file = settings.encryption.master_key_file
    if file and is_open_to_all(Path(file)):
        get_log("store").warning("every user of this machine may read the file of the master key", file=file)


@contextlib.asynccontextmanager
async def _authentication(
    settings: Settings, clock: Clock, fleet: Fleet, limits: SharedLimits | None
) -> AsyncIterator[Authentication]:
    """Yield the authentication, and follow the key file. Raise KEY_FILE_UNUSABLE if it is unusable at the start."""
    if settings.access.authentication == "off":
        yield Authentication(settings.access, None, clock, limits)
        return
    keyring = Keyring(KeyFile(settings.store.data_dir))
    keyring.load()
    if not len(keyring):
        get_log("access").warning(
            "no API key exists, so every request is refused; "
            "create one with `ebbtide keys create --scope read,write --all-agents`"
        )
    following = in_background(keyring.follow(fleet.on_pool))
    try:
        yield Authentication(settings.access, keyring, clock, limits)
    finally:
        await _end(following)


@contextlib.asynccontextmanager
async def renewing(renewal: Renewal | None, service: Service) -> AsyncIterator[None]:
    """Follow the certificate files within the block, if there are any."""
    if renewal is None:
        yield
        return
    service.renewal = renewal
    following = in_background(renewal.follow(service.fleet.on_pool))
    try:
        yield
    finally:
        await _end(following)


def _shared_resources(
    settings: Settings,
    pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor, ThreadPoolExecutor, ThreadPoolExecutor],
    data: DataDirectory,
    model_client: ModelClient,
    builtin: BuiltinModel,
    clock: Clock,
    priority: RequestPriority,
    embedder: Embedder | None,
) -> SharedResources:
    pool, query_pool, recall_pool, background_pool = pools
    return SharedResources(
        pool=pool,
        query_pool=query_pool,
        recall_pool=recall_pool,
        background_pool=background_pool,
        data=data,
        model_client=model_client,
        fallback=builtin,
        priority=priority,
        clock=clock,
        digest_policy=DigestPolicy(
            settings.language.park_after_attempts,
            settings.store.batch_status_keep,
            settings.store.batch_status_keep_h,
        ),
        mailbox_size=settings.fleet.mailbox_size,
        slice_s=settings.fleet.time_slice_ms / 1000,
        request_timeout_s=settings.server.request_timeout_ms / 1000,
        events_keep=settings.store.events_keep,
        metrics=model_client.metrics,
        embedder=embedder,
        texts=builtin.texts,
        search=settings.search,
    )


async def _watch_loop(metrics: Metrics, on_beat: Callable[[float], None] | None) -> None:
    """Measure the lag of the event loop periodically."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + BEAT_S
        await asyncio.sleep(BEAT_S)
        late_s = max(0.0, loop.time() - due_s)
        metrics.loop_lag.observe(late_s)
        if on_beat is not None:
            on_beat(late_s)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _careful(what: str, close: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls `close` and logs its error."""

    def run() -> None:
        try:
            close()
        except Exception as error:
            get_log("daemon").error("closing failed", what=what, exc_info=error)

    return run


def _retry_policy(settings: Settings) -> RetryPolicy:
    language = settings.language
    timeout_s = language.model_timeout_ms / 1000
    if language.model != "builtin":
        # The client has a timeout for each request, which its circuit breaker counts. This outer timeout allows for
        # the few requests of one call while the server's capabilities are probed.
        timeout_s = 3 * timeout_s + 5
    return RetryPolicy(
        timeout_s=timeout_s,
        max_retries=language.max_retries,
        max_bad_replies=language.max_bad_replies,
        base_s=language.retry_base_ms / 1000,
        cap_s=language.retry_cap_ms / 1000,
    )


def import_deferred_modules() -> None:
    """Import DEFERRED_MODULES."""
    for name in DEFERRED_MODULES:
        import_module(name)
    gc.freeze()


async def serve(settings: Settings, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then close everything.

    Raise Precondition (DATA_DIRECTORY_LOCKED, INSECURE_BIND, KEY_FILE_UNUSABLE, TLS_UNUSABLE), and OSError when a port
    cannot be bound.
    """
    renewal = admitted_bind(settings)
    # Imported objects are never freed. A garbage collection that visits them would stop all requests for 0.1 s.
    gc.freeze()
    supervision = Supervision(settings.server.shutdown_grace_s, settings.log.format)
    node = node_of(settings)
    async with (
        bound_servers(settings, renewal) as (rest, rpc),
        opened(settings, on_beat=supervision.beat, cluster=node) as service,
        renewing(renewal, service),
        _joined(node, service),
        supervision.until_stopped() as stop,
    ):

        def announce() -> None:
            if on_ready is not None:
                on_ready(rest.url)
            log_listening(settings, rest.url, rpc.target)
            in_background(service.fleet.on_pool(import_deferred_modules))

        await run_servers(service, rest, rpc, stop, announce)
    get_log("daemon").info("stopped")


def node_of(settings: Settings) -> ClusterNode | None:
    """Return the node of a cluster; None without one. Raise MISSING_EXTRA or CLUSTER_UNUSABLE."""
    if not settings.cluster.servers:
        return None
    # Imported here, so that only a node of a cluster loads the client of the log servers.
    try:
        from ebbtide.cluster.node import ClusterNode
    except ModuleNotFoundError as error:
        raise Precondition(
            "cluster.servers requires the extra `cluster`: pip install 'ebbtide[cluster]'",
            reason="MISSING_EXTRA",
        ) from error
    encryption = settings.encryption
    has_key = bool(encryption.master_key_file or encryption.master_key.get_secret_value())
    if settings.cluster.require_encryption and not has_key:
        raise Precondition(
            "The texts of all agents are also on the log servers of a cluster. Set encryption.master_key_file, the "
            "same on each node, or cluster.require_encryption to false.",
            reason="CLUSTER_UNUSABLE",
        )
    return ClusterNode(settings.cluster, settings.store, shares_keys=settings.access.authentication != "off")


async def _open_node(life: contextlib.AsyncExitStack, node: ClusterNode, data: DataDirectory) -> None:
    """Connect a node to its cluster, until the end of `life`. Its data directory takes agents from the log."""
    life.callback(_careful("cluster", node.close))
    keys = data.keys
    await asyncio.to_thread(node.open, keys.own_fingerprint, data.life, data.previous_life, keys.admit)
    await asyncio.to_thread(data.join_cluster, node.cluster)
    data.replication = node.ownership
    keys.fetch = node.ownership.data_keys
    await asyncio.to_thread(keys.follow)
    keys.admit()
    node.ownership.seal_of = data.keys.seal_of
    data.erased.shared = node.erased_log
    await asyncio.to_thread(data.erased.follow)


@contextlib.asynccontextmanager
async def _joined(node: ClusterNode | None, service: Service) -> AsyncIterator[None]:
    """Be a node of the cluster within the block, if there is one."""
    if node is None:
        yield
        return
    service.peers, service.cluster = node.peers, node.membership
    service.before_stop.append(node.drain)
    answer_others(service, node.peers)
    service.directories_elsewhere = partial(directories_elsewhere, node.peers)
    async with node.joined(service.fleet):
        yield


@contextlib.asynccontextmanager
async def bound_servers(
    settings: Settings, renewal: Renewal | None, rest_socket: socket.socket | None = None, grpc_port: int = 0
) -> AsyncIterator[tuple[RestServer, GrpcServer]]:
    """Bind both ports for the block. Workers pass the socket and the port that they share."""
    max_connections = connection_limit(settings.server.max_connections)
    async with contextlib.AsyncExitStack() as ports:
        rest = RestServer(settings.server, renewal, max_connections, rest_socket)
        ports.callback(rest.release)
        rpc = GrpcServer(settings, renewal, max_connections, grpc_port)
        ports.push_async_callback(rpc.release)
        yield rest, rpc


async def run_servers(
    service: Service, rest: RestServer, rpc: GrpcServer, stop: asyncio.Event, on_listening: Callable[[], None]
) -> float:
    """Serve until the event is set or a server fails, then complete the requests in flight.

    Return the time at which the stop began, by the clock of the event loop.
    """
    async with asyncio.TaskGroup() as servers:
        serving = [servers.create_task(server.serve(service)) for server in (rest, rpc)]
        await rest.started(serving[0])
        await rpc.started(serving[1])
        on_listening()
        stopping = servers.create_task(stop.wait())
        await asyncio.wait([stopping, *serving], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        begun_s = asyncio.get_running_loop().time()
        get_log("daemon").info("stopping")
        for prepare in service.before_stop:
            await prepare()
        service.is_accepting = False
        service.fleet.wake_waiters()
        service.transfers.stop()
        rest.stop()
        rpc.stop()
    return begun_s


def log_listening(settings: Settings, url: str, grpc_target: str) -> None:
    """Log the settings and the addresses of a daemon that listens."""
    log = get_log("daemon")
    # On a terminal the banner has the settings.
    tree: dict[str, object] = settings.model_dump(mode="json")
    (log.info if settings.log.format == "json" else log.debug)("settings in force", **tree)
    if settings.server.ui and not view_files.is_built(view_files.FILES):
        log.info("no web view in this installation", help=f"{url}{view_files.PATH}")
    log.info("listening", url=url, grpc=grpc_target, version=__version__)
