"""The sentences of a summary."""

from __future__ import annotations

from dataclasses import replace

from consilience.claims.checks import quantity
from consilience.report.formats import share
from consilience.report.summary import Certainty, Course, Gold, Groups, Majority, Sources, Summary, Worth
from consilience.results.fit import Fit


def title(fit: Fit) -> str:
    """What the page is about."""
    return f"What {fit.model} found in {quantity(fit.claims.n_claims, 'claim')}"


def with_paragraph(summary: Summary) -> Summary:
    """The summary with all of it told in one paragraph."""
    n, disputed = summary.sources.n, summary.n_disputed
    told = [
        f"{quantity(n, 'source')} {'makes' if n == 1 else 'make'} {quantity(summary.n_claims, 'claim')} about "
        f"{quantity(summary.n_objects, 'object')}"
        + (f", and contradict one another on {disputed:,}." if disputed else "; none contradicts another."),
        majority(summary.majority),
    ]
    if summary.groups is not None:
        told += [groups(summary.groups), worth(summary.worth)]
    told += [reliability(summary.sources), doubt(summary)]
    if summary.gold is not None and summary.gold.accuracy is not None:
        told.append(right(summary.gold, summary.course.model))
    return replace(summary, found=" ".join(filter(None, told)))


def majority(of: Majority) -> str:
    """How often the answer differs from majority vote."""
    given = f" ({of.n_given:,} more {'was' if of.n_given == 1 else 'were'} given)" if of.n_given else ""
    often = f"{of.n_different:,}" if of.n_different else "none"
    return f"The answer differs from majority vote on {often} of {quantity(of.n_found, 'object')}{given}."


def groups(of: Groups) -> str:
    """How many there are, and the largest."""
    if not of.n_shared:
        return "No two sources share a group: none seems to copy another."
    largest = of.largest[0]
    reliable = f"{share(largest.reliability, 0)} reliable"
    return (
        f"Sources that err alike form {quantity(of.n_shared, 'group')}; {of.n_apart:,} "
        f"{'stands' if of.n_apart == 1 else 'stand'} apart. The largest group has "
        f"{quantity(largest.n_sources, 'source')} and is "
        f"{reliable if largest.kind == 'reliable' else f'{largest.kind}, {reliable}'}."
    )


def worth(of: Worth) -> str:
    """How many independent sources there are."""
    verb, ones = ("is", "one") if of.n_sources == 1 else ("are", "ones")
    return f"The {quantity(of.n_sources, 'source')} {verb} worth {of.overall:.3g} independent {ones}."


def median_worth(of: Worth) -> str:
    """How many sources an object has, and what they are worth."""
    return (
        f"The median object has {of.median_claims:.3g} claims, worth {of.median_worth:.3g} independent ones."
    )


def independence(of: Worth) -> str:
    """What the test against independence says."""
    if of.shared is None or of.p_value is None:
        return ""
    often = f"Pair by pair, sources share {of.shared:.2g} times the mistakes that independent ones would"
    chance = "which may be chance" if of.p_value > 0.05 else "more than chance explains"
    return f"{often}, {chance} (permutation test on squared counts, p = {of.p_value:.2g})."


def reliability(of: Sources) -> str:
    """How far it reaches."""
    rated = [source.reliability for source in (*of.best, *of.worst) if source.reliability is not None]
    if len(rated) < 2:
        return ""
    low, high = share(rated[-1], 0), share(rated[0], 0)
    if low == high:
        return f"All sources are about {low} reliable."
    return f"The reliability of a source goes from {low} to {high}."


def doubt(summary: Summary) -> str:
    """How many decisions one should look at."""
    n = summary.certainty.n_doubtful
    if not n:
        return "Every decision has a probability of at least 90%."
    return f"{quantity(n, 'decision')} {'has' if n == 1 else 'have'} a probability below 90%."


def ties(of: Certainty) -> str:
    """How many decisions are no better than another."""
    return f"{quantity(of.n_ties, 'tie was', 'ties were')} decided by seed {of.seed}." if of.n_ties else ""


def right(of: Gold, model: str) -> str:
    """Against gold, and against voting where it was run."""
    if of.accuracy is None:
        return "No score: every object with a gold truth was given as known."
    told = f"Against gold {model} is right on {of.n_right:,} of {quantity(of.n_gold, 'object')} ({share(of.accuracy)})"
    voted = next((r.accuracy for r in of.rivals if r.model == "vote" and model != "vote"), None)
    return f"{told}, majority vote on {share(voted)}." if voted is not None else f"{told}."


def scored(of: Gold) -> list[str]:
    """What counts and what does not."""
    told = []
    if of.log_loss is not None:
        told.append(f"log loss {of.log_loss:.3f}, calibration error {of.calibration_error:.3f}")
    if of.n_outside:
        told.append(f"{of.n_outside:,} of them have a truth that nobody claims and count as wrong")
    if of.n_known:
        were, are = ("object was", "is") if of.n_known == 1 else ("objects were", "are")
        told.append(f"{of.n_known:,} {were} given as known and {are} not scored")
    if of.n_unclaimed:
        told.append(f"{of.n_unclaimed:,} more have no claims and are not scored")
    return told


def course(of: Course) -> str:
    """How the fit went."""
    if of.bound is None:
        return f"{of.model} took {of.seconds:.2g} s"
    state = "converged" if of.converged else "stopped"
    return f"{of.model} {state} after {of.sweeps:,} sweeps in {of.seconds:.2g} s, bound {of.bound:,.2f}"


def starts(of: Course) -> str:
    """Whether other starts tell the same story."""
    if len(of.starts) < 2:
        return ""
    others = of.starts[1:]
    alike = sum(start.get("agreement", 0.0) >= 0.99 for start in others)
    return (
        f"It is the best of {len(of.starts)} starts by its bound; {alike} of the other {len(others)} "
        f"{'agrees' if alike == 1 else 'agree'} with it on at least 99% of the objects."
    )


def of_all(what: str, shown: int, n: int) -> str:
    """A caption that says how many rows are left out."""
    return f"{what}: {shown:,} of {n:,}" if shown < n else what
