"""The report: a summary as one HTML file with charts, which loads nothing."""

from __future__ import annotations

from consilience.report import figures, words
from consilience.report.charts import require, unchecked
from consilience.report.environment import environment, look
from consilience.report.formats import share
from consilience.report.summary import Summary

SECTIONS = {
    "found": "Found",
    "majority": "Against majority vote",
    "sources": "Sources",
    "worth": "Independent sources",
    "groups": "Groups",
    "doubt": "Least certain",
    "gold": "Against gold",
    "course": "The fit",
    "provenance": "Provenance",
}
GROUPS = 20
"""Groups in the table; the charts have more."""


def html(summary: Summary) -> str:
    """The report of a fit. EngineUnavailableError where what draws charts or fills templates is not installed."""
    require()
    template = environment().get_template("report.html")
    missing = {name for name, part in (("groups", summary.groups), ("gold", summary.gold)) if part is None}
    with unchecked():
        drawn = charts(summary)
    page: str = template.render(
        s=summary,
        words=words,
        look=look(),
        charts=drawn,
        headline=headline(summary),
        sections=[(name, text) for name, text in SECTIONS.items() if name not in missing],
        has_intervals=any(source.low is not None for source in summary.sources.best),
        shown_groups=GROUPS,
        drawn_groups=figures.DRAWN,
    )
    return page


def charts(summary: Summary) -> dict[str, str]:
    """SVG by name; "" for what there is nothing to draw of."""
    groups, gold, course = summary.groups, summary.gold, summary.course
    rated = any(source.reliability is not None for source in summary.sources.best)
    return {
        "reliability": figures.reliability(summary.sources) if rated else "",
        "worth": figures.worth(summary.worth.bins) if summary.worth.bins else "",
        "heat_map": figures.heat_map(groups.heat) if groups and groups.heat else "",
        "graph": figures.graph(groups) if groups and groups.n_shared else "",
        "bound": figures.bound(course) if len(course.trace) > 1 else "",
        "rivals": figures.rivals(gold.rivals, course.model) if gold and gold.rivals else "",
        "calibration": figures.calibration(gold.calibration) if gold and gold.calibration else "",
    }


def headline(summary: Summary) -> list[tuple[str, str]]:
    """The few numbers that stand large at the top."""
    facts = [
        ("objects decided", f"{summary.majority.n_found:,}"),
        ("against majority vote", f"{summary.majority.n_different:,}"),
        ("sources", f"{summary.sources.n:,}"),
    ]
    if summary.groups is not None:
        facts.append(("worth independent ones", f"{summary.worth.overall:.3g}"))
    facts.append(("doubtful decisions", f"{summary.certainty.n_doubtful:,}"))
    if summary.gold is not None and summary.gold.accuracy is not None:
        facts.append(("right, against gold", share(summary.gold.accuracy)))
    return facts
