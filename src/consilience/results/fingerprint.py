"""Whether two tables of claims are the same, however they came to be: one short text that tells."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.claims.encoding import Claims, Int
from consilience.results.tables import ids

IDS_AT_A_TIME, CLAIMS_AT_A_TIME = 1 << 16, 1 << 22


def fingerprint(claims: Claims) -> str:
    """A hash of who claims what about what, in the claims' own order. Values that nobody claims do not count: a known
    truth may add some."""
    digest = hashlib.sha256()
    is_claimed = np.zeros(claims.n_values, np.bool_)
    for values in _claimed(claims):
        is_claimed[values] = True
    rank = (np.cumsum(is_claimed) - 1).astype(np.int32)
    for names in (claims.sources, claims.objects):
        _add_ids(digest, names, np.arange(len(names)))
    _add_ids(digest, claims.values, np.flatnonzero(is_claimed))
    digest.update(np.asarray(claims.first_claim, np.int64).tobytes())
    for start, values in zip(range(0, claims.n_claims, CLAIMS_AT_A_TIME), _claimed(claims), strict=True):
        digest.update(np.asarray(claims.claim_source[start : start + CLAIMS_AT_A_TIME], np.int32).tobytes())
        digest.update(rank[values].tobytes())
    return digest.hexdigest()[:32]


def _claimed(claims: Claims) -> Iterator[Int]:
    """The values claimed, as numbers, a run of claims at a time."""
    for start in range(0, claims.n_claims, CLAIMS_AT_A_TIME):
        yield claims.candidate_value[claims.claim_candidate[start : start + CLAIMS_AT_A_TIME]]


def _add_ids(digest: Any, names: Any, chosen: Int) -> None:
    for start in range(0, len(chosen), IDS_AT_A_TIME):
        part = ids(names).take(pa.array(chosen[start : start + IDS_AT_A_TIME])).to_pylist()
        digest.update(repr(part).encode("utf-8", "surrogatepass"))
