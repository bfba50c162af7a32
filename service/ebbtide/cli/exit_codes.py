"""Exit codes, for scripts. Every command ends with one of these, and each has one meaning."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended.

    OK              0    success, also with an empty result
    FAILURE         1    a bug, or the daemon responded INTERNAL
    USAGE           2    a bad command line: an unknown option, a bad value
    REFUSED         3    the daemon refused the request (4xx, or no space)
    UNREACHABLE     4    no daemon answers at the URL
    LOCKED          5    another process uses the data directory
    NOT_FOUND       6    no such agent, memory, batch or data directory
    DAMAGED         7    stored data is damaged; `check` has findings
    PORT_TAKEN      8    the port is in use
    UNAVAILABLE     9    the daemon cannot answer now: try again
    BAD_INPUT      10    an input file cannot be read; nothing was sent
    BAD_SETTING    11    a setting has a bad value, or does not exist
    NO_CONFIG      12    the settings file of --config cannot be read
    INSECURE_BIND  13    other machines could connect without authentication
    MISSING_EXTRA  14    an optional package is not installed
    INTERRUPTED   130    Ctrl-C
    """

    OK = 0
    FAILURE = 1
    USAGE = 2
    REFUSED = 3
    UNREACHABLE = 4
    LOCKED = 5
    NOT_FOUND = 6
    DAMAGED = 7
    PORT_TAKEN = 8
    UNAVAILABLE = 9
    BAD_INPUT = 10
    BAD_SETTING = 11
    NO_CONFIG = 12
    INSECURE_BIND = 13
    MISSING_EXTRA = 14
    INTERRUPTED = 130


OF_REASON: dict[str, ExitCode] = {
    "DATA_DIRECTORY_LOCKED": ExitCode.LOCKED,
    "INSECURE_BIND": ExitCode.INSECURE_BIND,
    "KEY_FILE_UNUSABLE": ExitCode.DAMAGED,
    "TLS_UNUSABLE": ExitCode.BAD_SETTING,
    "MISSING_EXTRA": ExitCode.MISSING_EXTRA,
    "MASTER_KEY_REFUSED": ExitCode.BAD_SETTING,
}
"""Reasons with their own code. The HTTP status decides for all others."""


def of_error(reason: str, status: int) -> ExitCode:
    """Return the exit code for a reason and its HTTP status."""
    if reason in OF_REASON:
        return OF_REASON[reason]
    if status in (404, 410):
        return ExitCode.NOT_FOUND
    if status in (503, 504):
        return ExitCode.UNAVAILABLE
    if 400 <= status < 500 or status == 507:
        return ExitCode.REFUSED
    return ExitCode.DAMAGED if reason in ("STORE_CORRUPTED", "AGENT_ID_MISMATCH") else ExitCode.FAILURE
