"""Planted tables of any size, for benchmarks: ten claims an object, four labels, thirty groups that repeat a leader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DEPTH, N_LABELS, N_GROUPS, GROUPED, FAITHFUL = 10, 4, 30, 0.6, 0.9
MILLION = 1_000_000


class Planted:
    """Sources, some in groups, and as many objects as wanted, made piece by piece."""

    def __init__(self, n_sources: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_sources = n_sources
        in_group = self.rng.random(n_sources) < GROUPED
        self.group = np.where(in_group, self.rng.integers(N_GROUPS, size=n_sources), -1)
        self.leader = self.rng.uniform(0.3, 0.9, N_GROUPS)
        self.right = self.rng.uniform(0.4, 0.95, n_sources)

    def claims(self, n_objects: int, first: int = 0) -> tuple[pa.Table, np.ndarray]:
        """A table of text, and the truths; objects are numbered from `first` on."""
        rng = self.rng
        truth = rng.integers(N_LABELS, size=n_objects)
        source = np.sort(rng.integers(self.n_sources, size=(n_objects, DEPTH)), axis=1)
        is_new = np.ones(source.shape, bool)
        is_new[:, 1:] = source[:, 1:] != source[:, :-1]
        object_, source = np.repeat(np.arange(n_objects), DEPTH)[is_new.ravel()], source[is_new]
        led = rng.random((N_GROUPS, n_objects)) < self.leader[:, None]
        leaders = np.where(led, truth, (truth + rng.integers(1, N_LABELS, led.shape)) % N_LABELS)
        own = (truth[object_] + rng.integers(1, N_LABELS, len(source))) % N_LABELS
        own = np.where(rng.random(len(source)) < self.right[source], truth[object_], own)
        group = self.group[source]
        repeats = (group >= 0) & (rng.random(len(source)) < FAITHFUL)
        value = np.where(repeats, leaders[group, object_], own)
        names = [
            _named("source", source, 0, self.n_sources),
            _named("object", object_, first, n_objects),
            _named("v", value, 0, N_LABELS),
        ]
        return pa.table(names, ["source", "object", "value"]), truth

    def write(self, folder: Path, n_files: int, n_claims: int) -> None:
        """As Parquet files."""
        each = n_claims // DEPTH // n_files
        for part in range(n_files):
            table, _ = self.claims(each, part * each)
            pq.write_table(table, folder / f"part{part:04}.parquet")


def _named(prefix: str, index: np.ndarray, first: int, n: int) -> pa.Array:
    names = pa.array([f"{prefix}{i}" for i in range(first, first + n)])
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), names).cast(pa.string())
