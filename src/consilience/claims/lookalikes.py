"""Names that look the same and are not: they differ only in how Unicode writes them, é as one character or as two.

They are kept apart, as the table has them; a note says so, because two halves of one source are weaker than the whole.
"""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from consilience.claims.id_types import is_text
from consilience.claims.words import quantity


def lookalikes(vocabularies: dict[str, Any]) -> tuple[str, ...]:
    """A note for each role (source, object, value) whose names hold such pairs; vocabularies by role."""
    notes = []
    for role, names in vocabularies.items():
        alike = _alike(names) if is_text(names.type) else []
        if alike:
            one, other = alike[0]
            notes.append(
                f"{quantity(len(alike), role)} {'is' if len(alike) == 1 else 'are'} written like another but for "
                f"Unicode normalisation, such as {ascii(one)[:60]} and {ascii(other)[:60]}: kept apart."
            )
    return tuple(notes)


def _alike(names: Any) -> list[tuple[str, str]]:
    """(other, first) of each name that is a name before it once both are normalised (NFC)."""
    if bool(pc.all(pc.string_is_ascii(names)).as_py()):
        return []  # the usual case, and text in ASCII is its own normal form
    normal = pc.utf8_normalize(names, form="NFC")
    distinct = pc.unique(normal)
    if len(distinct) == len(names):
        return []
    seen: dict[int, int] = {}
    pairs = []
    for i, code in enumerate(pc.index_in(normal, distinct).to_pylist()):
        if code in seen:
            pairs.append((names[i].as_py(), names[seen[code]].as_py()))
        seen.setdefault(code, i)
    return pairs
