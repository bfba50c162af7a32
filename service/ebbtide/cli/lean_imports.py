"""Import packages without their optional parts, and without garbage collections in between.

Some packages import rich, click or h2 if they are installed, although Ebbtide does not need them there. While such a
package is imported, these modules are blocked, as if they were not installed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lean_imports(*optional: str) -> Iterator[None]:
    """Block the named modules for imports within the block, unless they are imported already."""
    blocked = [name for name in optional if name not in sys.modules]
    # None makes an import fail with ImportError, for which the importing packages are prepared.
    sys.modules.update(dict.fromkeys(blocked))  # type: ignore[arg-type]
    was_enabled = gc.isenabled()
    # Almost nothing of an import is garbage: collections would only cost time.
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        for name in blocked:
            if sys.modules.get(name) is None:
                sys.modules.pop(name, None)
