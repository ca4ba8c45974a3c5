"""The latent truth model: any number of facts of an object may be true, and sources err in two ways.

B. Zhao, B. I. P. Rubinstein, J. Gemmell and J. Han, "A Bayesian approach to discovering truth from conflicting sources
for data integration", PVLDB 5(6) (2012). A fact f is a candidate: an object with a value. A source that speaks of the
object says yes to the fact that it claims and no to all others of the object: o = 1 or 0. Each source n has a false
positive rate φ0_n, which is one less its specificity, and a sensitivity φ1_n:

    φ0_n ~ Beta(α01, α00)     φ1_n ~ Beta(α11, α10)     θ_f ~ Beta(β1, β0)     t_f ~ Bernoulli(θ_f)
    o_nf ~ Bernoulli(φ1_n) where t_f = 1, else Bernoulli(φ0_n)

With n_ij how often source n says j of facts with t = i, a round of Gibbs sampling draws all rates, then all truths:

    φi_n ~ Beta(αi1 + n_i1, αi0 + n_i0)
    p(t_f = 1) / p(t_f = 0) = β1 / β0 · Π_{n on f} (φ1_n / φ0_n)^o ((1 - φ1_n) / (1 - φ0_n))^(1 - o)

The publication draws one truth after the other with the rates integrated out; the distribution that both sample from
is the same. Here truths are independent given the rates, so all are drawn at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from consilience.claims.encoding import Float
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, positive, whole_number
from consilience.models.order import colours

SMALLEST = 1e-12
"""Rates are at least this and at most one less this, so that they have logarithms."""
MOST_LISTED = 10_000
"""Facts, or sources, beyond which `learned` does not list them one by one."""


@dataclass(frozen=True)
class LTM(Rival):
    """Sources miss true facts and claim false ones at rates of their own; several facts may be true.

    The share of a candidate is the probability that it is true, made to sum to one for each object. A source's
    reliability is its precision: how probable it is that what it claims is true. `learned` has the sensitivity and the
    specificity of each source and the probability of each fact, unless there are too many.
    """

    name: ClassVar[str] = "ltm"
    cites: ClassVar[str] = "Zhao, Rubinstein, Gemmell and Han, PVLDB 5(6), 2012"

    false_positive: tuple[float, float] = (10.0, 1000.0)
    """α0 = (α01, α00): prior counts of false facts that a source says yes and no to, for `prior_facts` facts."""
    sensitivity: tuple[float, float] = (50.0, 50.0)
    """α1 = (α11, α10): prior counts of true facts that a source says yes and no to."""
    truth: tuple[float, float] = (10.0, 10.0)
    """β = (β1, β0): prior counts of true and false facts."""
    prior_facts: int = 2420
    """The counts of `false_positive` grow in proportion to the facts; they are for so many of them."""
    rounds: int = 100
    """Rounds of Gibbs sampling."""
    burn_in: int = 20
    """Rounds at the beginning that are not counted."""
    gap: int = 4
    """Rounds between two that are counted."""

    def __post_init__(self) -> None:
        for setting in ("false_positive", "sensitivity", "truth"):
            counts: Any = getattr(self, setting)
            if not isinstance(counts, tuple | list) or len(counts) != 2:
                raise SettingsError(setting, "two numbers", counts)
            for count in counts:
                positive(setting, count)
        whole_number("prior_facts", self.prior_facts, 1)
        whole_number("rounds", self.rounds, 1)
        whole_number("burn_in", self.burn_in, 0)
        whole_number("gap", self.gap, 0)
        if self.burn_in >= self.rounds:
            raise SettingsError("burn_in", f"less than rounds, {self.rounds}", self.burn_in)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Sample rates and truths in turn; average the probabilities of the truths."""
        claims = table.claims
        source_colour, kind = colours(claims, table.possible)
        source_order, fact_order = (np.argsort(each, kind="stable") for each in (source_colour, kind))
        rng = np.random.default_rng(seed)
        scale = claims.n_candidates / self.prior_facts
        prior = np.array([[a * scale for a in self.false_positive], self.sensitivity])
        n_facts = table.sum_by_source(table.domain_size[table.claim_object].astype(np.float64))

        def counts(true: Float) -> Float:
            """(2, 2, n_sources) n_ij + αij: of false facts, then true ones, how many the source says yes and no to."""
            yes = table.sum_over_claims(true)
            n_true = table.sum_by_source(table.sum_by_object(true)[table.claim_object])
            says_yes = np.stack([table.claims_of_source - yes, yes])
            says_no = np.stack([n_facts - n_true, n_true]) - says_yes
            said: Float = np.stack([says_yes, says_no], axis=1) + prior[:, :, None]
            return said

        def probability(true: Float) -> Float:
            """(n_candidates,) that each fact is true, given rates drawn for these truths."""
            rate = np.empty((2, claims.n_sources))
            said = counts(true)[:, :, source_order]
            rate[:, source_order] = np.clip(rng.beta(said[:, 0], said[:, 1]), SMALLEST, 1 - SMALLEST)
            no = np.log1p(-rate[1]) - np.log1p(-rate[0])
            yes = np.log(rate[1]) - np.log(rate[0])
            if_no_one_claims = np.add.reduceat(no[claims.claim_source], claims.first_claim[:-1])
            log_odds = (
                np.log(self.truth[0] / self.truth[1])
                + table.to_candidates(if_no_one_claims)
                + table.sum_over_claimants(yes - no)
            )
            return table.clamp(expit(log_odds))

        def draw(probable: Float) -> Float:
            """(n_candidates,) truths, 1 or 0; the draws follow what is claimed of facts, not their names."""
            chance = np.empty(claims.n_candidates)
            chance[fact_order] = rng.random(claims.n_candidates)
            return (chance < probable).astype(np.float64)

        true = draw(table.clamp(np.full(claims.n_candidates, 0.5)))
        total, n_counted = np.zeros(claims.n_candidates), 0
        for i in range(self.rounds):
            probable = probability(true)
            true = draw(probable)
            if i >= self.burn_in and (i - self.burn_in) % (self.gap + 1) == 0:
                total += probable
                n_counted += 1
            tell(i + 1, float("nan"))
        # By symmetry facts of one kind are equally probable. Their mean is a better estimate, and free of names.
        _, of_kind = np.unique(kind, return_inverse=True)
        probable = (np.bincount(of_kind, total) / np.bincount(of_kind) / n_counted)[of_kind]
        (false_yes, false_no), (true_yes, true_no) = counts(probable)
        learned = {
            "sensitivity": true_yes / (true_yes + true_no),
            "specificity": false_no / (false_yes + false_no),
            "probability": probable,
        }
        return Answer(
            table.shares(probable),
            true_yes / (true_yes + false_yes),
            rounds=self.rounds,
            converged=True,
            learned={name: each.tolist() for name, each in learned.items() if len(each) <= MOST_LISTED},
        )
