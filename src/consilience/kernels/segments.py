"""Sums over the claims of a source, a candidate or an object: what every model but MSS is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consilience.claims.encoding import LARGEST_INDEX, Claims, Float, Int, offsets


@dataclass(frozen=True, eq=False)
class Segments:
    """Claims seen from all sides. A name says where its values lie: on claims, candidates, objects or sources.

    log_truth : (n_candidates,) ln p(t_m = z): uniform, or -inf where a known truth rules z out
    is_known  : (n_objects,) whose truth is known; None where no one's is
    """

    engine: ClassVar[str] = "numpy"
    """What computes the sums."""

    claims: Claims
    log_truth: Float
    is_known: NDArray[np.bool_] | None = None

    def labels(self) -> Labels:
        """The table as one of labels that all objects share."""
        return Labels.of(self)

    @cached_property
    def claim_object(self) -> Int:
        """(n_claims,) the object of each claim."""
        return self.claims.claim_object()

    @cached_property
    def domain_size(self) -> Int:
        """(n_objects,) K_m: how many candidates each object has."""
        return np.diff(self.claims.first_candidate)

    @property
    def has_common_labels(self) -> bool:
        """Whether every object may have every value."""
        return self.claims.domain != "claimed" and bool(np.all(self.domain_size == self.claims.n_values))

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """(n_candidates,) false where a known truth rules the candidate out."""
        return np.isfinite(self.log_truth)

    @cached_property
    def claims_of_source(self) -> Float:
        """(n_sources,) how many claims each source makes."""
        return np.bincount(self.claims.claim_source, minlength=self.claims.n_sources).astype(np.float64)

    @cached_property
    def claims_of_object(self) -> Float:
        """(n_objects,) how many claims there are on each object."""
        return np.diff(self.claims.first_claim).astype(np.float64)

    @cached_property
    def votes(self) -> Float:
        """(n_candidates,) how many claims each candidate has."""
        return np.bincount(self.claims.claim_candidate, minlength=self.claims.n_candidates).astype(np.float64)

    def sum_by_source(self, on_claims: Float) -> Float:
        """(n_sources,)"""
        return _sum_by(self.claims.claim_source, on_claims, self.claims.n_sources)

    def sum_by_candidate(self, on_claims: Float) -> Float:
        """(n_candidates,)"""
        return _sum_by(self.claims.claim_candidate, on_claims, self.claims.n_candidates)

    def sum_over_claims(self, on_candidates: Float) -> Float:
        """(n_sources,): Σ over a source's claims of what holds for the candidates claimed."""
        return self.sum_by_source(on_candidates[self.claims.claim_candidate])

    def sum_over_claimants(self, on_sources: Float) -> Float:
        """(n_candidates,): Σ over those who claim a candidate of what holds for the sources."""
        return self.sum_by_candidate(on_sources[self.claims.claim_source])

    def sum_by_object(self, on_candidates: Float) -> Float:
        """(n_objects,)"""
        total: Float = np.add.reduceat(on_candidates, self.claims.first_candidate[:-1])
        return total

    def highest_by_object(self, on_candidates: Float) -> Float:
        """(n_objects,)"""
        highest: Float = np.maximum.reduceat(on_candidates, self.claims.first_candidate[:-1])
        return highest

    def to_candidates(self, on_objects: Float) -> Float:
        """(n_candidates,) what holds for an object, at each of its candidates."""
        return np.repeat(on_objects, self.domain_size)

    def shares(self, on_candidates: Float) -> Float:
        """(n_candidates,) weights made to sum to one for each object; ruled-out candidates get none, and where nothing
        is left all possible ones get the same."""
        weight = np.where(self.possible, on_candidates, 0.0)
        total = self.sum_by_object(weight)
        weight = np.where(self.to_candidates(total) > 0, weight, self.possible)
        return weight / self.to_candidates(self.sum_by_object(weight))

    def softmax(self, log_weight: Float) -> tuple[Float, Float]:
        """(n_candidates,) shares of exp(log_weight), and (n_objects,) ln of their sums; ruled-out ones get none."""
        log_weight = np.where(self.possible, log_weight, -np.inf)
        highest = self.highest_by_object(log_weight)
        weight = np.exp(log_weight - self.to_candidates(highest))
        total = self.sum_by_object(weight)
        return weight / self.to_candidates(total), highest + np.log(total)

    def clamp(self, score: Float, right: float = 1.0, wrong: float = 0.0) -> Float:
        """(n_candidates,) scores as they are, but where the truth is known: `right` for it, `wrong` for all others."""
        if self.is_known is None:
            return score
        known = np.repeat(self.is_known, self.domain_size)
        return np.where(known, np.where(self.possible, right, wrong), score)


@dataclass(frozen=True, eq=False)
class Labels:
    """Claims on a label set that all objects share, dense in labels: for models of who confuses what with what.

    A *habit* is a pair (source, label it said). Claims of one habit are told apart by nothing but their objects.

    n_labels       : V
    possible       : (n_objects, n_labels)   what the truth may be
    claim_habit    : (n_claims,)
    habit_source   : (n_habits,)
    habit_label    : (n_habits,)
    first_habit    : (n_sources + 1,)        habits of source n are first_habit[n] : first_habit[n + 1]
    """

    segments: Segments
    n_labels: int
    possible: NDArray[np.bool_]
    claim_habit: Int
    habit_source: Int
    habit_label: Int
    first_habit: Int

    @classmethod
    def of(cls, segments: Segments) -> Labels:
        """Labels are the values of all domains; a value that is not in an object's domain cannot be its truth."""
        claims = segments.claims
        n_labels = claims.n_values
        possible = np.zeros((claims.n_objects, n_labels), np.bool_)
        possible[claims.candidate_object(), claims.candidate_value] = segments.possible
        key = claims.claim_source.astype(np.int64) * n_labels + claims.candidate_value[claims.claim_candidate]
        is_habit = np.zeros(claims.n_sources * n_labels, np.bool_)
        is_habit[key] = True
        habits = np.flatnonzero(is_habit)
        claim_habit = (np.cumsum(is_habit, dtype=np.int32) - np.int32(1))[key]
        return cls(
            segments=segments,
            n_labels=n_labels,
            possible=possible,
            claim_habit=claim_habit,
            habit_source=habits // n_labels,
            habit_label=habits % n_labels,
            first_habit=offsets(habits // n_labels, claims.n_sources),
        )

    @property
    def said(self) -> Int:
        """(n_claims,) the label claimed."""
        return self.habit_label[self.claim_habit]

    @cached_property
    def claims_of_habit(self) -> Int:
        """(n_habits,) how many claims each has."""
        return np.bincount(self.claim_habit, minlength=len(self.habit_source))

    @cached_property
    def _objects_by_habits(self) -> sparse.csr_array:
        """(n_objects, n_habits) a one for every claim."""
        claims = self.segments.claims
        first = claims.first_claim if claims.n_claims > LARGEST_INDEX else claims.first_claim.astype(np.int32)
        shape = (claims.n_objects, len(self.habit_source))
        return sparse.csr_array((np.ones(claims.n_claims), self.claim_habit, first), shape=shape)

    def sum_by_object(self, on_habits: Float) -> Float:
        """(n_objects, …): Σ over the object's claims of what holds for their habits, (n_habits, …)."""
        total: Float = self._objects_by_habits @ on_habits
        return total

    def sum_by_habit(self, on_objects: Float) -> Float:
        """(n_habits, …): Σ over the habit's claims of what holds for their objects, (n_objects, …)."""
        # Object by object, as claims lie: sums of few habits stay near the processor, all objects would not.
        total: Float = self._objects_by_habits.T @ on_objects
        return total

    def sum_by_source(self, on_habits: Float) -> Float:
        """(n_sources, …) from (n_habits, …)"""
        total: Float = np.add.reduceat(on_habits, self.first_habit[:-1], axis=0)
        return total

    def vote(self) -> Float:
        """(n_objects, n_labels) the share of claims for each label; a known truth has all."""
        return self.from_candidates(self.segments.shares(self.segments.votes))

    def softmax(self, log_weight: Float) -> tuple[Float, Float]:
        """(n_objects, n_labels) shares of exp(log_weight) among the possible, and (n_objects,) ln of their sums."""
        log_weight = np.where(self.possible, log_weight, -np.inf)
        highest = log_weight.max(axis=1, keepdims=True)
        weight = np.exp(log_weight - highest)
        total = weight.sum(axis=1, keepdims=True)
        return weight / total, (highest + np.log(total))[:, 0]

    def to_candidates(self, on_labels: Float) -> Float:
        """(n_candidates,) from (n_objects, n_labels)"""
        claims = self.segments.claims
        return on_labels[claims.candidate_object(), claims.candidate_value]

    def from_candidates(self, on_candidates: Float) -> Float:
        """(n_objects, n_labels) from (n_candidates,): 0 for labels outside the domain"""
        claims = self.segments.claims
        dense = np.zeros((claims.n_objects, self.n_labels))
        dense[claims.candidate_object(), claims.candidate_value] = on_candidates
        return dense


def _sum_by(index: Int, x: Float, n: int) -> Float:
    return np.bincount(index, x, minlength=n).astype(np.float64, copy=False)
