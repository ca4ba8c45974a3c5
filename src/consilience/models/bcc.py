"""Bayesian classifier combination: confusion matrices with priors, and subtypes for sources that err together.

IBCC: H.-C. Kim and Z. Ghahramani, "Bayesian classifier combination", AISTATS 2012, with the variational inference of
E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian combination of multiple imperfect classifiers",
2013. EBCC: Y. Li, B. Rubinstein and T. Cohn, "Exploiting worker correlation for label aggregation in crowdsourcing",
ICML 2019.

Every label z has a share τ_z; objects of label z fall into M subtypes g with shares π_zg; where (z, g) holds, source n
says l with probability v_nzgl. Subtypes make sources dependent given the truth: what fools one on the hard kind of z
may fool others too. IBCC is M = 1.

    τ ~ Dirichlet(α)      π_z ~ Dirichlet(a_π / M, …)      v_nzg ~ Dirichlet(β_z),  β_zl = a_v where l = z, else b_v

Mean field: q(τ) Π q(π_z) Π q(v_nzg) Π q(t_m, g_m), with r_mzg = q(t_m = z, g_m = g), each the best given the others:

    ν_z = α + Σ_m,g r_mzg         η_zg = a_π / M + Σ_m r_mzg         μ_nzgl = β_zl + Σ_{m: n says l} r_mzg
    ln r_mzg = E ln τ_z + E ln π_zg + Σ_{n on m} E ln v_nzg,y_nm + const

Each E ln is ψ(count) - ψ(sum of counts). The bound is Σ_m ln Σ_zg exp(ln r_mzg without its constant) less the
divergences of the Dirichlets from their priors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from consilience.claims.encoding import Float, Int
from consilience.errors import SettingsError, UnsuitableTableError
from consilience.kernels.segments import Labels, Segments
from consilience.kernels.state import expected_log
from consilience.models.base import (
    Answer,
    Ascent,
    Rival,
    Tell,
    ascend,
    common_labels,
    positive,
    whole_number,
)
from consilience.models.order import colours

MOST_CELLS = 100_000_000
"""Of EBCC's largest array; it keeps a few of this size, of eight bytes a cell."""
SMALLEST = 1e-12
"""Prior count of a label that no vote supports: a Dirichlet has no zeros."""


@dataclass(frozen=True, eq=False)
class Counts:
    """The Dirichlet parameters of q. Pairs of a label and a subtype lie side by side: column z * M + g.

    share   : (n_labels,)               ν
    subtype : (n_labels, n_subtypes)    η
    said    : (n_habits, V * M)         μ of what each source said, by truth and subtype
    total   : (n_sources, V * M)        Σ_l μ, over all labels
    """

    share: Float
    subtype: Float
    said: Float
    total: Float


@dataclass(frozen=True, eq=False)
class Combination:
    """The priors on one table, and the steps of the ascent.

    share : (n_labels,) α; subtype : a_π / M; right : a_v; wrong : b_v
    """

    labels: Labels
    n_subtypes: int
    share: Float
    subtype: float
    right: float
    wrong: float

    @cached_property
    def said(self) -> Float:
        """(n_habits, V * M) β: the prior of what each source said, by truth and subtype."""
        is_truth = self.labels.habit_label[:, None] == np.arange(self.labels.n_labels)
        return np.repeat(np.where(is_truth, self.right, self.wrong), self.n_subtypes, axis=1)

    @cached_property
    def total(self) -> float:
        """Σ_l β_zl, the same for all z."""
        return self.right + (self.labels.n_labels - 1) * self.wrong

    def global_step(self, responsible: Float) -> Counts:
        """The Dirichlets that r, (n_objects, V * M), gives."""
        seen: Float = self.labels.sum_by_habit(responsible)
        by_subtype = responsible.sum(axis=0).reshape(-1, self.n_subtypes)
        return Counts(
            share=self.share + by_subtype.sum(axis=1),
            subtype=self.subtype + by_subtype,
            said=self.said + seen,
            total=self.total + self.labels.sum_by_source(seen),
        )

    def local_step(self, given: Counts) -> tuple[Float, tuple[Float, float]]:
        """(n_objects, V * M) r, and with it Σ_m ln of what it was divided by."""
        r: Float = self.labels.sum_by_object(
            digamma(given.said) - digamma(given.total)[self.labels.habit_source]
        )
        r += (expected_log(given.share)[:, None] + expected_log(given.subtype)).ravel()
        r.reshape(*self.labels.possible.shape, -1)[~self.labels.possible] = -np.inf
        highest = r.max(axis=1, keepdims=True)
        r -= highest
        np.exp(r, out=r)
        sums = r.sum(axis=1, keepdims=True)
        r /= sums
        return r, (r, float((highest + np.log(sums)).sum()))

    def bound(self, stats: tuple[Float, float], given: Counts) -> dict[str, float]:
        """The bound's terms where r is what `local_step` makes of `given`."""
        # Labels that a source never said have the same count before and after: they add nothing.
        rise = (
            gammaln(given.said) - gammaln(self.said) - (given.said - self.said) * digamma(given.said)
        ).sum()
        seen = given.total - self.total
        fall = (gammaln(given.total) - gammaln(self.total) - seen * digamma(given.total)).sum()
        return {
            "evidence": stats[1],
            "shares": -_divergence(given.share, self.share),
            "subtypes": -_divergence(given.subtype, np.full_like(given.subtype, self.subtype)),
            "confusion": float(rise - fall),
        }

    def ascend(self, start: Float, max_rounds: int, tolerance: float, tell: Tell) -> Ascent[Counts, Float]:
        """From a first guess of r."""
        return ascend(
            self.global_step(start),
            local_step=self.local_step,
            global_step=lambda stats, given: self.global_step(stats[0]),
            bound=self.bound,
            max_sweeps=max_rounds,
            tolerance=tolerance,
            progress=tell,
        )

    def answer(self, end: Ascent[Counts, Float]) -> Answer:
        """Truths are r summed over subtypes; a source is as reliable as it is likely to be right on a new object."""
        labels, n_subtypes, given = self.labels, self.n_subtypes, end.globals
        truth = end.locals.reshape(-1, labels.n_labels, n_subtypes).sum(axis=2)
        right = self.right / given.total.reshape(-1, labels.n_labels, n_subtypes)
        own = labels.habit_source, labels.habit_label
        said = given.said.reshape(-1, labels.n_labels, n_subtypes)
        right[own] *= said[np.arange(len(said)), labels.habit_label] / self.right
        share = given.share / given.share.sum()
        subtype = given.subtype / given.subtype.sum(axis=1, keepdims=True)
        return Answer(
            labels.segments.shares(labels.to_candidates(truth)),
            np.einsum("z,zg,nzg->n", share, subtype, right),
            rounds=len(end.trace),
            converged=end.converged,
            trace=end.trace,
            learned={"share": share.tolist()} | ({"subtype": subtype.tolist()} if n_subtypes > 1 else {}),
        )


@dataclass(frozen=True)
class IBCC(Rival):
    """Every source has a confusion matrix with a prior, every label a share; variational Bayes.

    The reliability of a source is the posterior mean of its probability of being right on a new object.
    """

    name: ClassVar[str] = "ibcc"
    cites: ClassVar[str] = "Kim and Ghahramani, AISTATS 2012"
    probabilistic: ClassVar[bool] = True

    right_count: float = 4.0
    """a_v, prior count of a source's right answers to each label, as in the scripts of the EBCC publication."""
    wrong_count: float = 1.0
    """b_v, prior count of each wrong answer to each label."""
    share_count: float = 1.0
    """α, prior count of objects of each label."""
    max_rounds: int = 500
    """Rounds of variational inference at the most."""
    tolerance: float = 1e-7
    """Converged when a round raises the bound by less than this share of it."""

    def __post_init__(self) -> None:
        _check(self)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Variational Bayes from majority vote."""
        labels = common_labels(self.name, table)
        share = np.full(labels.n_labels, float(self.share_count))
        model = Combination(labels, 1, share, 1.0, self.right_count, self.wrong_count)
        return model.answer(model.ascend(labels.vote(), self.max_rounds, self.tolerance, tell))


@dataclass(frozen=True)
class EBCC(Rival):
    """IBCC with subtypes of every label, on which sources err together; best of several random starts.

    The reliability of a source is the posterior mean of its probability of being right on a new object.
    """

    name: ClassVar[str] = "ebcc"
    cites: ClassVar[str] = "Li, Rubinstein and Cohn, ICML 2019"
    probabilistic: ClassVar[bool] = True

    n_subtypes: int = 10
    """M, subtypes of every label; those that are not needed stay empty."""
    subtype_count: float = 0.1
    """a_π, prior count of objects of each label, shared among its subtypes: small, so that few are used."""
    right_count: float = 4.0
    """a_v, prior count of a source's right answers to each label and subtype."""
    wrong_count: float = 1.0
    """b_v, prior count of each wrong answer to each label and subtype."""
    share_count: float = 1.0
    """α, prior count of objects of each label."""
    empirical_shares: bool = False
    """Take α from majority vote instead: the number of objects that it gives each label."""
    n_starts: int = 10
    """Random starts, of which the one with the highest bound is kept."""
    max_rounds: int = 500
    """Rounds of variational inference at the most, for each start."""
    tolerance: float = 1e-7
    """Converged when a round raises the bound by less than this share of it."""

    def __post_init__(self) -> None:
        _check(self)
        whole_number("n_subtypes", self.n_subtypes, 1)
        whole_number("n_starts", self.n_starts, 1)
        positive("subtype_count", self.subtype_count)
        if not isinstance(self.empirical_shares, bool):
            raise SettingsError("empirical_shares", "true or false", self.empirical_shares)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Variational Bayes from majority vote, split among subtypes at random."""
        labels = common_labels(self.name, table)
        vote, rng = labels.vote(), np.random.default_rng(seed)
        share = np.full(labels.n_labels, float(self.share_count))
        if self.empirical_shares:
            share = np.maximum(vote.sum(axis=0), SMALLEST)
        subtype = self.subtype_count / self.n_subtypes
        n_cells = table.claims.n_objects * labels.n_labels * self.n_subtypes
        if n_cells > MOST_CELLS:
            raise UnsuitableTableError(
                self.name,
                f"at most {MOST_CELLS:,} cells of objects × labels × subtypes",
                f"{n_cells:,}",
                "use ibcc, or fewer n_subtypes",
            )
        model = Combination(labels, self.n_subtypes, share, subtype, self.right_count, self.wrong_count)
        kinds, kind = np.unique(colours(table.claims)[1], return_inverse=True)
        best: Ascent[Counts, Float] | None = None
        for _ in range(self.n_starts):
            end = model.ascend(
                self._start(labels, rng, kind, len(kinds)), self.max_rounds, self.tolerance, tell
            )
            if best is None or end.bound > best.bound:
                best = end
        assert best is not None  # there is at least one start
        return model.answer(best)

    def _start(self, labels: Labels, rng: np.random.Generator, kind: Int, n_kinds: int) -> Float:
        """(n_objects, V * M) votes, split among the subtypes of each label. Candidates of a kind, whom nothing but
        their names tells apart, share a draw."""
        claims, votes = labels.segments.claims, labels.segments.shares(labels.segments.votes)
        start = np.zeros((claims.n_objects, labels.n_labels, self.n_subtypes))
        split = rng.dirichlet(np.ones(self.n_subtypes), n_kinds)[kind]
        split *= votes[:, None]
        start[claims.candidate_object(), claims.candidate_value] = split
        return start.reshape(claims.n_objects, -1)


def _divergence(counts: Float, prior: Float) -> float:
    """KL(Dirichlet(counts) || Dirichlet(prior)), summed over all rows."""
    total = gammaln(counts.sum(axis=-1)) - gammaln(prior.sum(axis=-1))
    own = gammaln(prior) - gammaln(counts) + (counts - prior) * expected_log(counts)
    return float(total.sum() + own.sum())


def _check(model: Any) -> None:
    """What both models' settings have in common."""
    for count in ("right_count", "wrong_count", "share_count", "tolerance"):
        positive(count, getattr(model, count))
    whole_number("max_rounds", model.max_rounds, 1)
