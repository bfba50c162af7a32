"""The objects of a cluster in S3. The only module that imports `obstore`, and only a cluster with S3 imports it.

Credentials are those of the environment, as the tools of AWS read them. They never appear in a log or an error: the
response of a server, which may contain them, is left out.

An object is stored by one request, never in parts: parts of an upload that was interrupted are not listed, so a later
deletion could not find them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar

import obstore
from obstore.exceptions import BaseError, GenericError
from obstore.store import S3Store

from ebbtide.cluster.snapshots import unavailable
from ebbtide.errors import Precondition, Unavailable
from ebbtide.settings import S3Address
from ebbtide.telemetry import get_log

T = TypeVar("T")

CONNECT_S: Final = 5.0
"""Time-out of a connection."""

SLOWEST_BYTES_PER_S: Final = 1 << 20
"""A transfer that is slower fails."""

RETRIES: Final = 2
"""How often a failed request is repeated, within its time."""

FAILURES: Final = (BaseError, OSError)
"""Errors of the client. A missing bucket is FileNotFoundError."""

PROBE: Final = b"Ebbtide checks that it may store objects here."


class S3Objects:
    """The objects below one prefix of a bucket."""

    def __init__(self, address: S3Address, timeout_s: float) -> None:
        """A request takes at most `timeout_s`, and a second more for each MB of its object."""
        self._address = address
        self._timeout_s = timeout_s
        self._is_checked = False

    def check(self) -> None:
        """Store, list, read and delete an object. Raise CLUSTER_UNUSABLE if that is refused, or old versions are kept.

        Raise SNAPSHOTS_UNAVAILABLE without an answer.
        """
        key, store = f"probe-{secrets.token_hex(8)}", self._store(0)
        try:
            result = obstore.put(store, key, PROBE, use_multipart=False)
            # A bucket without versions names none, and one whose versions were suspended names none of its own.
            if result.get("version") not in (None, "", "null"):
                raise Precondition(
                    f"The bucket {self._address.bucket} keeps old versions of objects, so deleted texts would stay. "
                    "Use a bucket without versioning and object lock for cluster.snapshots.",
                    reason="CLUSTER_UNUSABLE",
                )
            found = obstore.get(store, key).bytes().to_bytes()
            next(iter(obstore.list(store, "probe")), None)
            obstore.delete(store, [key])
        except GenericError as error:
            raise self._failed(error) from None
        except FAILURES as error:
            raise Precondition(
                f"S3 refuses cluster.snapshots: {_without_response(error)}. Check the bucket, the region and the "
                "credentials; a node must read, write, list and delete objects.",
                reason="CLUSTER_UNUSABLE",
            ) from None
        if found != PROBE:
            raise Precondition(
                "S3 does not return the object that was stored a moment ago. cluster.snapshots needs a store with "
                "consistent reads.",
                reason="CLUSTER_UNUSABLE",
            )
        self._is_checked = True

    def put(self, key: str, content: bytes) -> None:
        """Store an object, durably."""
        if not self._is_checked:
            self._checked()
        self._run(lambda store: obstore.put(store, key, content, use_multipart=False), len(content))

    def _checked(self) -> None:
        """Check the bucket of a node that started while S3 did not answer."""
        try:
            self.check()
        except Precondition as error:
            get_log("cluster").error("S3 cannot be used", error=error.message)
            raise unavailable(
                "The objects of the cluster in S3 cannot be used. See the log of the node."
            ) from None

    def get(self, key: str, size: int) -> bytes | None:
        """Return an object of about this size; None if there is none."""

        def get(store: S3Store) -> bytes | None:
            try:
                return obstore.get(store, key).bytes().to_bytes()
            except FileNotFoundError:
                return None

        return self._run(get, size)

    def keys(self, folder: str) -> Sequence[str]:
        """Return the keys of all objects that begin with `folder` and a slash."""
        return self._run(
            lambda store: [str(one["path"]) for page in obstore.list(store, folder) for one in page]
        )

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. One that is missing already is no error."""
        self._run(lambda store: obstore.delete(store, keys))

    def _run(self, work: Callable[[S3Store], T], size: int = 0) -> T:
        """Return the result of a request that transfers `size` bytes. Raise SNAPSHOTS_UNAVAILABLE."""
        try:
            return work(self._store(size.bit_length()))
        except FAILURES as error:
            raise self._failed(error) from None

    @cache  # noqa: B019 - one for each of a few time-outs, as long as the process runs
    def _store(self, size_bits: int) -> S3Store:
        """Return the client with the time-out for objects of less than two to the power of `size_bits` bytes."""
        timeout_s = self._timeout_s + (1 << size_bits) / SLOWEST_BYTES_PER_S
        address, options = self._address, dict[str, Any]()
        if address.endpoint:
            options["endpoint"] = address.endpoint
        if address.region:
            options["region"] = address.region
        return S3Store(
            address.bucket,
            prefix=address.prefix or None,
            client_options={
                "timeout": timedelta(seconds=timeout_s),
                "connect_timeout": timedelta(seconds=min(CONNECT_S, timeout_s)),
                "allow_http": address.endpoint.startswith("http:"),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=timeout_s)},
            **options,
        )

    def _failed(self, error: Exception) -> Unavailable:
        get_log("cluster").warning("S3 does not answer", error=_without_response(error))
        return unavailable("S3, which has the contents of large agents, does not answer. Retry later.")


def _without_response(error: Exception) -> str:
    """Return what a client says about an error, without the response of the server."""
    return str(error).partition("\n")[0].partition("<")[0].rstrip(" :.")
