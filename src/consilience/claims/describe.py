"""A table of claims in a few numbers: how much there is, how it is spread, whether it hangs together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from consilience.claims.encoding import Claims, Int

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class ClaimsSummary:
    """What `describe` found.

    claims_per_object, claims_per_source : least, lower quartile, median, upper quartile, most
    mean_domain       : mean size of a domain, with values that nobody claims
    mean_claimed      : mean number of distinct values claimed for an object
    contested         : share of objects for which sources claim different values
    density           : share of all pairs (source, object) that have a claim
    n_components      : parts of the table that share neither source nor object: what is learned of sources in
                        one says nothing about another
    largest_component : share of all claims that lie in the largest part
    """

    n_sources: int
    n_objects: int
    n_values: int
    n_claims: int
    n_candidates: int
    domain: str
    claims_per_object: tuple[float, float, float, float, float]
    claims_per_source: tuple[float, float, float, float, float]
    mean_domain: float
    mean_claimed: float
    contested: float
    density: float
    n_components: int
    largest_component: float
    notes: tuple[str, ...] = ()


def describe(claims: Claims) -> ClaimsSummary:
    """Describe a table of claims."""
    claim_object = claims.claim_object()
    is_claimed = np.bincount(claims.claim_candidate, minlength=claims.n_candidates) > 0
    n_claimed = np.bincount(claims.candidate_object()[is_claimed], minlength=claims.n_objects)
    n_nodes = claims.n_sources + claims.n_objects
    edge = (np.ones(claims.n_claims, dtype=np.int8), (claims.claim_source, claims.n_sources + claim_object))
    n_components, component = connected_components(coo_array(edge, shape=(n_nodes, n_nodes)), directed=False)
    claims_of_component = np.bincount(component[claims.claim_source], minlength=n_components)
    return ClaimsSummary(
        n_sources=claims.n_sources,
        n_objects=claims.n_objects,
        n_values=claims.n_values,
        n_claims=claims.n_claims,
        n_candidates=claims.n_candidates,
        domain=claims.domain,
        claims_per_object=_quantiles(np.diff(claims.first_claim)),
        claims_per_source=_quantiles(np.bincount(claims.claim_source, minlength=claims.n_sources)),
        mean_domain=claims.n_candidates / claims.n_objects,
        mean_claimed=float(n_claimed.mean()),
        contested=float((n_claimed > 1).mean()),
        density=claims.n_claims / (claims.n_sources * claims.n_objects),
        n_components=int(n_components),
        largest_component=float(claims_of_component.max() / claims.n_claims),
        notes=claims.notes,
    )


def _quantiles(counts: Int) -> tuple[float, float, float, float, float]:
    least, low, median, high, most = (float(q) for q in np.quantile(counts, QUANTILES))
    return least, low, median, high, most
