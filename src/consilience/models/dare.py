"""DARE: ability of sources, difficulty and discrimination of objects, as in a test without an answer key.

Y. Bachrach, T. Graepel, T. Minka and J. Guiver, "How to grade a test without knowing the answers: a Bayesian graphical
model for adaptive crowdsourcing and aptitude testing", ICML 2012. Source n knows the truth of object m, c_nm, the more
likely the more its ability exceeds the object's difficulty (1); who does not know guesses among all K_m values:

    a_n ~ N(μ_a, σ_a²)      d_m ~ N(μ_d, σ_d²)      τ_m ~ Gamma(k, θ)      t_m uniform
    P(c_nm) = Φ(√τ_m (a_n - d_m))                                                                          (1)
    P(y_nm = z | t_m) = P(c_nm) [z = t_m] + (1 - P(c_nm)) / K_m

Inference is expectation propagation, as published, with Gaussian messages to the abilities. What belongs to one object,
(t, d, τ), makes one factor and is summed exactly, over a grid of d and τ. On a claim whose source has the cavity
N(μ, v), with s² = v + 1/τ and x = (μ - d) / s:

    f_y=z = Φ(x) + Φ(-x) / K_m         f_y≠z = Φ(-x) / K_m              what the claim says where z is true
    q(t = z, d, τ) ∝ p(d) p(τ) Π_{n on m} f
    g = Σ_z,d,τ q ∂f/∂μ / f            h = Σ_z,d,τ q ∂²f/∂μ² / f - g²

The ability's mean and variance become μ + v g and v + v² h, and the message is what takes the cavity there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from consilience.claims.encoding import Float, Int, Shard
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, positive, repeat, whole_number

BLOCK = 2_048
"""Claims worked on at once: arrays of claims times grid points stay in the processor's cache."""
WIDTH, STEP = 4.5, 0.5
"""Difficulties are summed this many standard deviations to either side, in steps of this many."""
N_DISCRIMINATIONS = 2
"""Points of the Gauss rule for discriminations: it has their first three moments."""
SMALLEST = 1e-300
"""The least probability of not knowing: its logarithm is taken."""
SHARPEST = 1e4
"""σ_d² times the mean discrimination, at the most: the steps of difficulty grow with its root, and memory with them."""


@dataclass(frozen=True)
class Dare(Rival):
    """Sources have abilities, objects difficulties; who does not know the truth guesses.

    The reliability of a source is the probability that it knows the truth of a new object, with the 90 % interval that
    its ability gives.
    """

    name: ClassVar[str] = "dare"
    cites: ClassVar[str] = "Bachrach, Graepel, Minka and Guiver, ICML 2012"
    probabilistic: ClassVar[bool] = True

    ability_mean: float = 0.0
    """μ_a, prior mean of abilities."""
    ability_variance: float = 1.0
    """σ_a², prior variance of abilities."""
    difficulty_mean: float = 0.0
    """μ_d, prior mean of difficulties."""
    difficulty_variance: float = 1.0
    """σ_d², prior variance of difficulties."""
    discrimination_mean: float = 1.0
    """k θ, prior mean of discriminations."""
    discrimination_variance: float = 0.01
    """k θ², prior variance of discriminations."""
    damping: float = 0.0
    """Share of its old value that a message keeps in a round: more is slower and steadier."""
    max_rounds: int = 200
    """Rounds of expectation propagation at the most."""
    tolerance: float = 1e-4
    """Converged when a round moves no truth's probability by more than this."""

    def __post_init__(self) -> None:
        for mean in ("ability_mean", "difficulty_mean"):
            _within(mean, getattr(self, mean), "a finite number", np.finfo(np.float64).min, np.inf)
        for setting in (
            "ability_variance",
            "difficulty_variance",
            "discrimination_mean",
            "discrimination_variance",
            "tolerance",
        ):
            positive(setting, getattr(self, setting))
        if self.difficulty_variance * self.discrimination_mean > SHARPEST:
            expected = f"at most {SHARPEST:g} / difficulty_variance: sharper ones take too much memory"
            raise SettingsError("discrimination_mean", expected, self.discrimination_mean)
        whole_number("max_rounds", self.max_rounds, 1)
        _within("damping", self.damping, "a number from 0 to less than 1", 0.0, 1.0)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Pass messages from objects to abilities and back. Nothing is climbed: expectation propagation has fixed
        points, but no bound that rises on the way to them."""
        passing = Passing(self, table)
        truth, rounds, converged = repeat(
            np.zeros(table.claims.n_candidates),
            lambda truth: passing.round(),
            lambda before, after: float(np.abs(after - before).max()),
            max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell,
        )  # fmt: skip
        return Answer(truth, passing.reliability(), rounds, converged)


@dataclass(frozen=True, eq=False)
class Block:
    """A run of consecutive objects, and where its claims stand in the table."""

    shard: Shard
    claims: slice

    @cached_property
    def claim_object(self) -> Int:
        """(n_claims,) the object of each claim, counted within the block."""
        return np.repeat(np.arange(self.shard.n_objects), np.diff(self.shard.first_claim))

    @cached_property
    def by_candidate(self) -> Any:
        """(n_candidates, n_claims) sparse: which claims are for a candidate."""
        claimed = self.shard.claim_candidate
        cells = claimed, np.arange(len(claimed))
        return csr_array((np.ones(len(claimed)), cells), shape=(self.shard.n_candidates, len(claimed)))


class Passing:
    """The messages of all claims to their sources' abilities: those change in place, all else is fixed.

    precision, shift : (n_claims,) 1 / variance and mean / variance
    """

    def __init__(self, model: Dare, table: Segments) -> None:
        self.model, self.table = model, table
        self.precision, self.shift = np.zeros((2, table.claims.n_claims))
        blocks, start = [], 0
        for shard in table.claims.shards(1 + table.claims.n_claims // BLOCK, table.log_truth):
            blocks.append(Block(shard, slice(start, start + len(shard.claim_source))))
            start = blocks[-1].claims.stop
        self.blocks = blocks
        # Steps that are fine both for the prior of difficulties and for the rise of Φ.
        finer = max(1.0, np.sqrt(model.difficulty_variance * model.discrimination_mean))
        steps = np.ceil(WIDTH * finer / STEP)
        deviation = np.arange(-steps, steps + 1) * STEP / finer
        self.difficulty = model.difficulty_mean + np.sqrt(model.difficulty_variance) * deviation
        discrimination, weight = gamma_rule(model.discrimination_mean, model.discrimination_variance)
        self.noise = 1 / discrimination
        log_p = np.log(weight)[:, None] - deviation**2 / 2
        self.log_p = log_p.ravel() - np.log(np.exp(log_p).sum())

    def abilities(self) -> tuple[Float, Float]:
        """(n_sources,) precision and shift of q(a_n): the prior and all messages."""
        prior = 1 / self.model.ability_variance
        return (
            prior + self.table.sum_by_source(self.precision),
            prior * self.model.ability_mean + self.table.sum_by_source(self.shift),
        )

    def reliability(self) -> Float:
        """(n_sources, 3) the probability of knowing, and at the ends of the ability's 90 % interval."""
        precision, shift = self.abilities()
        advantage, spread = shift / precision - self.model.difficulty_mean, 1 / np.sqrt(precision)
        noise = self.model.difficulty_variance + 1 / self.model.discrimination_mean
        low, high = (ndtr((advantage + at * spread) / np.sqrt(noise)) for at in ndtri([0.05, 0.95]))
        return np.column_stack([ndtr(advantage / np.sqrt(noise + spread**2)), low, high])

    def round(self) -> Float:
        """(n_candidates,) the truths; on the way all messages are renewed, each with the others as they were."""
        damping, truth = self.model.damping, []
        precision, shift = self.abilities()
        for block in self.blocks:
            source, mine = block.shard.claim_source, block.claims
            variance = 1 / (precision[source] - self.precision[mine])
            mean = (shift[source] - self.shift[mine]) * variance
            found, g, h = self.object_factors(block, mean, variance)
            truth.append(found)
            # A claim may leave its source's ability less certain than it was. A message that said so would have a
            # negative variance, and with many of them so would the ability: it says nothing then but the mean.
            renewed = np.maximum(-h / (1 + variance * h), 0.0)
            self.precision[mine] += (1 - damping) * (renewed - self.precision[mine])
            self.shift[mine] += (1 - damping) * (g + (mean + variance * g) * renewed - self.shift[mine])
        return self.table.shares(np.concatenate(truth))

    def object_factors(self, block: Block, mean: Float, variance: Float) -> tuple[Float, Float, Float]:
        """(n_candidates,) q(t), and (n_claims,) g and h, of a block; mean and variance are the cavities'."""
        shard, n_claims = block.shard, len(mean)
        size, first = np.diff(shard.first_candidate), shard.first_candidate[:-1]
        guess = (1 / size)[block.claim_object, None]
        slope = 1 / np.sqrt(variance[:, None] + self.noise)
        x = ((mean[:, None] - self.difficulty)[:, None, :] * slope[:, :, None]).reshape(n_claims, -1)
        unknown = np.maximum(ndtr(-x), SMALLEST)
        known = 1 - unknown * (1 - guess)
        log_unknown = np.log(unknown * guess)
        q: Float = block.by_candidate @ (np.log(known) - log_unknown)
        wrong = np.add.reduceat(log_unknown, shard.first_claim[:-1], axis=0) + self.log_p
        q += np.repeat(wrong, size, axis=0) + shard.log_truth[:, None]
        q -= np.repeat(np.maximum.reduceat(q.max(axis=1), first), size)[:, None]
        np.exp(q, out=q)
        q /= np.repeat(np.add.reduceat(q.sum(axis=1), first), size)[:, None]
        own = q[shard.claim_candidate]
        other = np.add.reduceat(q, first, axis=0)[block.claim_object] - own
        density = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
        density *= own * (1 - guess) / known - other / unknown
        by_noise = n_claims, len(self.noise), -1
        g = (density.reshape(by_noise).sum(axis=2) * slope).sum(axis=1)
        density *= x
        bend = (density.reshape(by_noise).sum(axis=2) * slope**2).sum(axis=1)
        return q.sum(axis=1), g, -bend - g * g


def gamma_rule(mean: float, variance: float, n_points: int = N_DISCRIMINATIONS) -> tuple[Float, Float]:
    """The Gauss rule of a Gamma distribution, by Golub and Welsch: points, and weights that sum to one."""
    shape, i = mean**2 / variance, np.arange(n_points)
    beside = np.sqrt(i[1:] * (i[1:] + shape - 1))
    points, vectors = np.linalg.eigh(np.diag(2 * i + shape) + np.diag(beside, 1) + np.diag(beside, -1))
    return points * variance / mean, vectors[0] ** 2


def _within(setting: str, given: Any, expected: str, least: float, below: float) -> None:
    """A number from `least` to less than `below`, or a SettingsError."""
    if isinstance(given, bool) or not isinstance(given, Real) or not least <= float(given) < below:
        raise SettingsError(setting, expected, given)
