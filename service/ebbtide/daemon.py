"""The daemon: what it is made of, and its life.

Opening, in this order, because each step needs the one before: the lock on the data directory (two daemons never
share one) → thread pools → language model → fleet (takes up work left behind) → servers.

Closing, in the reverse order, for these reasons: readiness off first, so that nobody sends more; then the
servers, so that requests in flight still find their agents; then the fleet, whose agents finish the job in hand
and close their environments while threads still run; then the model and the pools; the lock last, when nothing
of ours touches the directory any more. What waits in inboxes stays there. A step that fails is logged and the
next one runs.

The daemon owns the signals (`process/`); the servers do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import resource
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from ebbtide import __version__
from ebbtide.access.authentication import Authentication
from ebbtide.access.key_file import KeyFile
from ebbtide.access.keyring import Keyring
from ebbtide.access.renewal import Renewal
from ebbtide.clock import Clock, SystemClock
from ebbtide.errors import Precondition
from ebbtide.fleet.runtime.agent import AgentNeeds
from ebbtide.fleet.runtime.digest import DigestPolicy
from ebbtide.fleet.runtime.fleet import Fleet
from ebbtide.heap import configure_heap
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.embedders import make_embedder
from ebbtide.language.embedding import Embedder
from ebbtide.language.port import LanguageModel
from ebbtide.language.served.gate import PriorityLimiter
from ebbtide.language.served.retry import ModelClient, RetryPolicy
from ebbtide.metrics import Metrics
from ebbtide.offload.pool import TextWorkers
from ebbtide.priority import RequestPriority
from ebbtide.process.supervision import Supervision
from ebbtide.process.watchdog import BEAT_S
from ebbtide.rest.server import RestServer
from ebbtide.rpc.server import GrpcServer
from ebbtide.settings import Settings
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.keys import is_open_to_all, master_key_of
from ebbtide.telemetry import get_log, in_background
from ebbtide.tracing import start_tracing, stop_tracing
from ebbtide.verbs.service import Service
from ebbtide.verbs.transfers import Transfers

LANGUAGE_THREADS = 2
"""Threads for the built-in model; more would only wait for the interpreter."""

EMBEDDING_THREADS = 2
"""One for what is embedded in the background, one for questions, which must not wait behind it."""

SWITCH_INTERVAL_S = 0.0001
"""How soon a busy thread lets another one run. With Python's 5 ms a short read beside a busy thread takes 20 ms."""

DESCRIPTORS_PER_AGENT = 4
DESCRIPTORS_KEPT = 64
CONNECTIONS_SHARE = 8
"""File descriptors for an open agent, and for logs and listings; each port's connections get this part of the limit."""

MOST_DESCRIPTORS = 1 << 20
"""What counts as the limit where there is none."""

MOST_OPEN_BY_DEFAULT = 1000

ModelMaker = Callable[[Settings, BuiltinModel], LanguageModel]


def make_model(settings: Settings, builtin: BuiltinModel) -> LanguageModel:
    """The language model that the settings name; the built-in one is given."""
    language = settings.language
    if language.model == "builtin":
        return builtin
    # Only who has a model server pays for an HTTP client.
    from ebbtide.language.served.server import server_model

    return server_model(language, builtin.texts)


def refuse_insecure_bind(settings: Settings) -> None:
    """INSECURE_BIND for an address beyond this machine, unless it was allowed explicitly."""
    host = settings.server.host
    if settings.server.allow_insecure or settings.access.authentication != "off":
        return
    if not is_loopback(host):
        raise Precondition(
            f"listening on {host} would let anyone who reaches this machine read and erase every memory, "
            "since nothing authenticates callers; listen on 127.0.0.1, set access.authentication to keys, "
            "or set server.allow_insecure",
            reason="INSECURE_BIND",
        )


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _descriptor_limit() -> int:
    """The limit of file descriptors, raised as far as this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def connection_limit(configured: int) -> int:
    """Most connections of each port: as configured, but no more than their share of the descriptors."""
    return max(1, min(configured, _descriptor_limit() // CONNECTIONS_SHARE))


def open_agent_limit(configured: int, connections: int) -> int:
    """Most agents open at once: as configured, else what descriptors are left beside the connections of both ports."""
    if configured:
        return configured
    limit = _descriptor_limit()
    kept = min(DESCRIPTORS_KEPT, limit // 4) + 2 * connections
    return max(1, min(MOST_OPEN_BY_DEFAULT, (limit - kept) // DESCRIPTORS_PER_AGENT))


@contextlib.asynccontextmanager
async def opened(
    settings: Settings,
    *,
    clock: Clock | None = None,
    make: ModelMaker = make_model,
    on_beat: Callable[[float], None] | None = None,
) -> AsyncIterator[Service]:
    """The daemon without servers: every verb works on the service it yields.

    `on_beat` is called at each beat of the event loop with how late it is.
    """
    clock = clock or SystemClock()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    configure_heap()
    # Threads of BLAS that wait for each other on busy cores make a product take 15 times as long.
    threadpool_limits(1, user_api="blas")
    async with contextlib.AsyncExitStack() as life:
        tracing = start_tracing(settings.telemetry)
        if tracing is not None:
            life.callback(_careful("tracing", partial(stop_tracing, tracing)))
        data = DataDirectory(
            settings.store.data_dir,
            initial_map_bytes=settings.store.initial_map_bytes,
            max_map_bytes=settings.store.max_map_bytes,
            master_key=master_key_of(settings.encryption),
        )
        data.acquire()
        life.callback(_careful("lock", data.release))
        data.keys.admit()
        _warn_of_open_key(settings)
        job_pool = _pool(life, settings.fleet.job_threads, "job")
        language_pool = _pool(life, LANGUAGE_THREADS, "language")
        embedding_pool = _pool(life, EMBEDDING_THREADS, "embedding")
        desk = _pool(life, 1, "desk")
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
        metrics = Metrics()
        gate = PriorityLimiter(settings.language.model_concurrency)
        asking = ModelClient(model, gate, _patience(settings), metrics=metrics)
        needs = _needs(settings, job_pool, data, asking, builtin, clock, priority, embedder)
        fleet = _fleet(settings, needs)
        fleet.start()
        life.push_async_callback(fleet.stop)
        watching_loop = in_background(_watch_loop(metrics, on_beat))
        life.push_async_callback(_ended, watching_loop)
        authentication = await life.enter_async_context(_authentication(settings, clock, fleet))
        life.push_async_callback(transfers.finish)
        service = Service(fleet, asking, settings, clock, desk, authentication, transfers, metrics, texts)
        try:
            yield service
        finally:
            service.is_accepting = False


def _fleet(settings: Settings, needs: AgentNeeds) -> Fleet:
    """The agents, within the limits of the settings."""
    return Fleet(
        needs,
        settings.memory,
        max_open=open_agent_limit(
            settings.fleet.max_open_agents, connection_limit(settings.server.max_connections)
        ),
        max_resident_bytes=settings.fleet.max_resident_bytes,
        compression_concurrency=settings.fleet.compression_concurrency,
        max_event_streams=settings.limits.max_event_streams,
    )


def _pool(life: contextlib.AsyncExitStack, thread_count: int, name: str) -> ThreadPoolExecutor:
    """Threads that end with the daemon."""
    pool = ThreadPoolExecutor(thread_count, name)
    life.callback(_careful(f"{name} threads", pool.shutdown))
    return pool


def _warn_of_open_key(settings: Settings) -> None:
    file = settings.encryption.master_key_file
    if file and is_open_to_all(Path(file)):
        get_log("store").warning("every user of this machine may read the file of the master key", file=file)


@contextlib.asynccontextmanager
async def _authentication(settings: Settings, clock: Clock, fleet: Fleet) -> AsyncIterator[Authentication]:
    """Who may come in, following the file of keys. KEY_FILE_UNUSABLE when it cannot be used at a start."""
    if settings.access.authentication == "off":
        yield Authentication(settings.access, None, clock)
        return
    keyring = Keyring(KeyFile(settings.store.data_dir))
    keyring.load()
    if not len(keyring):
        get_log("access").warning("there is no key yet, so nobody may call; see ebbtide keys create")
    following = in_background(keyring.follow(fleet.on_pool))
    try:
        yield Authentication(settings.access, keyring, clock)
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


@contextlib.asynccontextmanager
async def _renewing(renewal: Renewal | None, service: Service) -> AsyncIterator[None]:
    """Follow the files of certificates, where there are any."""
    if renewal is None:
        yield
        return
    service.renewal = renewal
    following = in_background(renewal.follow(service.fleet.on_pool))
    try:
        yield
    finally:
        await _ended(following)


def _needs(
    settings: Settings,
    pool: ThreadPoolExecutor,
    data: DataDirectory,
    asking: ModelClient,
    builtin: BuiltinModel,
    clock: Clock,
    priority: RequestPriority,
    embedder: Embedder | None,
) -> AgentNeeds:
    return AgentNeeds(
        pool=pool,
        data=data,
        asking=asking,
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
        metrics=asking.metrics,
        embedder=embedder,
        texts=builtin.texts,
    )


async def _watch_loop(metrics: Metrics, on_beat: Callable[[float], None] | None) -> None:
    """Measure again and again how late the event loop comes to a task."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + BEAT_S
        await asyncio.sleep(BEAT_S)
        late_s = max(0.0, loop.time() - due_s)
        metrics.loop_lag.observe(late_s)
        if on_beat is not None:
            on_beat(late_s)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _careful(what: str, close: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        try:
            close()
        except Exception as error:
            get_log("daemon").error("closing failed", what=what, exc_info=error)

    return run


def _patience(settings: Settings) -> RetryPolicy:
    language = settings.language
    timeout_s = language.model_timeout_ms / 1000
    if language.model != "builtin":
        # The client ends each request by itself, so that its breaker hears of it; this is the net below it,
        # wide enough for the few requests that one call may take while the server's ways are found out.
        timeout_s = 3 * timeout_s + 5
    return RetryPolicy(
        timeout_s=timeout_s,
        max_retries=language.max_retries,
        max_bad_replies=language.max_bad_replies,
        base_s=language.retry_base_ms / 1000,
        cap_s=language.retry_cap_ms / 1000,
    )


async def serve(settings: Settings, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; everything is closed on return.

    Raises Precondition (DATA_DIRECTORY_LOCKED, INSECURE_BIND, KEY_FILE_UNUSABLE, TLS_UNUSABLE) and OSError when a port
    cannot be had.
    """
    refuse_insecure_bind(settings)
    renewal = Renewal(settings.access) if settings.access.tls_cert_file else None
    if renewal is None and settings.access.authentication != "off" and not is_loopback(settings.server.host):
        get_log("access").warning(
            "API keys travel unencrypted: set access.tls_cert_file, or put TLS in front"
        )
    # Imported objects live as long as the process. A collection that visits them would stop all requests for 0.1 s.
    gc.freeze()
    log = get_log("daemon")
    supervision = Supervision(settings.server.shutdown_grace_s, settings.log.format)
    max_connections = connection_limit(settings.server.max_connections)
    async with contextlib.AsyncExitStack() as ports:
        rest = RestServer(settings.server, renewal, max_connections)
        ports.callback(rest.release)
        rpc = GrpcServer(settings, renewal, max_connections)
        ports.push_async_callback(rpc.release)
        async with (
            opened(settings, on_beat=supervision.beat) as service,
            _renewing(renewal, service),
            supervision.until_stopped() as stop,
            asyncio.TaskGroup() as servers,
        ):
            serving = [servers.create_task(server.serve(service)) for server in (rest, rpc)]
            await rest.started(serving[0])
            await rpc.started(serving[1])
            if on_ready is not None:
                on_ready(rest.url)
            # People have the banner instead.
            (log.info if settings.log.format == "json" else log.debug)(
                "settings in force", **_printable(settings)
            )
            log.info("listening", url=rest.url, grpc=rpc.target, version=__version__)
            stopping = servers.create_task(stop.wait())
            await asyncio.wait([stopping, *serving], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            log.info("stopping")
            service.is_accepting = False
            service.fleet.wake_waiters()
            service.transfers.stop()
            rest.stop()
            rpc.stop()
    log.info("stopped")


def _printable(settings: Settings) -> dict[str, object]:
    tree: dict[str, object] = settings.model_dump(mode="json")
    return tree
