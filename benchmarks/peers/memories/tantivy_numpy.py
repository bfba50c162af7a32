"""tantivy's BM25 and a numpy product of all vectors, added up, in the process of their caller: a lower bound."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

from benchmarks.peers.memories.embedder import spoken, vectors_of

_WORD = re.compile(r"\w+")
CANDIDATES = 100
DENSE_SHARE = 0.3


class Memory:
    """An index on disk and a file of vectors. All clients share them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "vectors.jsonl"
        self.ids: list[str] = []
        self.vectors: list[list[float]] = []
        self.matrix: Any = None
        self.lock = threading.Lock()

    def start(self) -> None:
        """Open the index, and read the vectors."""
        import tantivy

        (self._folder / "index").mkdir(parents=True, exist_ok=True)
        builder = tantivy.SchemaBuilder()
        builder.add_unsigned_field("place", stored=True)
        builder.add_text_field("text", tokenizer_name="en_stem")
        self.index = tantivy.Index(builder.build(), path=str(self._folder / "index"))
        self.writer = self.index.writer(heap_size=64_000_000, num_threads=1)
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                turn, vector = json.loads(line)
                self.ids.append(turn)
                self.vectors.append(vector)
        self.output = self._file.open("a")

    def client(self) -> _Client:
        """Return the index and the vectors."""
        return _Client(self)

    def settle(self) -> None:
        """Nothing is processed later."""

    def stop(self) -> None:
        """Close the files."""
        self.writer.wait_merging_threads()
        self.output.close()


class _Client:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def add(self, turn: dict[str, Any]) -> None:
        import tantivy

        memory, text = self._memory, spoken(turn)
        with memory.lock:
            (vector,) = vectors_of([text])
            memory.output.write(json.dumps([turn["id"], vector]) + "\n")
            memory.output.flush()
            memory.writer.add_document(tantivy.Document(place=len(memory.ids), text=text))
            memory.writer.commit()
            memory.ids.append(turn["id"])
            memory.vectors.append(vector)
            memory.matrix = None

    def find(self, question: str, count: int) -> list[str]:
        import numpy as np

        memory = self._memory
        with memory.lock:
            if memory.matrix is None:
                memory.matrix = np.array(memory.vectors, dtype=np.float32)
                memory.index.reload()
            matrix, searcher = memory.matrix, memory.index.searcher()
        scores = matrix @ np.array(vectors_of([question])[0], dtype=np.float32) * DENSE_SHARE
        words = " ".join(_WORD.findall(question))
        if words:
            found = searcher.search(memory.index.parse_query(words, ["text"]), CANDIDATES).hits
            best = max((score for score, _ in found), default=1.0)
            for score, address in found:
                scores[searcher.doc(address)["place"][0]] += score / best
        order = np.argsort(-scores)[:count]
        return [memory.ids[place] for place in order.tolist()]
