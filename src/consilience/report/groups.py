"""Groups in a summary: the largest with their members, and the pairs of sources that show why they are groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse

from consilience.claims.encoding import Float, Int
from consilience.kernels.state import Globals
from consilience.report.summary import Group, Groups, HeatMap
from consilience.results.dependence import memberships
from consilience.results.fit import Fit
from consilience.results.groups import Numbering, groups_table
from consilience.results.tables import ids

LARGEST = 40
"""Groups in the summary."""
MEMBERS = 8
"""Members of each that are named."""
SIDE = 60
"""Sources along a side of the heat map."""


def summarise_groups(fit: Fit, found: Globals) -> Groups:
    """The largest groups; those of one source count as sources apart."""
    number = Numbering.of(found).of_source
    table = groups_table(found, fit.prior)
    n_shared = int(np.count_nonzero(table["n_sources"].to_numpy() > 1))
    n_apart = fit.claims.n_sources - int(table["n_sources"].to_numpy()[:n_shared].sum())
    n_claims = np.bincount(fit.claims.claim_source, minlength=fit.claims.n_sources)
    busiest = np.lexsort((-n_claims, number))  # group by group
    first = np.searchsorted(number[busiest], np.arange(1, LARGEST + 2))
    names = ids(fit.claims.sources)
    largest = []
    for row in table.slice(0, LARGEST).to_pylist():
        start, stop = first[row["group"] - 1], first[row["group"]]
        members = names.take(pa.array(busiest[start : min(stop, start + MEMBERS)])).to_pylist()
        del row["weight"]
        largest.append(Group(**row, members=tuple(members)))
    chosen = busiest[number[busiest] > 0][:SIDE]
    heat = _heat_map(fit, found, chosen, number[chosen]) if n_shared else None
    return Groups(n_shared, n_apart, tuple(largest), heat)


def _heat_map(fit: Fit, found: Globals, chosen: Int, groups: Int) -> HeatMap:
    member = memberships(found)[chosen]
    together = np.minimum((member @ member.T).toarray(), 1.0)
    share = np.where(np.tri(len(chosen), k=-1, dtype=bool), together, _same_mistakes(fit, chosen))
    row, column = np.nonzero((share > 0) & ~np.eye(len(chosen), dtype=bool))
    cells = zip(row.tolist(), column.tolist(), np.round(share[row, column], 3).tolist(), strict=True)
    sources = ids(fit.claims.sources).take(pa.array(chosen)).to_pylist()
    return HeatMap(tuple(sources), tuple(groups.tolist()), tuple(cells))


def _same_mistakes(fit: Fit, chosen: Int) -> Float:
    """(n, n) of the objects that two sources claim and not both get right, the share on which they err alike."""
    claims = fit.claims
    place = np.full(claims.n_sources, -1)
    place[chosen] = np.arange(len(chosen))
    here = np.flatnonzero(place[claims.claim_source] >= 0)
    source, candidate = place[claims.claim_source[here]], claims.claim_candidate[here]
    object_ = claims.claim_object()[here]
    right = candidate == fit.decision[object_]

    def pairs(of: Int, columns: Int, n_columns: int) -> Float:
        given = sparse.csr_array((np.ones(len(of)), (of, columns)), shape=(len(chosen), n_columns))
        counts: Float = (given @ given.T).toarray()
        return counts

    alike = pairs(source[~right], candidate[~right], claims.n_candidates)
    both = pairs(source, object_, claims.n_objects)
    both_right = pairs(source[right], object_[right], claims.n_objects)
    return alike / np.maximum(both - both_right, 1.0)
