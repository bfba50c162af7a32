"""Fit the weights of the search over statements: `python -m benchmarks.knowledge.statement_weights`.

The weights are those of `fleet/recall/statement_evidence.py`, fitted on both development sets with and without vectors.
That of a statement is a softmax over the statements of a question, and that of an answer a logistic regression in which
questions with and without an answer weigh the same. It prints the weights, and the precision by the order that they
give, also when they are fitted on one set and judged on the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.knowledge.relevance import SECOND, SEEN, UNANSWERABLE, answers
from benchmarks.knowledge.sets import RelevanceQuestion, read_bank, read_questions
from ebbtide.fleet.recall.statement_evidence import AnswerEvidence, Evidence, log_odds
from ebbtide.fleet.recall.statement_matches import StatementMatches
from ebbtide.telemetry import configure_log

Matrix = NDArray[np.float64]
STEPS = 2000
DECAY = 0.002
"""Weight of the squared weights in the loss."""

LOST = {"auto": 0.015, "off": 0.13}
"""By embedder, the share of the questions with an answer that the default floor may reject. Words alone miss more
paraphrases, and lost as many with the rules before.
"""
FLOOR = 0.3
"""The default of `search.min_relevance`. The constant is set so that this probability loses `LOST`."""


class Case:
    """A question with the evidence for each statement, and for an answer."""

    def __init__(
        self, question: RelevanceQuestion, statements: Matrix, right: Matrix, answer: Matrix
    ) -> None:
        """Keep one question."""
        self.question, self.statements, self.right, self.answer = question, statements, right, answer


def cases_of(name: str, embedding: str) -> list[Case]:
    """Return the questions of a set with an answer or without."""
    bank, questions = read_bank(name), read_questions(name)
    if name == SEEN:
        questions = [*questions, *read_questions(UNANSWERABLE)]
    recorded: list[tuple[dict[int, Evidence], AnswerEvidence]] = []
    original = StatementMatches.evidence

    def evidence(self: StatementMatches, hits: Any) -> tuple[dict[int, Evidence], AnswerEvidence]:
        recorded.append(original(self, hits))
        return recorded[-1]

    labels: dict[tuple[str, int], str] = {}
    with patch.object(StatementMatches, "evidence", evidence):
        asyncio.run(answers(questions, bank, embedding=embedding, labels=labels))
    cases = []
    for question, (statements, answer) in zip(questions, recorded, strict=True):
        right = [float(labels.get((question.agent, one), "") in question.answers) for one in statements]
        rows = np.array(list(statements.values()), dtype=np.float64).reshape(-1, len(Evidence._fields))
        cases.append(Case(question, rows, np.array(right), np.array(answer, dtype=np.float64)))
    return cases


def fitted_order(cases: Sequence[Case]) -> Matrix:
    """Return the weights of the evidence for a statement."""
    known = [one for one in cases if one.right.any()]

    def gradient(weights: Matrix) -> Matrix:
        total = np.zeros_like(weights)
        for one in known:
            scores = one.statements @ weights
            shares = np.exp(scores - scores.max())
            total += one.statements.T @ (shares / shares.sum() - one.right / one.right.sum())
        return total / len(known) + DECAY * weights

    return _descended(gradient, len(Evidence._fields))


def fitted_answer(cases: Sequence[Case], lost: float) -> Matrix:
    """Return the weights of the evidence for an answer."""
    rows = np.stack([one.answer for one in cases])
    expected = np.array([bool(one.question.answers) for one in cases], dtype=np.float64)
    share = expected.mean()
    worth = np.where(expected > 0, 0.5 / share, 0.5 / (1 - share))

    def gradient(weights: Matrix) -> Matrix:
        error = (1 / (1 + np.exp(-rows @ weights)) - expected) * worth
        decay = DECAY * weights
        decay[-1] = 0.0
        gradient_: Matrix = rows.T @ error / len(rows) + decay
        return gradient_

    weights = _descended(gradient, rows.shape[1])
    weights[-1] += log_odds(FLOOR) - float(np.quantile(rows[expected > 0] @ weights, lost))
    return weights


def _descended(gradient: Any, size: int) -> Matrix:
    weights, mean, spread = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, STEPS + 1):  # Adam
        now = gradient(weights)
        mean = 0.9 * mean + 0.1 * now
        spread = 0.99 * spread + 0.01 * now**2
        weights -= 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-8)
    return weights


def found_first(cases: Sequence[Case], weights: Matrix) -> float:
    """Return the share of the right statements among the first five of the questions with an answer."""
    shares = []
    for one in cases:
        if one.question.answers:
            first = np.argsort(-(one.statements @ weights), kind="stable")[:5]
            shares.append(one.right[first].sum() / min(5, len(one.question.answers)))
    return float(np.mean(shares))


def rejected(cases: Sequence[Case], weights: Matrix, share: float) -> float:
    """Return the share of the questions without an answer that a floor rejects which loses `share` of the others."""
    scores = np.array([one.answer @ weights for one in cases])
    has_answer = np.array([bool(one.question.answers) for one in cases])
    floor = np.quantile(scores[has_answer], share)
    return float((scores[~has_answer] < floor).mean())


def main() -> None:
    """Fit and print."""
    configure_log("error", "json")
    for embedding in ("auto", "off"):
        sets = {name: cases_of(name, embedding) for name in (SEEN, SECOND)}
        every = [one for cases in sets.values() for one in cases]
        order, answer = fitted_order(every), fitted_answer(every, LOST[embedding])
        print(f"embedding.model={embedding}")
        print("  ", Evidence(*np.round(order, 2).tolist()))
        print("  ", AnswerEvidence(*np.round(answer, 2).tolist()))
        for name, cases in sets.items():
            other = [one for each, some in sets.items() if each != name for one in some]
            for what, fitted in (("both", every), ("the other set", other)):
                by_order, by_answer = fitted_order(fitted), fitted_answer(fitted, LOST[embedding])
                print(
                    f"   {name}, fitted on {what}: {found_first(cases, by_order):.1%} found first,",
                    f"rejected without an answer: {rejected(cases, by_answer, 0.01):.0%} at 1% lost,",
                    f"{rejected(cases, by_answer, 0.03):.0%} at 3%",
                )


if __name__ == "__main__":
    main()
