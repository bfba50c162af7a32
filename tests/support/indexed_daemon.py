"""`ebbtide serve` that builds an index over 50 vectors of 8 numbers, where the real bound is 3.2 million.

Run as `python -m tests.support.indexed_daemon serve …`.
"""

from __future__ import annotations

from ebbtide.cli.app import main
from ebbtide.retrieval import vectors

MODULE = "tests.support.indexed_daemon"

if __name__ == "__main__":
    vectors.EXACT_NUMBERS = 8 * 50
    main()
