"""What a table knows of all its objects, however they are cut."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from consilience.models.mss.table import median_size, n_by_size, with_domains


@pytest.mark.parametrize("domain", ["claimed", "common"])
@pytest.mark.parametrize("n_shards", [1, 2, 7])
def test_the_median_domain_is_that_of_all_objects(domain: str, n_shards: int) -> None:
    rng = np.random.default_rng(0)
    said = [(f"s{n}", f"o{m}", f"v{rng.integers(1 + m % 9)}") for m in range(99) for n in range(12)]
    claims = cs.read_claims(said, domain=domain)
    whole, _ = with_domains(claims, np.zeros(claims.n_candidates), None)
    sizes = np.diff(claims.first_candidate) + (domain == "claimed")  # and a value that nobody claims
    assert median_size([n_by_size(shard) for shard in whole.cut(n_shards)]) == np.median(sizes)
