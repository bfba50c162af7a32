"""The settings of one daemon: a frozen tree, and the only reader of the environment.

Precedence: command-line flags, environment (`EBBTIDE_<SECTION>__<FIELD>`), TOML file, defaults. Every field
has its unit in its name, a default, bounds and one line of help; docs/configuration.md is checked against
this file by a test. Agents' own parameters are in `parameters.py`; here stand their defaults (`memory`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

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
_DURATION = re.compile(r"-?\d{1,9}(?:ms|s|m|h)?")


def default_data_dir() -> Path:
    """`$XDG_DATA_HOME/ebbtide`, by default `~/.local/share/ebbtide`."""
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "ebbtide"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _ModelServerSection(_Section):
    """What holds for every section that names a model on a server."""

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
    """Where the daemon listens, and to whom."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    rest_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8420, description="Port of the REST interface; 0 takes a free one."
    )
    grpc_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8421, description="Port of the gRPC interface; 0 takes a free one."
    )
    grpc_max_concurrent_streams: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1000, description="Most gRPC calls under way at once on one connection; further ones wait."
    )
    allow_insecure: bool = Field(
        False, description="Listen beyond this machine although `access.authentication` is off."
    )
    allowed_hosts: tuple[str, ...] = Field(
        (), description="Names allowed in `Host` beside loopback names and the bound address."
    )
    cors_origins: tuple[str, ...] = Field(
        (), description="Origins of web pages that may call, such as http://localhost:3000."
    )
    request_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = Field(
        30_000, description="Longest a request waits for its agent's turn."
    )
    header_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = Field(
        10_000, description="Longest time for a TLS handshake, and for the head of a request to arrive."
    )
    send_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = Field(
        30_000,
        description="Longest time a client may read nothing of its response; then its connection is closed.",
    )
    max_connections: Annotated[int, Field(ge=4, le=100_000)] = Field(
        1000,
        description="Most connections of each port, but no more than an eighth of the file-descriptor limit; "
        "beyond it: SERVER_BUSY.",
    )
    max_buffered_bytes: Annotated[int, Field(ge=MIB, le=1 << 40)] = Field(
        64 * MIB,
        description="Bytes of requests and responses held for slow clients of each port; beyond it "
        "connections that wait longest are closed.",
    )
    shutdown_grace_s: Annotated[float, Field(ge=0, le=600)] = Field(
        30.0,
        description="Longest a stop waits for requests in flight; at least 1 s. Closing may take half as long again, "
        "at least 5 s; then the process is killed.",
    )


class AccessSettings(_Section):
    """Who may call, how fast, and how much an agent may hold."""

    authentication: Literal["off", "keys"] = Field(
        "off", description="Whether callers must show an API key; keys are made with `ebbtide keys create`."
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
        0.0, description="Requests a second that each key gets, unless it has a rate of its own; 0: no limit."
    )
    agent_requests_per_s: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        0.0, description="Requests a second that each agent gets, whoever asks; 0: no limit."
    )
    failed_tries_per_s: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        10.0,
        description="Requests a second without a valid key that are told so, of each remote address; 0: no limit.",
    )
    burst_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        2.0,
        description="A key, an agent or an address may get so many seconds' worth of requests at once; "
        "at least one request.",
    )
    max_agents_per_key: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        0,
        description="Most agents within a key's reach for it to bring in another one; "
        "0: no limit. A key may have a bound of its own.",
    )
    max_nodes_per_agent: Annotated[int, Field(ge=0, le=1 << 40)] = Field(
        0, description="An agent with so many living memories takes no further batch; 0: no limit."
    )
    max_bytes_per_agent: Annotated[int, Field(ge=0, le=1 << 44)] = Field(
        0, description="An agent that uses so much of its store takes no further batch; 0: no limit."
    )

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Self:
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            raise ValueError("tls_cert_file and tls_key_file belong together: set both, or none")
        if self.tls_client_ca_file and not self.tls_cert_file:
            raise ValueError("tls_client_ca_file needs tls_cert_file and tls_key_file")
        return self


class StoreSettings(_Section):
    """Where agents live on disk."""

    data_dir: Path = Field(default_factory=default_data_dir, description="The data directory.")
    initial_map_bytes: Annotated[int, Field(ge=1 << 18, le=1 << 40)] = Field(
        MIB, description="First size of an agent's map; it doubles when it is full."
    )
    max_map_bytes: Annotated[int, Field(ge=1 << 18, le=1 << 44)] = Field(
        16 << 30, description="Largest size of an agent's map; beyond it: STORE_FULL."
    )
    low_disk_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = Field(
        256 * MIB, description="With less free disk than this, readiness is degraded."
    )
    batch_status_keep: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        10_000, description="Statuses and receipts are kept for this many digested batches."
    )
    batch_status_keep_h: Annotated[int, Field(ge=1, le=87_600)] = Field(
        168, description="Statuses and receipts are kept for this many hours."
    )
    events_keep: Annotated[int, Field(ge=100, le=100_000_000)] = Field(
        100_000, description="Events kept of each agent, so that a watcher that was away can go on."
    )


class EncryptionSettings(_Section):
    """The key under which what agents keep is encrypted on disk. Without one nothing is."""

    master_key_file: str = Field(
        "",
        description="File of the master key: 32 bytes as 64 hexadecimal digits or base64. "
        "With one, new agents are encrypted.",
    )
    master_key: SecretStr = Field(
        SecretStr(""), description="The master key itself, instead of a file; never printed."
    )

    @model_validator(mode="after")
    def _is_said_once(self) -> EncryptionSettings:
        if self.master_key_file and self.master_key.get_secret_value():
            raise ValueError("set master_key_file or master_key, not both")
        return self


class FleetSettings(_Section):
    """How agents share one daemon."""

    max_open_agents: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="Most agents open at once; 0 derives it from the file-descriptor limit."
    )
    max_resident_bytes: Annotated[int, Field(ge=MIB, le=1 << 50)] = Field(
        512 * MIB, description="Memory that open agents may hold together; beyond it idle ones are closed."
    )
    mailbox_size: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1000, description="Most requests waiting for one agent; beyond it: AGENT_BUSY."
    )
    job_threads: Annotated[int, Field(ge=1, le=64)] = Field(4, description="Threads that run agents' jobs.")
    time_slice_ms: Annotated[int, Field(ge=100, le=600_000)] = Field(
        30_000, description="Longest turn of one agent in the ring of compression passes."
    )
    compression_concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Compression slices at a time."
    )
    recall_patience_ms: Annotated[int, Field(ge=0, le=30_000)] = Field(
        2000, description="Longest a recall waits for batches accepted before it."
    )
    digest_lag_bound_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        300.0, description="When the oldest waiting batch is older, readiness is degraded."
    )


class LanguageSettings(_ModelServerSection):
    """The language model beside the daemon."""

    model: Literal["builtin", "ollama", "openai"] = Field(
        "builtin",
        description="Which kind of language model: the built-in one needs no server; "
        "`openai` is any server that is compatible with OpenAI's interface.",
    )
    base_url: str = Field(
        "",
        description="Address of the model server. Empty: http://127.0.0.1:11434 for Ollama, "
        "http://127.0.0.1:8080 for `openai`.",
    )
    model_name: str = Field("qwen2.5:7b", description="Name of the model on the server.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the model server; never printed.")
    num_ctx: Annotated[int, Field(ge=2048, le=131_072)] = Field(
        8192, description="Largest context, in tokens, that is used on the server (and asked of Ollama)."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] = Field(
        0.0, description="Temperature of a first try; further tries of a question are warmer."
    )
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(0, description="Seed of a first try.")
    keep_alive: str = Field(
        "30m", description="How long Ollama keeps the model loaded after a call; -1 for ever."
    )
    breaker_failures: Annotated[int, Field(ge=1, le=1000)] = Field(
        5, description="Failures of the server in a row after which it is left alone for a while."
    )
    breaker_open_ms: Annotated[int, Field(ge=1, le=600_000)] = Field(
        5000, description="How long it is left alone at first; twice as long each time a probe fails."
    )
    breaker_cap_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        60_000, description="Longest time it is left alone."
    )
    model_timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        300_000, description="Longest one model call may take."
    )
    model_concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Model calls at a time; waiting foreground calls go before background ones."
    )
    max_retries: Annotated[int, Field(ge=0, le=1000)] = Field(
        15, description="Transport failures of one model call before it counts as unavailable."
    )
    max_bad_replies: Annotated[int, Field(ge=1, le=20)] = Field(
        3, description="Unusable replies to one question that make a failed round."
    )
    park_after_attempts: Annotated[int, Field(ge=1, le=1000)] = Field(
        8, description="Failed rounds after which a batch is parked."
    )
    retry_base_ms: Annotated[int, Field(ge=1, le=600_000)] = Field(
        1000, description="First back-off after a failure; it doubles each time."
    )
    retry_cap_ms: Annotated[int, Field(ge=1, le=600_000)] = Field(
        30_000, description="Longest back-off after a failure."
    )

    @field_validator("keep_alive")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        if not _DURATION.fullmatch(value):
            raise ValueError("must be a duration such as 30m, 1h or -1")
        return value


class EmbeddingSettings(_ModelServerSection):
    """The model that turns texts into vectors, for recall by meaning."""

    model: Literal["auto", "builtin", "ollama", "openai", "off"] = Field(
        "auto",
        description="Which kind of embedder: `auto` is the built-in one (English) where the extra "
        "`embeddings` is installed, else `off`; with `off` recall goes by words and links alone.",
    )
    base_url: str = Field(
        "",
        description="Address of the embedding server. Empty: http://127.0.0.1:11434 for Ollama, "
        "http://127.0.0.1:8080 for `openai`.",
    )
    name: str = Field("bge-m3", description="Name of the embedding model on the server.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the embedding server; never printed.")
    timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        60_000, description="Longest one request of at most 64 texts may take."
    )
    dimensions: Annotated[int, Field(ge=0, le=8192)] = Field(
        0,
        description="Numbers in a vector, asked of servers that can shorten theirs; 0 takes the model's own.",
    )
    query_timeout_ms: Annotated[int, Field(ge=1, le=60_000)] = Field(
        2000, description="Longest a question waits for its own vector; then it is answered without."
    )


class LimitSettings(_Section):
    """Bounds on requests."""

    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = Field(
        8 * MIB, description="Largest request body."
    )
    max_upload_bytes: Annotated[int, Field(ge=1024, le=1 << 44)] = Field(
        16 << 30, description="Largest backup or export that is restored over the network."
    )
    transfer_timeout_s: Annotated[float, Field(gt=0, le=604_800)] = Field(
        21_600.0, description="Longest one backup, export or restore may take, its file's way included."
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
        4096, description="Largest `metadata`, written as JSON."
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
        description="Longest that a worker process may take for a text, for each 100 000 characters of it; "
        "beyond it: TEXT_TOO_COMPLEX.",
    )
    max_timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        600_000, description="Longest `timeout_ms` of a flush."
    )
    max_page_size: Annotated[int, Field(ge=1, le=1000)] = Field(
        1000, description="Largest page of a listing."
    )
    max_event_streams: Annotated[int, Field(ge=1, le=100_000)] = Field(
        100, description="Most event streams open at once."
    )


class LogSettings(_Section):
    """What the log holds: ids, sizes and times, never what was said."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level written."
    )
    format: Literal["auto", "json", "console"] = Field(
        "auto", description="auto: console on a terminal, else JSON."
    )
    log_content: bool = Field(
        False, description="Write texts of messages and memories to the log, for debugging only."
    )


class MetricsSettings(_Section):
    """What /metrics tells."""

    per_agent: bool = Field(
        False, description="Tell open agents apart by their ids, which whoever reads the metrics then sees."
    )
    max_agents: Annotated[int, Field(ge=1, le=10_000)] = Field(
        100, description="Most agents told apart: those that lag most."
    )


class TelemetrySettings(_Section):
    """Where traces go."""

    otlp_endpoint: str = Field(
        "",
        description="Where spans are sent by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; "
        "empty: nowhere. Needs the extra `traces`.",
    )
    service_name: str = Field("ebbtide", description="Name under which the collector knows this daemon.")
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        1.0, description="Share of requests traced that bring no decision of their own."
    )
    agent_ids: bool = Field(False, description="Tell agents' ids in spans.")

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_endpoint(cls, value: str) -> str:
        if value and not _URL.fullmatch(value):
            raise ValueError("must be like http://host:4318/v1/traces, without user name or query")
        return value


class MemorySettings(AgentParameters):
    """Defaults of every agent's parameters."""

    # Values from the environment arrive as text.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)


class Settings(BaseSettings):
    """Everything that can be set."""

    model_config = SettingsConfigDict(
        env_prefix="EBBTIDE_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    server: ServerSettings = ServerSettings()
    access: AccessSettings = AccessSettings()
    store: StoreSettings = Field(default_factory=StoreSettings)
    encryption: EncryptionSettings = EncryptionSettings()
    fleet: FleetSettings = FleetSettings()
    language: LanguageSettings = LanguageSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    memory: MemorySettings = MemorySettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, environment, then the TOML file named by `_TOML_FILE`."""
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls))


def load_settings(flags: dict[str, Any] | None = None, config: Path | None = None) -> Settings:
    """The settings in force. ValidationError names each bad field; a missing `config` file is an error."""
    if config is not None and not config.is_file():
        raise FileNotFoundError(f"there is no settings file {config}")

    class _WithFile(Settings):
        model_config = SettingsConfigDict(toml_file=config)

    loaded = _WithFile(**(flags or {}))
    return Settings.model_construct(**dict(loaded))
