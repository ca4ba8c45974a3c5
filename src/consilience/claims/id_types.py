"""Types of ids: which may be ids at all, which can be equal, and ids of one type written as another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TEXT = pa.large_string()
"""The one type of text, whatever came in: it has room for more than two gigabytes of ids."""


def is_text(kind: Any) -> bool:
    """Whether this Arrow type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_usable(kind: Any) -> bool:
    """Whether ids may be of this Arrow type: text, bytes, numbers, truth values, dates and times."""
    t = pa.types
    if t.is_dictionary(kind):
        kind = kind.value_type
    sortable = t.is_primitive(kind) and not t.is_interval(kind) and not t.is_float16(kind)
    return bool(
        sortable
        or is_text(kind)
        or t.is_binary(kind)
        or t.is_large_binary(kind)
        or t.is_decimal(kind)
        or t.is_null(kind)
    )


def name_of(kind: Any) -> str:
    """An Arrow type in a user's words."""
    return "text" if is_text(kind) else str(kind)


def comparable(a: Any, b: Any) -> bool:
    """Whether ids of these two Arrow types can be equal at all."""
    return joint_type(a, b) is not None


def joint_type(a: Any, b: Any) -> Any:
    """The type that ids of both Arrow types can be written as, the finer unit of two; None if there is none."""
    if a == b:
        return a
    a, b = _plain(a), _plain(b)
    t = pa.types
    for one, other in ((a, b), (b, a)):
        if t.is_date(one) and t.is_timestamp(other) and other.tz is None:
            return other  # a date is its midnight
    if t.is_timestamp(a) and t.is_timestamp(b) and a.tz and b.tz:
        b = pa.timestamp(b.unit, a.tz)  # a time zone is only how an instant is shown
    if is_text(a) != is_text(b) and not t.is_null(a) and not t.is_null(b):
        return None  # Arrow would take text for bytes
    try:
        schemas = [pa.schema([("id", kind)]) for kind in (a, b)]
        return pa.unify_schemas(schemas, promote_options="permissive").field("id").type
    except pa.ArrowException:
        return None


def compared_type(a: Any, b: Any) -> Any:
    """The type to compare ids of two comparable types in: whole numbers exactly, not as floating point."""
    integers = [kind for kind in (a, b) if pa.types.is_integer(kind)]
    if not integers or pa.types.is_null(a) or pa.types.is_null(b):
        return joint_type(a, b)
    return pa.uint64() if all(map(pa.types.is_unsigned_integer, integers)) else pa.int64()


def written_as(ids: Any, kind: Any) -> Any:
    """Ids of a comparable type as this type; null where one has no exact form in it, so equals none of it."""
    if not len(ids):
        return pa.array([], kind)
    try:
        there = ids.cast(kind)
    except pa.ArrowInvalid:
        if pa.types.is_integer(kind):
            return _whole_numbers(ids, kind)
        there = ids.cast(kind, safe=False)
    # What was rounded or wrapped around does not come back as it was.
    return pc.if_else(pc.equal(there.cast(ids.type, safe=False), ids), there, None)


def _whole_numbers(ids: Any, kind: Any) -> Any:
    """Numbers as this type of integers; null where they are not whole or too large."""
    least, most = (0, 2**64) if pa.types.is_unsigned_integer(kind) else (-(2**63), 2**63)
    return pa.array([int(i) if least <= i < most and i == int(i) else None for i in ids.to_pylist()], kind)


def _plain(kind: Any) -> Any:
    """The type of the ids in a dictionary; all text as TEXT."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return TEXT if is_text(kind) else kind
