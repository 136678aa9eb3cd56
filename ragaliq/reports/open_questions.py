"""Questions without a supported answer, grouped by similar wording."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ragaliq.core.results import Status
from ragaliq.records import EvaluationRecord

# Statuses that say why an answer does not answer, the first one that an answer has counts.
_REASONS = {
    Status.NO_CONTEXT: "no context",
    **{status: "declined" for status in Status if status.is_decline},
    Status.ANSWER_WITHHELD: "declined, though the context held the answer",
    Status.EMPTY_ANSWER: "empty answer",
}
_LOW_SUPPORT = "low support"
_SUPPORTED = 0.5  # share of the claims from which on an answer is supported
_MOST_DISTINCT = 20_000
_MOST_GROUPED = 2_000
_WORDINGS = 4
_LONGEST = 300  # characters of a question: some paste a document into it
# Least share of common words of two similar questions (Jaccard 1901). At 0.5 "how long do refunds
# take" and "how long does shipping take" would be similar.
_ALIKE = 0.6


class QuestionGroup(NamedTuple):
    """Questions of similar wording: the most common one, and a few of the others.

    Also the number of their answers, and the reasons why those do not answer, most common first.
    """

    question: str
    answers: int
    reasons: list[tuple[str, int]]
    others: list[str]
    wordings: int


class OpenQuestions:
    """Collects records, and groups the questions without a supported answer.

    Attributes:
        answers: Number of such answers, including those whose question is not known.
        reasons: Counts of the reasons.
        ungrouped: Answers whose question is in no group, because there are too many.
    """

    def __init__(self) -> None:
        self.answers = self.ungrouped = 0
        self.reasons: Counter[str] = Counter()
        self._asked: dict[str, Counter[str]] = {}
        self._spelt: dict[str, str] = {}
        self._seen: set[str] = set()

    def add(self, record: EvaluationRecord) -> None:
        """Add a record; of an answer that was evaluated several times, only the first."""
        reason = _reason(record)
        if not reason or record.observation in self._seen:
            return
        self._seen.add(record.observation)
        self.answers += 1
        self.reasons[reason] += 1
        question = " ".join(record.case.query[:_LONGEST].split()) if record.case else ""
        key = question.casefold().rstrip("?!. ")
        if not key:
            return
        if key not in self._asked and len(self._asked) >= _MOST_DISTINCT:
            self.ungrouped += 1
            return
        self._asked.setdefault(key, Counter())[reason] += 1
        self._spelt.setdefault(key, question)

    def groups(self) -> list[QuestionGroup]:
        """Groups of questions of similar wording, the most frequent first."""
        asked = sorted(self._asked.items(), key=lambda item: -item[1].total())
        self.ungrouped += sum(reasons.total() for _, reasons in asked[_MOST_GROUPED:])
        # Imported only when needed.
        from ragaliq.judges.local.words import FUNCTION_WORDS, read_words

        members: list[list[str]] = []
        leaders: list[frozenset[str]] = []
        having: dict[str, list[int]] = {}
        for key, _ in asked[:_MOST_GROUPED]:
            words = frozenset(read_words(key).stems) - FUNCTION_WORDS or frozenset({key})
            near = Counter(place for word in words for place in having.get(word, ()))
            best = max(
                near, key=lambda place: near[place] / len(words | leaders[place]), default=-1
            )
            if best >= 0 and near[best] / len(words | leaders[best]) >= _ALIKE:
                members[best].append(key)
                continue
            for word in words:
                having.setdefault(word, []).append(len(leaders))
            leaders.append(words)
            members.append([key])
        groups = []
        for keys in members:
            reasons = sum((self._asked[key] for key in keys), Counter[str]())
            groups.append(
                QuestionGroup(
                    question=self._spelt[keys[0]],
                    answers=reasons.total(),
                    reasons=reasons.most_common(),
                    others=[self._spelt[key] for key in keys[1:_WORDINGS]],
                    wordings=len(keys),
                )
            )
        return sorted(groups, key=lambda group: -group.answers)


def _reason(record: EvaluationRecord) -> str:
    """Reason why a record's answer does not answer; empty if it does, or if unknown."""
    statuses = {result.status for result in record.results.values()}
    for status, reason in _REASONS.items():
        if status in statuses:
            return reason
    claims = max((result.claims for result in record.results.values()), key=len, default=())
    judged = [claim for claim in claims if claim.verdict is not None]
    supported = sum(claim.verdict == "SUPPORTED" for claim in judged)
    return _LOW_SUPPORT if judged and supported / len(judged) < _SUPPORTED else ""
