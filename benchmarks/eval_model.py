"""How good is a language model for Ebbtide? `python -m benchmarks.eval_model --url http://127.0.0.1:11434`.

Runs the three tasks over sample conversations, on a server's model and on the built-in one. It measures what needs no
opinion: replies that parse, target lengths, keywords, and facts (names, numbers, dates) of the original that remain
after shortening to half. Without a server it also measures the built-in model on the labelled data (`eval_labels.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.eval_labels import report
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import BadReply, LanguageModel, ModelUnavailable, Utterance
from ebbtide.language.served.chat import ServerOptions
from ebbtide.language.served.limiter import PriorityLimiter
from ebbtide.language.served.model import ServedModel
from ebbtide.language.served.retry import ModelClient, RetryPolicy
from ebbtide.language.served.server import KINDS

SAMPLES = Path(__file__).with_name("eval_model_samples.json")


@dataclass
class Score:
    """The measurements of one model on the samples."""

    name: str
    segments: int = 0
    failed: int = 0
    parse_rates: dict[str, float] = field(default_factory=dict)
    length_kept: int = 0
    shortened: int = 0
    keywords: int = 0
    processed: int = 0
    facts: int = 0
    facts_kept: int = 0
    relations: int = 0
    relations_named: int = 0
    seconds: float = 0.0
    tokens: int = 0

    def rows(self) -> list[tuple[str, str]]:
        """Return the rows to show."""
        rates = ", ".join(f"{task} {rate:.0%}" for task, rate in self.parse_rates.items())
        each = max(1, self.segments)
        return [
            ("replies that parse", rates or "-"),
            ("questions given up", str(self.failed)),
            ("segments", str(self.segments)),
            ("target length kept", _share(self.length_kept, self.shortened)),
            ("keywords a memory", f"{self.keywords / max(1, self.processed):.1f}"),
            ("facts kept at 50 %", _share(self.facts_kept, self.facts)),
            ("relations named", _share(self.relations_named, self.relations)),
            ("seconds a segment", f"{self.seconds / each:.2f}"),
            ("tokens a segment", f"{self.tokens / each:.0f}" if self.tokens else "-"),
        ]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "-"


def load_samples() -> list[dict[str, Any]]:
    """Return the sample conversations with their facts."""
    samples: list[dict[str, Any]] = json.loads(SAMPLES.read_text(encoding="utf-8"))
    return samples


async def evaluate(model: LanguageModel, name: str, samples: list[dict[str, Any]]) -> Score:
    """Run the three tasks over the samples."""
    score = Score(name)
    asking = ModelClient(model, PriorityLimiter(1), RetryPolicy(max_retries=2, max_bad_replies=1))
    begun = time.monotonic()
    for sample in samples:
        said = [Utterance(m["role"], m.get("speaker", ""), m["content"]) for m in sample["messages"]]
        await _evaluate_segments(asking, score, said)
        for message in sample["messages"]:
            await _evaluate_shortening(asking, score, message["content"], sample["facts"])
    score.seconds = time.monotonic() - begun
    for task, tally in asking.tallies.items():
        replies = tally.parsed + tally.bad_replies
        score.parse_rates[task] = tally.parsed / replies if replies else 0.0
    if isinstance(model, ServedModel):
        usage = getattr(model.chat, "usage", None)
        score.tokens = usage.prompt_tokens + usage.reply_tokens if usage else 0
    return score


async def _evaluate_segments(asking: ModelClient, score: Score, said: list[Utterance]) -> None:
    try:
        segments = await asking.segment(said, max_chars=200)
    except BadReply:
        score.failed += 1
        return
    score.segments += len(segments)
    for before, segment in zip([None, *segments], segments, strict=False):
        try:
            processed = await asking.process(segment.text)
            score.processed += 1
            score.keywords += len(processed.keywords)
            if before is not None and not asking.names_by_rules:
                [name] = await asking.relate(segment.text, [before.text])
                score.relations += 1
                score.relations_named += bool(name)
        except BadReply:
            score.failed += 1


async def _evaluate_shortening(asking: ModelClient, score: Score, text: str, facts: list[str]) -> None:
    held = [fact for fact in facts if fact in text]
    if len(text) < 40 or not held:
        return
    score.facts += len(held)
    score.shortened += 1
    try:
        short = (await asking.process(text, target_length=len(text) // 2)).content
    except BadReply:
        score.failed += 1
        return
    score.length_kept += len(short) <= len(text) // 2
    score.facts_kept += sum(fact in short for fact in held)


def show(scores: list[Score]) -> str:
    """Print the scores side by side."""
    names = [row[0] for row in scores[0].rows()]
    columns = [[score.name, *(value for _, value in score.rows())] for score in scores]
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for number, name in enumerate(["", *names]):
        cells = (column[number].ljust(width) for column, width in zip(columns, widths, strict=True))
        lines.append(f"{name:22}" + "  ".join(cells))
    return "\n".join(line.rstrip() for line in lines)


async def main(arguments: argparse.Namespace) -> None:
    """Evaluate the built-in model and, if an address is given, the one on the server."""
    samples = load_samples()[: arguments.limit]
    with ThreadPoolExecutor(1) as pool:
        scores = [await evaluate(BuiltinModel(pool), "builtin", samples)]
    if arguments.url:
        options = ServerOptions(
            arguments.url.rstrip("/").removesuffix("/v1"), arguments.model, arguments.api_key
        )
        model = ServedModel(KINDS[arguments.kind](options))
        try:
            scores.append(await evaluate(model, arguments.model, samples))
        finally:
            await model.close()
    print(json.dumps([asdict(score) for score in scores]) if arguments.json else show(scores))
    if not arguments.url and not arguments.json:
        print(f"\nThe built-in model on the labelled data:\n\n{report()}")


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", default="", help="address of the model server")
    parser.add_argument("--kind", choices=sorted(KINDS), default="ollama")
    parser.add_argument("--model", default="qwen2.5:7b")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--limit", type=int, default=None, help="only so many samples")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        asyncio.run(main(parse()))
    except ModelUnavailable as error:
        sys.exit(f"The model does not answer: {error}")
