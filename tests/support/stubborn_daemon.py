"""`ebbtide serve` with a language model that never answers for texts with the word `hang`, while a file exists.

The file is `<data directory>.hang`. Run as `python -m tests.support.stubborn_daemon serve …`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from ebbtide.cli.app import main
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import Segment, Utterance

MODULE = "tests.support.stubborn_daemon"


def hang_file(data_dir: Path) -> Path:
    """Return the file that makes the model hang for texts with `hang` while it exists."""
    return data_dir.with_name(f"{data_dir.name}.hang")


if __name__ == "__main__":
    sign = hang_file(Path(sys.argv[sys.argv.index("--data-dir") + 1]))
    plain = BuiltinModel.segment

    async def segment(self: BuiltinModel, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        while sign.exists() and any("hang" in message.text for message in messages):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return await plain(self, messages, max_chars=max_chars)

    BuiltinModel.segment = segment  # type: ignore[method-assign]
    main()
