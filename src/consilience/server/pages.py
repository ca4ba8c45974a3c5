"""The explorer's pages: what each shows, handed to its template."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import quote, urlencode

from consilience.report.environment import environment
from consilience.server import words
from consilience.server.catalogue import OBJECT_ORDERS, SOURCE_ORDERS, ObjectQuery, SourceQuery
from consilience.server.explorer import Explorer
from consilience.server.refit import can_be_new
from consilience.server.shapes import GroupRow
from consilience.server.waterfall import waterfall

SIZE = 50
"""Rows of a page of a list."""
LONGEST_LINK = 200
"""Characters of an id that stand in a link; longer ones are named by number."""
FEW = 5
"""Rows of the lists on the first page."""


class Pages:
    """Renders pages over one explorer."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._templates = environment("consilience.server")
        self._templates.globals.update(link=link)

    def overview(self) -> str:
        """The result as a whole, and where to go."""
        found = self._explorer
        differing = found.objects(ObjectQuery(differs=True, order="claims"), 1, FEW)
        uncertain = found.objects(ObjectQuery(order="uncertainty"), 1, FEW)
        return self._page(
            "overview",
            sentence=words.overview(found.about()),
            uncertain=uncertain,
            differing=differing,
            groups=_shared(found.result.groups())[:FEW],
        )

    def objects(self, query: ObjectQuery, page: int) -> str:
        """A list of objects."""
        rows = self._explorer.objects(query, page, SIZE)
        given = {name: value for name, value in asdict(query).items() if value not in ("", None)}
        given = {name: {True: "yes", False: "no"}.get(value, value) for name, value in given.items()}
        return self._page(
            "objects", rows=rows, query=query, orders=list(OBJECT_ORDERS), next=_turning("/objects", given)
        )

    def object(self, identity: str | None, number: int | None, against: int | None) -> str:
        """Why one object is decided so, and not as `against` says, a place among its candidates.

        Without it, as the majority says where that is overruled, which readers ask about; else as the runner-up says.
        """
        shape = self._explorer.object(identity, number)
        if against is None:
            most = max(range(len(shape.candidates)), key=lambda z: shape.candidates[z].n_claims)
            against = most or 1
        against = min(against, max(len(shape.candidates) - 1, 1))
        return self._page(
            "object",
            shape=shape,
            chart=waterfall(shape, against),
            against=against,
            can_be_new=can_be_new(self._explorer.result.fit),
            kinds={row.group: row.kind for row in self._explorer.result.groups()},
        )

    def sources(self, query: SourceQuery, page: int) -> str:
        """A list of sources."""
        rows = self._explorer.result.catalogue.sources(query, page, SIZE)
        given = {name: value for name, value in asdict(query).items() if value not in ("", None)}
        for name in ("least", "most"):
            if name in given:
                given[name] = round(100 * given[name], 6)
        turning = _turning("/sources", given)
        return self._page(
            "sources", rows=rows, query=query, orders=list(SOURCE_ORDERS), given=given, next=turning
        )

    def source(self, identity: str | None, number: int | None, page: int) -> str:
        """One source."""
        result = self._explorer.result
        shape = result.source(result.source_number(identity, number), page, SIZE)
        turning = _turning("/source", {"number": shape.row.number})
        return self._page("source", shape=shape, next=turning)

    def groups(self) -> str:
        """All groups of several sources."""
        return self._page("groups", groups=_shared(self._explorer.result.groups()))

    def group(self, number: int, page: int) -> str:
        """One group."""
        shape = self._explorer.result.group(number, page, SIZE)
        return self._page("group", shape=shape, next=_turning("/group", {"number": number}))

    def review(self) -> str:
        """The object most worth checking, and the refit."""
        found = self._explorer
        queue = found.queue(FEW + 1)
        task = queue.tasks[0] if queue.tasks else None
        return self._page(
            "review",
            queue=queue,
            task=task,
            shape=None if task is None else found.object(None, task.number),
            can_be_new=can_be_new(found.result.fit),
            refit=found.refitting.state(),
            answers=found.answers(1, FEW),
        )

    def interface(self, described: dict[str, Any]) -> str:
        """The JSON interface, from its own description."""
        return self._page("interface", described=described)

    def error(self, status: int, why: str) -> str:
        """What went wrong."""
        return self._page("error", status=status, why=why)

    def _page(self, name: str, **content: Any) -> str:
        about = self._explorer.about()
        return str(self._templates.get_template(f"{name}.html").render(about=about, here=name, **content))


def link(kind: str, number: int, identity: str) -> str:
    """The address of an object's or a source's page: by id where that is short enough to be read, else by number."""
    if 0 < len(identity) <= LONGEST_LINK and identity.isprintable():
        return f"/{kind}?id={quote(identity, safe='')}"
    return f"/{kind}?number={number}"


def _shared(groups: list[GroupRow]) -> list[GroupRow]:
    """Groups of several sources; the others are listed as sources."""
    return [row for row in groups if row.n_sources > 1]


def _turning(path: str, given: dict[str, Any]) -> Any:
    """A function from a page's number to its address."""
    return lambda page: f"{path}?{urlencode({**given, 'page': page})}"
