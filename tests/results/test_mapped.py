"""A result on the disk: the same fit, its ids read where they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from consilience.errors import ResultFormatError
from consilience.results.explain import explain_at
from consilience.results.fit import Fit
from consilience.results.groups import Numbering
from consilience.results.mapped import StoredIds, open_mapped
from consilience.results.worth import worth
from tests.results.made_fits import partition_fit, random_fit


@pytest.mark.parametrize(
    "made",
    [partial(random_fit, 0), partial(random_fit, 1, groups=False), partial(partition_fit, known=True)],
)
def test_a_mapped_result_explains_and_ranks_as_the_fit_does(made: Callable[[], Fit], tmp_path: Path) -> None:
    fit = made()
    fit.save(tmp_path / "result")
    mapped = open_mapped(tmp_path / "result")
    assert isinstance(mapped.claims.objects, StoredIds)
    numbering = None if mapped.groups_found is None else Numbering.of(mapped.groups_found)
    for m, name in enumerate(fit.claims.objects):
        assert explain_at(mapped, m, numbering) == fit.explain(name.as_py())
    np.testing.assert_array_equal(worth(mapped), worth(fit))


def test_ids_are_found_across_row_groups(tmp_path: Path) -> None:
    names = pa.array([f"name {i:04d}" for i in range(1000)])
    pq.write_table(pa.table({"id": names}), tmp_path / "ids.parquet", row_group_size=7)
    stored = StoredIds(tmp_path / "ids.parquet", "id")
    asked = pa.array([999, 0, None, 7, 6, 6, 500])
    assert stored.take(asked).to_pylist() == names.take(asked).to_pylist()
    assert len(stored) == 1000
    assert stored[123].as_py() == "name 0123"
    assert stored.take([]).to_pylist() == []


def test_a_damaged_result_is_refused(tmp_path: Path) -> None:
    random_fit(0).save(tmp_path / "result")
    (tmp_path / "result" / "trace.json").write_text("[]")
    with pytest.raises(ResultFormatError, match="altered"):
        open_mapped(tmp_path / "result")
