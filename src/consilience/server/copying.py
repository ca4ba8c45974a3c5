"""Evidence of copying: values that members of one group share though they are probably wrong, and who shares them.

Good sources agree because they are right; the same mistake, which few others make, is what copies look like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Int
from consilience.results.fit import Fit

MOST_CLAIMS = 20_000
"""Claims of a source, or of a group, whose objects are looked at; the first ones, of more."""
SHOWN = 50
"""Mates and shared values that are listed."""


@dataclass(frozen=True, eq=False)
class Shared:
    """What members of a group share, the most telling first.

    examined : claims that were looked at
    objects, candidates, n_members, n_others, n_others_claiming : of each shared mistake
    mates, n_common, n_same, n_mistakes : of each mate of the source asked about; empty for a whole group
    """

    examined: int
    objects: Int
    candidates: Int
    n_members: Int
    n_others: Int
    n_others_claiming: Int
    mates: Int
    n_common: Int
    n_same: Int
    n_mistakes: Int


def claims_of(claims: Claims, source: int) -> Int:
    """The places of a source's claims: one look at all claims."""
    return np.flatnonzero(claims.claim_source == source)


def objects_of(claims: Claims, places: Int) -> Int:
    """The objects that the claims at these places are about."""
    return np.searchsorted(claims.first_claim, places, side="right") - 1


def shared(fit: Fit, members: Int, source: int | None = None) -> Shared:
    """What the members of a group share: all of them or, given a source, that source with its mates."""
    claims = fit.claims
    is_member = np.zeros(claims.n_sources, np.bool_)
    is_member[members] = True
    if source is None:
        places = _first(is_member, claims)
    else:
        is_member[source] = True
        places = claims_of(claims, source)[:MOST_CLAIMS]
    objects = np.unique(objects_of(claims, places))
    place = _all_claims(claims, objects)
    who, what = claims.claim_source[place], claims.claim_candidate[place]
    about = np.repeat(np.arange(len(objects)), np.diff(claims.first_claim)[objects])
    inside = is_member[who]
    right = fit.decision[objects]

    candidate, code = np.unique(what, return_inverse=True)
    n_members = np.bincount(code, inside, minlength=len(candidate)).astype(np.int64)
    n_others = np.bincount(code, minlength=len(candidate)) - n_members
    owner = np.zeros(len(candidate), np.int64)
    owner[code] = about
    outside = np.bincount(about, ~inside, minlength=len(objects)).astype(np.int64)
    telling = (n_members > 1) & (candidate != right[owner])
    of_source = np.zeros(len(objects), np.int64)
    if source is not None:
        of_source[about[who == source]] = what[who == source]
        telling &= candidate == of_source[owner]
    best = np.flatnonzero(telling)
    best = best[np.lexsort((-n_members[best], n_others[best] / np.maximum(outside[owner[best]], 1)))][:SHOWN]

    mates: tuple[Int, Int, Int, Int] = (np.zeros(0, np.int64),) * 4
    if source is not None:
        of_mate = inside & (who != source)
        mates = _mates(who[of_mate], what[of_mate], about[of_mate], of_source, right)
    return Shared(
        len(places),
        objects[owner[best]],
        candidate[best],
        n_members[best],
        n_others[best],
        outside[owner[best]],
        *mates,
    )


def _mates(who: Int, what: Int, about: Int, of_source: Int, right: Int) -> tuple[Int, Int, Int, Int]:
    """Each mate with the objects it has in common with the source, on how many it says the same, and a mistake."""
    same = what == of_source[about]
    mate, code = np.unique(who, return_inverse=True)
    counts = [
        np.bincount(code, which, minlength=len(mate)).astype(np.int64)
        for which in (np.ones(len(who)), same, same & (what != right[about]))
    ]
    order = np.lexsort((-counts[1], -counts[2]))[:SHOWN]
    return mate[order], counts[0][order], counts[1][order], counts[2][order]


def _first(is_member: NDArray[np.bool_], claims: Claims, block: int = 1 << 22) -> Int:
    """The first claims of members, looking no further than it takes."""
    found: list[Int] = []
    for start in range(0, claims.n_claims, block):
        found.append(start + np.flatnonzero(is_member[claims.claim_source[start : start + block]]))
        if sum(map(len, found)) >= MOST_CLAIMS:
            break
    return np.concatenate(found)[:MOST_CLAIMS] if found else np.zeros(0, np.int64)


def _all_claims(claims: Claims, objects: Int) -> Int:
    """The places of all claims about these objects."""
    sizes = claims.first_claim[objects + 1] - claims.first_claim[objects]
    ends = np.cumsum(sizes)
    places: Int = np.repeat(claims.first_claim[objects] - ends + sizes, sizes)
    places += np.arange(len(places))
    return places
