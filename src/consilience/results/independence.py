"""Do the sources err together more than independent ones would? A permutation test, given the truths decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from consilience.claims.encoding import Claims, Int

MOST_CLAIMS = 100_000
"""Informative claims that are looked at; of a larger table, objects drawn by the seed."""


@dataclass(frozen=True)
class IndependenceTest:
    """What the test found.

    shared   : Σ over pairs of sources of (objects on which both give the same wrong value)²
    expected : its mean if wrong values did not depend on who errs
    p_value  : share of permutations, the table itself included, with at least as much sharing
    n_claims : claims that could have told: wrong ones, where an object has several and they differ
    """

    shared: float
    expected: float
    p_value: float
    n_claims: int


def independence_test(claims: Claims, decision: Int, permutations: int, seed: int) -> IndependenceTest:
    """Permute, object by object, which of its erring sources gave which of its wrong values.

    If sources are independent given the truth, a wrong value tells nothing of who gave it: wrong values are
    exchangeable among those who err on the object, however popular a mistake is and however often a source errs.
    Copiers share theirs object after object, and squares of pairwise counts notice that.
    """
    claim_object = claims.claim_object()
    wrong = np.flatnonzero(claims.claim_candidate != decision[claim_object])
    object_, source, candidate = (
        claim_object[wrong],
        claims.claim_source[wrong],
        claims.claim_candidate[wrong],
    )
    n_wrong = np.bincount(object_, minlength=claims.n_objects)
    pairs = np.unique(np.column_stack([object_, candidate]), axis=0)
    differ = np.bincount(pairs[:, 0], minlength=claims.n_objects) > 1
    rng = np.random.default_rng(seed)
    informative = rng.permutation(np.flatnonzero(differ))
    enough = np.searchsorted(np.cumsum(n_wrong[informative]), MOST_CLAIMS) + 1
    keep = np.isin(object_, informative[:enough])
    object_, source, candidate = object_[keep], source[keep], candidate[keep]
    if not len(object_):
        return IndependenceTest(0.0, 0.0, 1.0, 0)

    def sharing(values: Int) -> float:
        given = sparse.csr_array(
            (np.ones(len(source)), (source, values)), shape=(claims.n_sources, claims.n_candidates)
        )
        together = given @ given.T
        return float((together.power(2).sum() - (together.diagonal() ** 2).sum()) / 2)

    shared = sharing(candidate)
    order = np.argsort(object_, kind="stable")
    null = np.empty(permutations)
    for i in range(permutations):
        shuffled = np.empty_like(candidate)
        shuffled[order] = candidate[np.lexsort((rng.random(len(object_)), object_))]
        null[i] = sharing(shuffled)
    p_value = (1 + np.sum(null >= shared)) / (1 + permutations)
    return IndependenceTest(shared, float(null.mean()), float(p_value), len(object_))
