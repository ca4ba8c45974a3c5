"""TruthFinder: trusted sources make values credible, credible values make sources trusted, like values help each other.

X. Yin, J. Han and P. S. Yu, "Truth discovery with multiple conflicting information providers on the web", IEEE
Transactions on Knowledge and Data Engineering 20(6) (2008). With t_n the trust in source n and s_mz the confidence in
value z of object m, a round is

    τ_n   = -ln(1 - t_n)                                          score of a source                        (3)
    σ_mz  = Σ_{n says z} τ_n                                      score of a value: 1 - s = Π (1 - t_n)     (5)
    σ*_mz = σ_mz + ρ Σ_{y ≠ z} σ_my imp(y → z)                    what the other values of m say of z       (6)
    s_mz  = 1 / (1 + exp(-γ σ*_mz))                               dampened, as sources copy                (8)
    t_n   = mean of s_mz over the claims of n                                                              (1)

The implication is the publication's for lists of authors, with words in the place of authors: of the words of y, the
share that z has too, less a base: imp(y → z) = |y ∩ z| / |y| - base_sim. It is linear in the words, so

    Σ_{y ≠ z} σ_my |y ∩ z| / |y| = Σ_{words w of z} (Σ_{y has w} σ_my / |y|) - σ_mz

costs one pass over the words of the candidates and never K_m² pairs, however many values an object has.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from consilience.claims.encoding import Claims, Float, Int, offsets
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, positive, repeat, whole_number

SMALLEST = 1e-12
"""Nobody is trusted more than 1 minus this: τ of a source that is never doubted would be infinite."""


@dataclass(frozen=True)
class TruthFinder(Rival):
    """Trust in sources and confidence in values make each other; like values support each other.

    A source's reliability is its trust, the mean confidence in what it claims. Confidences of the values of an object
    do not sum to one; the truths are shares of their odds s / (1 - s) = exp(γ σ*), which have the same order and are
    still told apart where many sources make every confidence 1 to the last digit.
    """

    name: ClassVar[str] = "truthfinder"
    cites: ClassVar[str] = "Yin, Han and Yu, IEEE TKDE 20(6), 2008"

    similarity: str | None = "text"
    """What values of one object have in common: "text" is their words; None leaves the implication out."""
    base_sim: float = 0.5
    """Values support each other above this share of common words, and speak against each other below it."""
    rho: float = 0.5
    """Weight of what the other values of the object imply."""
    gamma: float = 0.3
    """Dampening: how much of a claim is a source's own and not copied."""
    initial_trust: float = 0.9
    """Trust in every source at the start."""
    max_rounds: int = 100
    """Rounds at the most."""
    tolerance: float = 1e-5
    """Converged when the trust vector turns or stretches by less than this: 1 minus its cosine to the last one."""

    def __post_init__(self) -> None:
        if self.similarity not in ("text", None):
            raise SettingsError("similarity", '"text" or None', self.similarity)
        for setting in ("base_sim", "rho"):
            share = getattr(self, setting)
            if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) <= 1:
                raise SettingsError(setting, "a number from 0 to 1", share)
        positive("gamma", self.gamma)
        positive("initial_trust", self.initial_trust)
        if not self.initial_trust < 1:
            raise SettingsError("initial_trust", "a number between 0 and 1", self.initial_trust)
        whole_number("max_rounds", self.max_rounds, 1)
        positive("tolerance", self.tolerance)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Rounds of scores and trust; doubt, 1 - t, is what is kept: near full trust it has more digits."""
        claims = table.claims
        common = CommonWords.of(claims) if self.similarity else None

        def score(doubt: Float) -> Float:
            """(n_candidates,) γ σ*"""
            own = table.sum_over_claimants(-np.log(np.maximum(doubt, SMALLEST)))
            if common is None:
                return self.gamma * own
            others = table.to_candidates(table.sum_by_object(own)) - own
            implied = common.support(own) - self.base_sim * others
            return self.gamma * (own + self.rho * implied)

        def step(doubt: Float) -> Float:
            """(n_sources,) 1 - t"""
            false = table.clamp(expit(-score(doubt)), right=0.0, wrong=1.0)
            return table.sum_over_claims(false) / table.claims_of_source

        doubt, rounds, converged = repeat(
            np.full(claims.n_sources, 1 - self.initial_trust), step, _turned,
            max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell,
        )  # fmt: skip
        truth, _ = table.softmax(score(doubt))
        return Answer(truth, 1 - doubt, rounds=rounds, converged=converged)


def _turned(before: Float, now: Float) -> float:
    """1 - cosine of two vectors of trust, given as doubts, with the mean of their squared lengths for the product of
    their lengths. So trust that rises or falls alike for all sources counts as change too: by the cosine alone the
    first round, from equal trust in all, can be the last."""
    t, u = 1 - before, 1 - now
    lengths = float(t @ t + u @ u)
    return float((t - u) @ (t - u)) / max(lengths, SMALLEST)


@dataclass(frozen=True, eq=False)
class CommonWords:
    """The words that two or more candidates of one object have in common, as pairs (candidate, word of its object).

    candidate : (n_pairs,)
    word      : (n_pairs,)      words of different objects are different words
    n_words   : how many those are
    length    : (n_candidates,) words of each candidate, common or not
    n_common  : (n_candidates,) how many of them are common
    """

    candidate: Int
    word: Int
    n_words: int
    length: Float
    n_common: Float

    @classmethod
    def of(cls, claims: Claims) -> CommonWords:
        """Split the values into words, once each, and keep what can be common."""
        first, words = _words_of_values(claims.values)
        n_words = np.diff(first)
        length = n_words[claims.candidate_value].astype(np.float64)
        # A word of one value alone is common to no two candidates: label sets end here, with nothing left.
        kept = np.bincount(words)[words] > 1
        value = np.repeat(np.arange(claims.n_values), n_words)[kept]
        words, first = words[kept], offsets(value, claims.n_values)
        n_kept = np.diff(first)[claims.candidate_value]
        candidate = np.repeat(np.arange(claims.n_candidates, dtype=np.int32), n_kept)
        rank = np.arange(len(candidate)) - np.repeat(np.cumsum(n_kept) - n_kept, n_kept)
        word = words[first[:-1][claims.candidate_value[candidate]] + rank]
        key = claims.candidate_object()[candidate] * (int(words.max(initial=0)) + 1) + word
        _, word, holders = np.unique(key, return_inverse=True, return_counts=True)
        kept = holders[word] > 1
        candidate, word = candidate[kept], word[kept]
        n_common = np.bincount(candidate, minlength=claims.n_candidates).astype(np.float64)
        return cls(candidate, word, len(holders), length, n_common)

    def support(self, score: Float) -> Float:
        """(n_candidates,) Σ over the other candidates of the object: score × share of its words that this one has."""
        by_word = score / self.length
        held = np.bincount(self.word, by_word[self.candidate], minlength=self.n_words)
        total = np.bincount(self.candidate, held[self.word], minlength=len(score))
        return total - by_word * self.n_common


def _words_of_values(values: Sequence[Any]) -> tuple[Int, Int]:
    """(n_values + 1,) where the words of each value begin, and the words, each once a value, as numbers."""
    number: dict[str, int] = {}
    words: list[int] = []
    ends = [0]
    texts = values.to_pylist() if hasattr(values, "to_pylist") else values
    for text in texts:
        words.extend({number.setdefault(word, len(number)) for word in words_of(str(text))})
        ends.append(len(words))
    return np.array(ends, np.int64), np.array(words, np.int64)


def words_of(text: str) -> list[str]:
    """Runs of letters, marks and digits, without case, of any script; a text without letters (a number, a time, a
    date) is one word: 3.5 and 3.7 have nothing in common."""
    text = text.casefold()
    if not any(map(str.isalpha, text)):
        return [text]
    return text.translate(_SEPARATED).split()


class _Separated(dict[int, int]):
    """For str.translate: what is no letter, mark or digit becomes a space."""

    def __missing__(self, code: int) -> int:
        self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else ord(" ")
        return self[code]


_SEPARATED = _Separated()
