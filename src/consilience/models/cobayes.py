"""CoBayes: sources and objects lie in a space of knowledge, and where they lie says how likely a source is right.

G. Kasneci, J. Van Gael, D. Stern and T. Graepel, "CoBayes: Bayesian knowledge corroboration with assessors of unknown
areas of expertise", WSDM 2011. Linear maps take the description of an assessor and that of a statement into a common
latent space; their inner product decides, through a probit, how likely the assessment is right. A table of claims
describes nobody: all that is known of a source or an object is which one it is. A linear map of that is one latent
vector u_n, with a bias b_n, for every source and one v_m for every object, in a space of A areas. There are no
deduction rules between objects, and an answer is one of K_m values instead of true or false:

    b_n ~ N(μ_b, σ_b²)      u_n ~ N(0, σ_u² I)      v_m ~ N(0, σ_v² I)      t_m uniform
    x_nm ~ N(b_n + u_n · v_m, 1)        n is right about m where x_nm > 0, else says any other value, all alike

Mean field Π q(b_n, u_n) Π q(v_m) Π q(t_m, x_m): variational messages, as published, but for the gate between truth and
answer, which is exact. With s_nm = E b_n + E u_n · E v_m, e_n = (b_n, u_n) and w_m = (1, v_m):

    q(t_m = z) ∝ Π_{n says z} Φ(s_nm) Π_{n says else} Φ(-s_nm) / (K_m - 1)
    E x_nm = s + q(t_m = y_nm) φ(s) / Φ(s) - (1 - q(t_m = y_nm)) φ(s) / Φ(-s)
    q(v_m):  precision Q = I / σ_v² + Σ_n E u u',     mean Q⁻¹ Σ_n (E u E x_nm - E u b)
    q(e_n):  precision Q = P + Σ_m E w w',            mean Q⁻¹ (P (μ_b, 0) + Σ_m E w E x_nm),    P the prior's

The bound is Σ_m ln Σ_z of the first line, less half of all variances of b_n + u_n · v_m, less the divergences of the
Gaussians from their priors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_ndtr

from consilience.claims.encoding import Float
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, ascend, positive, whole_number
from consilience.models.order import structural_order

LOG_ROOT = 0.5 * np.log(2 * np.pi)
"""What the logarithm of the normal density lacks to x² / 2."""


@dataclass(frozen=True, eq=False)
class Gaussians:
    """One Gaussian a row.

    mean       : (n, p)
    covariance : (n, p, p)
    """

    mean: Float
    covariance: Float

    @classmethod
    def of(cls, precision: Float, shift: Float) -> Gaussians:
        """From precisions (n, p, p) and precisions times means (n, p)."""
        covariance = np.linalg.inv(precision).astype(np.float64, copy=False)
        return cls(np.einsum("nij,nj->ni", covariance, shift), covariance)

    def second_moment(self) -> Float:
        """(n, p, p) E x x'."""
        return self.covariance + self.mean[:, :, None] * self.mean[:, None, :]

    def divergence(self, mean: Float, variance: Float) -> float:
        """KL from N(mean, diag(variance)), both (p,), summed over all rows."""
        moment = np.einsum("nii->ni", self.covariance) + (self.mean - mean) ** 2
        log_det = np.linalg.slogdet(self.covariance)[1]
        return 0.5 * float((moment / variance + np.log(variance) - 1).sum() - log_det.sum())


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is believed of sources and objects, and E w w' summed over each source's objects.

    sources : e_n = (b_n, u_n)
    objects : v_m
    seen    : (n_sources, 1 + n_areas, 1 + n_areas)
    """

    sources: Gaussians
    objects: Gaussians
    seen: Float


@dataclass(frozen=True, eq=False)
class Space:
    """The priors on one table, and the steps of the ascent.

    mean, variance : (1 + n_areas,) prior of e_n
    area_variance  : prior of each v_m
    """

    table: Segments
    mean: Float
    variance: Float
    area_variance: float

    def sum_by(self, on_claims: Float) -> Any:
        """(n_objects, n_sources) sparse: a product with it sums over each object's claims, and over each source's where
        it is turned."""
        claims = self.table.claims
        shape = claims.n_objects, claims.n_sources
        return csr_array((on_claims, claims.claim_source, claims.first_claim), shape=shape)

    @cached_property
    def claims(self) -> Any:
        """One for each claim."""
        return self.sum_by(np.ones(self.table.claims.n_claims))

    @cached_property
    def log_wrong(self) -> Float:
        """(n_claims,) -ln(K_m - 1). Where there is one value alone, being wrong about it has no room: 0 will do."""
        return -np.log(np.maximum(self.table.domain_size - 1, 1))[self.table.claim_object]

    def knowledge(self, sources: Gaussians, objects: Gaussians) -> Knowledge:
        """With E w w' summed over each source's objects."""
        n_objects, n_areas = objects.mean.shape
        moment = np.empty((n_objects, 1 + n_areas, 1 + n_areas))
        moment[:, 0, 0] = 1
        moment[:, 0, 1:] = moment[:, 1:, 0] = objects.mean
        moment[:, 1:, 1:] = objects.second_moment()
        seen = self.claims.T @ moment.reshape(n_objects, -1)
        return Knowledge(sources, objects, seen.reshape(-1, 1 + n_areas, 1 + n_areas))

    def local_step(self, given: Knowledge) -> tuple[Float, tuple[Float, float, float]]:
        """(n_candidates,) q(t); with it (n_claims,) E x, the ln of what q(t) was divided by, and Σ s²."""
        table, claims = self.table, self.table.claims
        s = given.sources.mean[claims.claim_source, 0]
        for area in range(given.objects.mean.shape[1]):
            expertise = given.sources.mean[claims.claim_source, 1 + area]
            s += expertise * given.objects.mean[table.claim_object, area]
        log_right, log_wrong = log_ndtr(s), log_ndtr(-s)
        wrong = log_wrong + self.log_wrong
        truth, evidence = table.softmax(table.log_truth + table.sum_by_candidate(log_right - wrong))
        right = truth[claims.claim_candidate]
        log_density = -0.5 * s * s - LOG_ROOT
        x = s + right * np.exp(log_density - log_right) - (1 - right) * np.exp(log_density - log_wrong)
        return truth, (x, float(evidence.sum() + wrong.sum()), float(s @ s))

    def global_step(self, stats: tuple[Float, float, float], given: Knowledge) -> Knowledge:
        """Objects first: those of the start know nothing, and would have sources forget where they begin."""
        answers, n_areas = self.sum_by(stats[0]), len(self.mean) - 1
        moment = given.sources.second_moment()
        precision = (self.claims @ moment[:, 1:, 1:].reshape(-1, n_areas**2)).reshape(-1, n_areas, n_areas)
        shift = answers @ given.sources.mean[:, 1:] - self.claims @ moment[:, 0, 1:]
        objects = Gaussians.of(precision + np.eye(n_areas) / self.area_variance, shift)
        then = self.knowledge(given.sources, objects)
        total = self.table.sum_by_source(stats[0])
        shift = np.column_stack([total, answers.T @ objects.mean]) + self.mean / self.variance
        return replace(then, sources=Gaussians.of(then.seen + np.diag(1 / self.variance), shift))

    def bound(self, stats: tuple[Float, float, float], given: Knowledge) -> dict[str, float]:
        """The bound's terms where q(t) is what `local_step` makes of `given`."""
        square = float((given.sources.second_moment() * given.seen).sum())
        nowhere = np.zeros(len(self.mean) - 1)
        return {
            "evidence": stats[1],
            "doubt": -0.5 * (square - stats[2]),
            "sources": -given.sources.divergence(self.mean, self.variance),
            "objects": -given.objects.divergence(nowhere, nowhere + self.area_variance),
        }


@dataclass(frozen=True)
class CoBayes(Rival):
    """Sources have expertise in latent areas and objects lie in these; variational Bayes with a probit.

    The reliability of a source is the expected share of its claims that are right.
    """

    name: ClassVar[str] = "cobayes"
    cites: ClassVar[str] = "Kasneci, Van Gael, Stern and Graepel, WSDM 2011"
    probabilistic: ClassVar[bool] = True

    n_areas: int = 2
    """A, dimensions of the space of knowledge."""
    bias_mean: float = 1.0
    """μ_b, prior mean of what sources know in all areas: positive, so that sources are right rather than wrong."""
    bias_variance: float = 1.0
    """σ_b², its prior variance."""
    expertise_variance: float = 1.0
    """σ_u², prior variance of a source's expertise in each area."""
    area_variance: float = 1.0
    """σ_v², prior variance of an object's part in each area."""
    max_rounds: int = 500
    """Rounds of variational inference at the most."""
    tolerance: float = 1e-7
    """Converged when a round raises the bound by less than this share of it."""

    def __post_init__(self) -> None:
        whole_number("n_areas", self.n_areas, 1)
        whole_number("max_rounds", self.max_rounds, 1)
        for setting in ("bias_mean", "bias_variance", "expertise_variance", "area_variance", "tolerance"):
            positive(setting, getattr(self, setting))

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Coordinate ascent from random expertise, drawn from its prior in an order without names."""
        claims, areas = table.claims, self.n_areas
        mean = np.array([self.bias_mean] + [0.0] * areas)
        variance = np.array([self.bias_variance] + [self.expertise_variance] * areas)
        space = Space(table, mean, variance, self.area_variance)
        expertise = np.tile(mean, (claims.n_sources, 1))
        drawn = np.random.default_rng(seed).standard_normal((claims.n_sources, areas))
        expertise[structural_order(claims), 1:] = np.sqrt(self.expertise_variance) * drawn
        sources = Gaussians(expertise, np.tile(np.diag(variance), (claims.n_sources, 1, 1)))
        objects = Gaussians(
            np.zeros((claims.n_objects, areas)),
            np.tile(np.eye(areas) * self.area_variance, (claims.n_objects, 1, 1)),
        )
        end = ascend(
            space.knowledge(sources, objects),
            local_step=space.local_step,
            global_step=space.global_step,
            bound=space.bound,
            max_sweeps=self.max_rounds,
            tolerance=self.tolerance,
            progress=tell,
        )
        return Answer(
            end.locals,
            table.sum_over_claims(end.locals) / table.claims_of_source,
            rounds=len(end.trace),
            converged=end.converged,
            trace=end.trace,
        )
