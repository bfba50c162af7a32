"""The gRPC server, which starts and stops with the daemon."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from ebbtide.access.renewal import Renewal
from ebbtide.access.tls import Certificates
from ebbtide.rpc.forwarding import ForwardingServicer
from ebbtide.rpc.health import Health
from ebbtide.rpc.reflection import Reflection
from ebbtide.rpc.servicer import SERVICE, Servicer
from ebbtide.rpc.stalls import Stalls
from ebbtide.settings import ServerSettings, Settings
from ebbtide.telemetry import get_log, in_background
from ebbtide.verbs.service import Service

FIELD = "grpc_port"
"""The setting that an OSError about this port names in place of a file."""

STREAMS_END_S = 0.1
"""How long a stop waits for idle streams once no call is running."""

REFUSAL_S = 0.05
"""How long a stop refuses calls itself. When gRPC stops, it cancels the calls that it has received and not begun."""

MAX_CALLS = 4000
"""Most concurrent calls over all connections. Further ones are refused with RESOURCE_EXHAUSTED."""

IDLE_MS = 300_000
"""How long an idle connection stays open."""


def free_port(server: ServerSettings) -> int:
    """Return the configured port, or 0 for any free one. Raise OSError if the port is in use.

    If no port is configured and the default is in use, return 0: a second daemon on another REST port must not fail
    because of a gRPC port that was not configured.
    """
    if "grpc_port" not in server.model_fields_set:
        try:
            _refuse_taken(server.host, server.grpc_port)
        except OSError:
            get_log("rpc").warning(
                "the default gRPC port is taken; a free one is used", taken=server.grpc_port
            )
            return 0
    _refuse_taken(server.host, server.grpc_port)
    return server.grpc_port


def reserve(server: ServerSettings) -> socket.socket:
    """Reserve the port for the workers, which bind it too. The returned socket accepts no connections."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        port = free_port(server)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((server.host, port))
    except OSError as error:
        reserved.close()
        raise OSError(error.errno, error.strerror, FIELD) from None
    return reserved


def target_of(host: str, port: int) -> str:
    """Return the target for gRPC clients."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class GrpcServer:
    """Binds the port when constructed, so that a port in use is an error before anything is opened."""

    def __init__(
        self,
        settings: Settings,
        renewal: Renewal | None = None,
        max_connections: int | None = None,
        shared_port: int = 0,
    ) -> None:
        """Bind the configured port, or `shared_port`, which every worker binds."""
        server = settings.server
        self._renewal = renewal
        self._grace_s = server.shutdown_grace_s
        self._stopping = asyncio.Event()
        self._serving = asyncio.Event()
        self._settings = server
        self._server = grpc.aio.server(
            options=_options(
                settings, max_connections or server.max_connections, is_shared=bool(shared_port)
            ),
            maximum_concurrent_rpcs=MAX_CALLS,
        )
        self._port = self._bind(shared_port or free_port(server))

    def _bind(self, port: int) -> int:
        try:
            bound = self._add_port(target_of(self._settings.host, port))
        except RuntimeError:
            bound = 0
        if not bound:
            raise OSError(errno.EADDRNOTAVAIL, "cannot be listened on", FIELD)
        return bound

    def _add_port(self, place: str) -> int:
        if self._renewal is None:
            plain: int = self._server.add_insecure_port(place)
            return plain
        credentials = _following(self._renewal)
        secure: int = self._server.add_secure_port(place, credentials)
        return secure

    @property
    def target(self) -> str:
        """The target for gRPC clients."""
        return target_of(self._settings.host, self._port)

    async def serve(self, service: Service) -> None:
        """Serve until stopped, and give running calls the grace period."""
        logging.getLogger("grpc._cython.cygrpc").addFilter(_is_no_lost_client)
        stalls = Stalls(self._settings, service.metrics, self._port)
        servicer = Servicer(service, stalls)
        if service.peers is not None:
            servicer = ForwardingServicer(service, stalls, service.peers)
        health = Health(service, (SERVICE.full_name,), stalls)
        self._server.add_generic_rpc_handlers(servicer.handlers())
        health_pb2_grpc.add_HealthServicer_to_server(health, self._server)
        health_name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
        names = (SERVICE.full_name, health_name, reflection.SERVICE_NAME)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(Reflection(servicer, names), self._server)
        self._server.add_generic_rpc_handlers(servicer.fallback())
        await self._server.start()
        self._serving.set()
        sweeping = in_background(stalls.sweep())
        try:
            await self._stopping.wait()
        finally:
            stalls.stop()
            health.stop()
            servicer.is_stopping = True
            await asyncio.sleep(REFUSAL_S)
            await self._end(servicer)
            sweeping.cancel()

    async def _end(self, servicer: Servicer) -> None:
        """Accept no more calls, and wait for the running ones. Idle streams, such as reflection, are ended."""
        ending = asyncio.create_task(self._server.stop(self._grace_s))
        while not ending.done():
            idle = asyncio.create_task(servicer.idle.wait())
            await asyncio.wait({ending, idle}, return_when=asyncio.FIRST_COMPLETED)
            idle.cancel()
            # Health watches end by themselves. A call that arrived before the stop may only begin now.
            await asyncio.wait({ending}, timeout=STREAMS_END_S)
            if servicer.idle.is_set():
                break
        await self._server.stop(None)
        await ending

    async def started(self, serving: asyncio.Task[None]) -> None:
        """Wait until calls are accepted, or until `serving` has failed."""
        waiting = asyncio.create_task(self._serving.wait())
        await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    def stop(self) -> None:
        """Accept no more calls, and complete the running ones."""
        self._stopping.set()

    async def release(self) -> None:
        """Release the port. Idempotent."""
        await self._server.stop(None)


def _options(settings: Settings, max_connections: int, *, is_shared: bool) -> list[tuple[str, int]]:
    """Return the options of the server. Only the workers of a daemon share a port."""
    server = settings.server
    # A client that has disconnected or does not read answers no ping.
    ping_ms = max(1, server.send_timeout_ms // 2)
    return [
        # Two daemons must not share a port by accident.
        ("grpc.so_reuseport", int(is_shared)),
        ("grpc.max_receive_message_length", settings.limits.max_body_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", server.grpc_max_concurrent_streams),
        ("grpc.max_allowed_incoming_connections", max_connections),
        ("grpc.server_handshake_timeout_ms", server.header_timeout_ms),
        ("grpc.max_connection_idle_ms", IDLE_MS),
        ("grpc.keepalive_time_ms", ping_ms),
        ("grpc.keepalive_timeout_ms", ping_ms),
        ("grpc.http2.ping_timeout_ms", ping_ms),
    ]


def _is_no_lost_client(record: logging.LogRecord) -> bool:
    """Drop the error that gRPC logs if a client disconnects before its response is sent."""
    return not (record.exc_info and isinstance(record.exc_info[1], grpc.aio.InternalError))


def _following(renewal: Renewal) -> grpc.ServerCredentials:
    """Return credentials with the current certificates for each new connection."""
    latest_sent = renewal.current

    def latest() -> grpc.ServerCertificateConfiguration | None:
        # gRPC calls this on its own thread for every connection. None means no change.
        nonlocal latest_sent
        current = renewal.current
        if current is latest_sent:
            return None
        latest_sent = current
        return _configuration(current)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(latest_sent),
        latest,  # type: ignore[arg-type] # The stubs do not know that None is allowed.
        require_client_authentication=latest_sent.client_authority is not None,
    )


def _configuration(certificates: Certificates) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(certificates.private_key, certificates.chain)], root_certificates=certificates.client_authority
    )


def _refuse_taken(host: str, port: int) -> None:
    """Raise OSError if a port cannot be bound. gRPC would only write the reason to standard error."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, FIELD) from None
