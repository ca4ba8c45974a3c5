"""Groups in a summary: the largest with their members, and the pairs of sources that show why they are groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from consilience.claims.encoding import Float, Int
from consilience.kernels.state import Globals
from consilience.report.summary import Group, Groups, HeatMap, Link
from consilience.results.dependence import memberships
from consilience.results.fit import Fit
from consilience.results.groups import Numbering, groups_table
from consilience.results.tables import ids
from consilience.results.temper import Pairs, some_objects

LARGEST = 40
"""Groups in the summary."""
MEMBERS = 8
"""Members of each that are named."""
LINKS = 40
"""Pairs of groups that share mistakes."""
SURE = 3.0
"""Standard deviations beyond chance: of eight hundred pairs, chance has one."""
SIDE = 60
"""Sources along a side of the heat map."""


def summarise_groups(fit: Fit, found: Globals) -> Groups:
    """The largest groups; those of one source count as sources apart."""
    numbering = Numbering.of(found)
    number = numbering.of_source
    table = groups_table(found, fit.prior)
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
    heat = _heat_map(fit, found, chosen, number[chosen]) if numbering.n_shared else None
    links = _links(fit, number, len(largest)) if len(largest) > 1 else ()
    return Groups(numbering.n_shared, numbering.n_apart, tuple(largest), heat, links)


def _links(fit: Fit, number: Int, n_groups: int) -> tuple[Link, ...]:
    """Pairs of groups 1 … n_groups that share mistakes beyond chance; a group's opinion is what most members say.

    If groups err independently, who of those that err on an object gave which of its wrong values is chance, however
    popular a value is (as in the test of independence). So two of them agree there with probability
    p_m = Σ_v n_v (n_v - 1) / n (n - 1), and on all objects Σ p_m times, with the variance Σ p_m (1 - p_m).
    """
    decided = np.zeros(fit.claims.n_candidates, np.bool_)
    decided[fit.decision] = True
    (whole,) = fit.claims.shards(1, fit.truth)
    claims, right = some_objects(whole, decided, fit.claims.n_claims)
    said = Pairs.of(claims, number)
    first = np.lexsort((said.candidate, -said.share, said.pair))
    first = first[np.unique(said.pair[first], return_index=True)[1]]
    opinion = said.candidate[first]  # of each pair (group, object)
    wrong = ~right[opinion] & (said.group > 0)
    n_same = np.bincount(opinion[wrong], minlength=claims.n_candidates)
    n_wrong = np.bincount(said.object[wrong], minlength=claims.n_objects)
    pairs = np.bincount(claims.candidate_object(), n_same * (n_same - 1.0), minlength=claims.n_objects)
    chance = pairs / np.maximum(n_wrong * (n_wrong - 1.0), 1.0)

    near = (said.group > 0) & (said.group <= n_groups)

    def together(which: Any, columns: Int, n_columns: int, weight: Float | None = None) -> Float:
        chosen = np.flatnonzero(which & near)
        entries = np.ones(len(chosen)) if weight is None else weight[columns[chosen]]
        given = sparse.csr_array(
            (entries, (said.group[chosen] - 1, columns[chosen])), shape=(n_groups, n_columns)
        )
        counts: Float = (given @ given.T).toarray()
        return counts

    alike = together(wrong, opinion, claims.n_candidates)
    expected = together(wrong, said.object, claims.n_objects, np.sqrt(chance))
    variance = together(wrong, said.object, claims.n_objects, np.sqrt(chance * (1 - chance)))
    either = together(near, said.object, claims.n_objects) - together(~wrong, said.object, claims.n_objects)
    a, b = np.nonzero(np.triu((variance > 0) & (alike - expected > SURE * np.sqrt(variance)), k=1))
    share = alike[a, b] / np.maximum(either[a, b], 1.0)
    order = np.argsort(-share, kind="stable")[:LINKS]
    rows = zip((a[order] + 1).tolist(), (b[order] + 1).tolist(), share[order].tolist(), strict=True)
    return tuple(Link(*row) for row in rows)


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
