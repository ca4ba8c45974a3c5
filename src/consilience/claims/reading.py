"""Claims and truths in, from any kind of table: read, checked (all problems at once), encoded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from os import PathLike, fspath
from os.path import exists, expanduser
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.claims import checks
from consilience.claims.columns import find_columns
from consilience.claims.domains import check_domain, form_domains, outside_domain
from consilience.claims.encoding import Claims, sort_claims, sort_distinct
from consilience.claims.files import SUPPORTED, open_file
from consilience.claims.frames import is_query, open_frame, open_query, open_rows
from consilience.claims.id_types import is_usable
from consilience.claims.lookalikes import lookalikes
from consilience.claims.tables import Cells, Table
from consilience.claims.truths import Truths, align_truths, extend_domains
from consilience.claims.vocabulary import Column, encode
from consilience.claims.words import quantity
from consilience.errors import ClaimsError, Problem, SettingsError

__all__ = ["Truths", "align_truths", "extend_domains", "read_claims", "read_truths"]


def read_claims(
    table: Any,
    *,
    source: str | None = None,
    object: str | None = None,
    value: str | None = None,
    domain: Any = "auto",
    on_conflict: str = "error",
    on_missing: str = "error",
) -> Claims:
    """Read a table of claims, one a row: who says what about what.

    table       : a path (.csv, .tsv, .txt, .jsonl, .ndjson, each also .gz; .parquet, a folder or pattern of
                  them), a query that DuckDB runs ("SELECT …"), a DuckDB relation, a pandas, Polars or Arrow
                  frame, (source, object, value) triples, or dicts with these keys
    source, object, value : what the table calls these columns, where it is not one of the usual names
    domain      : the values an object may take: "claimed" for it by somebody, "common" (every label for every
                  object), a list of labels, or {object: labels}; "auto" is "common" when few labels recur
                  over objects, else "claimed"
    on_conflict : when a source claims two values for one object: "error", or keep the "first", "last" or
                  "most frequent" (ties to the first)
    on_missing  : when a cell is empty: "error", or "drop" the row

    Cells of text files are text: "NA" is a value, only an empty cell is missing. In .csv, .tsv and .txt files an
    empty text is an empty cell, quoted or not; frames, rows, Parquet and JSON lines have null for that, and an
    empty text is a value like any other. Ids of typed tables keep their type. What is merged or dropped is
    counted in `Claims.notes`; all that is wrong is raised together, as one ClaimsError, with rows counted from 1
    below the header. Claims already read come back as they are.
    """
    if isinstance(table, Claims):
        chosen = {"source": source, "object": object, "value": value, "domain": domain}
        _refuse_choices("claims", chosen | {"on_conflict": on_conflict, "on_missing": on_missing})
        return table
    check_domain(domain)
    check_choices(on_conflict, on_missing)
    return encode_claims(
        _read(table, {"source": source, "object": object, "value": value}, on_missing), domain, on_conflict
    )


def encode_claims(read: Read, domain: Any, on_conflict: str) -> Claims:
    """Claims from rows without gaps; ClaimsError with all that is wrong with them."""
    problems = list(read.problems)
    sources, objects, values = read.columns["source"], read.columns["object"], read.columns["value"]
    given = (objects, sources, values)
    # The row that each claim came from, where somebody asks.
    order = cache(partial(sort_claims, objects.codes, sources.codes, len(sources.vocabulary)))
    packed = sort_distinct([column.codes for column in given], [len(column.vocabulary) for column in given])
    if packed is None:
        packed = [column.codes[order()] for column in given]
    objects, sources, values = (
        Column(one.vocabulary, codes) for one, codes in zip(given, packed, strict=True)
    )
    kept = checks.settle(objects.codes, sources.codes, values.codes, on_conflict)
    if len(kept.clashes) and on_conflict == "error":
        advice = 'Correct the table, or choose one: on_conflict="first", "last" or "most frequent".'
        keys = {"source": sources, "object": objects}
        problems.append(checks.conflicting("claims", keys, values, kept.clashes, read.rows, order(), advice))
    if kept.merged or kept.dropped:
        sources, objects, values = (column.take(kept.keep) for column in (sources, objects, values))
        values = values.compact()

    found = form_domains(objects, values, domain)
    if isinstance(found, Problem):
        raise ClaimsError(read.label, [*problems, found])
    if np.any(found.claim_candidate < 0):
        rows_of = order()[kept.keep]
        problems.append(outside_domain(found, sources, objects, values, read.rows, rows_of))
    if problems:
        raise ClaimsError(read.label, problems)
    vocabularies = {"source": sources.vocabulary, "object": objects.vocabulary, "value": found.values}
    return Claims(
        sources=sources.vocabulary,
        objects=objects.vocabulary,
        values=found.values,
        claim_source=sources.codes,
        claim_candidate=found.claim_candidate,
        first_claim=np.searchsorted(objects.codes, np.arange(len(objects.vocabulary) + 1, dtype=np.int32)),
        first_candidate=found.first_candidate,
        candidate_value=found.candidate_value,
        domain=found.kind,
        columns=(read.names["source"], read.names["object"], read.names["value"]),
        frame=read.frame,
        notes=(*read.notes, *kept.notes(on_conflict), *found.notes, *lookalikes(vocabularies)),
    )


def read_truths(table: Any, *, object: str | None = None, value: str | None = None) -> Truths:
    """Read the true values of objects, to score with or to learn from.

    table : as for `read_claims`, without sources; also {object: value}, or (object, value) pairs. An object
    has one truth: a second one is a problem. A mapping, rows or a frame may be empty: no truth is known yet.
    """
    if isinstance(table, Truths):
        _refuse_choices("truths", {"object": object, "value": value})
        return table
    if isinstance(table, Mapping):
        table = list(table.items())
    read = _read(table, {"object": object, "value": value}, "error")
    problems = list(read.problems)
    nobody = np.zeros(len(read.columns["object"].codes), dtype=np.int32)
    order = sort_claims(read.columns["object"].codes, nobody, 1)
    objects, values = read.columns["object"].take(order), read.columns["value"].take(order)
    kept = checks.settle(objects.codes, nobody, values.codes, "error")
    if len(kept.clashes):
        keys, advice = {"object": objects}, "Give one truth for each object."
        problems.append(checks.conflicting("truths", keys, values, kept.clashes, read.rows, order, advice))
    if problems:
        raise ClaimsError(read.label, problems)
    truth = values.vocabulary.take(values.codes[kept.keep])
    return Truths(objects.vocabulary, truth, read.frame, (*read.notes, *kept.notes("error")))


@dataclass(frozen=True, eq=False)
class Read:
    """A table's rows without gaps, encoded, and every problem found so far."""

    label: str
    frame: str
    names: dict[str, str]
    columns: dict[str, Column]
    rows: checks.Rows
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]


def _read(table: Any, asked: dict[str, str | None], on_missing: str) -> Read:
    """Open a table, find its columns, encode them and look for faults in their cells."""
    _check_choice("on_missing", on_missing, ("error", "drop"))
    opened = _open(table, list(asked))
    names, problems = find_columns(opened.columns, asked)
    wanted = [name for name in dict.fromkeys(names.values()) if list(opened.columns).count(name) == 1]
    cells = opened.load(wanted) if wanted else Cells({})
    problems += cells.problems
    rows = checks.Rows(cells.rows)
    columns: dict[str, Column] = {}
    for role, name in names.items():
        if name not in cells.columns:
            continue
        if not is_usable(cells.columns[name].type):
            problems.append(checks.unusable_type(name, cells.columns[name].type))
            continue
        columns[role] = encode(cells.columns[name], decode=opened.is_raw)
        problems += checks.undecodable_cells(columns[role], name, rows)
    n_rows = len(next(iter(columns.values())).codes) if columns else 0
    may_be_empty = opened.in_memory and "source" not in asked
    if columns and not n_rows and not may_be_empty:
        problems.append(checks.empty_table("There are no rows."))
    notes: tuple[str, ...] = ()
    gaps = checks.missing_cells(columns, names, rows)
    if on_missing == "error":
        problems += gaps
    elif gaps:
        notes = (f"{quantity(gaps[0].count, 'row')} with an empty cell dropped.",)
    if len(columns) < len(asked):
        raise ClaimsError(opened.label, problems)
    if not all(column.is_whole for column in columns.values()):
        whole = np.logical_and.reduce([column.codes >= 0 for column in columns.values()])
        if not whole.any() and not problems:
            problems.append(checks.empty_table("Every row has an empty cell."))
        columns = {role: column.take(whole) for role, column in columns.items()}
        rows = rows.take(whole)
    if problems and not len(columns["object"].codes):
        raise ClaimsError(opened.label, problems)
    columns = {role: column.compact() for role, column in columns.items()}
    del cells
    pa.default_memory_pool().release_unused()  # Arrow keeps what cells took, which is more than claims take
    return Read(opened.label, opened.frame, names, columns, rows, notes, tuple(problems))


def _open(table: Any, roles: list[str]) -> Table:
    """Open whatever kind of table this is."""
    if isinstance(table, str) and is_query(table) and not exists(expanduser(table)):
        return open_query(table)
    if isinstance(table, str | PathLike):
        return open_file(fspath(table))
    frame = open_frame(table)
    if frame is not None:
        return frame
    if isinstance(table, Iterable) and not isinstance(table, Mapping | bytes):
        return open_rows(table, roles)
    found = f"A table of type {type(table).__name__} cannot be read."
    advice = f"Give a path ({SUPPORTED}), a query, a frame, or a list of rows ({', '.join(roles)})."
    raise ClaimsError("The table", [Problem("unknown-format", found, advice)])


def _refuse_choices(what: str, chosen: dict[str, Any]) -> None:
    """Refuse arguments that only reading can heed; by default a name is None and the others are as below."""
    defaults = {"domain": "auto", "on_conflict": "error", "on_missing": "error"}
    for setting, choice in chosen.items():
        default = defaults.get(setting)
        if choice is not default and not (isinstance(choice, str) and choice == default):
            raise SettingsError(setting, f"left out: the {what} are already read", choice)


def check_choices(on_conflict: object, on_missing: object) -> None:
    """SettingsError where a rule is none of those that there are."""
    _check_choice("on_conflict", on_conflict, ("error", "first", "last", "most frequent"))
    _check_choice("on_missing", on_missing, ("error", "drop"))


def _check_choice(setting: str, given: object, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise SettingsError(setting, " or ".join(f'"{choice}"' for choice in choices), given)
