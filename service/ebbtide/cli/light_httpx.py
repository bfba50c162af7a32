"""Import httpx without what the command line does not need: httpx's own command line, and HTTP/2.

Both are optional, and httpx leaves them out where click or h2 is not installed. With them the import takes three times
as long: they load click, rich, pygments and h2.
"""

from __future__ import annotations

import sys

_OPTIONAL = ("httpx._main", "h2")

if "httpx" not in sys.modules:
    _blocked = [name for name in _OPTIONAL if name not in sys.modules]
    # None makes an import fail with ImportError, for which httpx is prepared.
    sys.modules.update(dict.fromkeys(_blocked))  # type: ignore[arg-type]
    try:
        import httpcore  # noqa: F401  httpx imports it later
        import httpx  # noqa: F401
    finally:
        for _name in _blocked:
            del sys.modules[_name]
