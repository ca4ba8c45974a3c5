"""A saved result left on the disk: arrays are mapped into memory, ids are read where they are asked for.

Opening it takes the same time for a thousand objects as for ten million. It is for looking at single objects and for
work in blocks; the tables of the whole fit need `load`.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from consilience.errors import ResultFormatError
from consilience.results.fit import Fit
from consilience.results.manifest import check_files, read_manifest
from consilience.results.storage import read_fit

KEPT = 16
"""Row groups of a vocabulary that stay decoded."""


def open_mapped(folder: str | os.PathLike[str]) -> Fit:
    """Open a result after checking, as `load` does, that every file is there and unchanged."""
    source = Path(folder)
    manifest = read_manifest(source)
    check_files(source, manifest)
    return read_fit(source, manifest, mapped_arrays(source / "state.npz"), StoredIds)


def mapped_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an uncompressed .npz file, on the disk."""
    arrays: dict[str, NDArray[Any]] = {}
    with ZipFile(path) as archive, path.open("rb") as file:
        for info in archive.infolist():
            if info.compress_type != ZIP_STORED:
                raise ResultFormatError(
                    f"{path} is compressed, which consilience did not do: run the fit again."
                )
            file.seek(info.header_offset + 26)  # where a local header has the lengths of what follows it
            file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
            version = np.lib.format.read_magic(file)
            header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = header(file)
            name = info.filename.removesuffix(".npy")
            if 0 in shape:
                arrays[name] = np.zeros(shape, dtype)
                continue
            mapped = np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C")
            arrays[name] = mapped.view(np.ndarray)
    return arrays


class StoredIds:
    """A column of ids in a Parquet file. Row groups are decoded when one of their ids is asked for."""

    def __init__(self, path: Path, column: str) -> None:
        self._file = pq.ParquetFile(path, memory_map=True)
        self._column = column
        metadata = self._file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self._first = np.append(0, np.cumsum(sizes, dtype=np.int64))
        self.type = self._file.schema_arrow.field(column).type
        self._decoded: OrderedDict[int, pa.Array] = OrderedDict()
        self._lock = threading.Lock()  # readers of Parquet files are not for several threads

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, index: int) -> Any:
        return self.take(pa.array([index]))[0]

    def take(self, indices: Any) -> pa.Array:
        """The ids at these places; null where a place is null."""
        wanted = pa.array(indices, pa.int64())
        place = wanted.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        if not len(place):
            return pa.array([], self.type)
        group = np.searchsorted(self._first, place, side="right") - 1
        parts, order = [], []
        for i in np.unique(group):
            here = np.flatnonzero(group == i)
            parts.append(self._row_group(int(i)).take(pa.array(place[here] - self._first[i])))
            order.append(here)
        back = pa.array(
            np.argsort(np.concatenate(order)), mask=wanted.is_null().to_numpy(zero_copy_only=False)
        )
        return pa.concat_arrays(parts).take(back)

    def _row_group(self, i: int) -> pa.Array:
        with self._lock:
            if i not in self._decoded:
                table = self._file.read_row_group(i, columns=[self._column])
                self._decoded[i] = table.column(0).combine_chunks()
                if len(self._decoded) > KEPT:
                    self._decoded.popitem(last=False)
            self._decoded.move_to_end(i)
            return self._decoded[i]
