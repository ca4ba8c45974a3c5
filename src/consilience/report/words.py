"""The sentences of a summary."""

from __future__ import annotations

from dataclasses import replace

from consilience.claims.words import quantity
from consilience.report.formats import share
from consilience.report.summary import Certainty, Course, Gold, Groups, Majority, Sources, Summary, Worth
from consilience.results.fit import Fit
from consilience.results.score import Score

UNSCORED = "No score: every object with a gold truth was given as known."
CHANCE = 0.05
"""A p-value above this may be chance."""


def title(fit: Fit) -> str:
    """What the page is about."""
    return f"What {fit.model} found in {quantity(fit.claims.n_claims, 'claim')}"


def with_paragraph(summary: Summary) -> Summary:
    """The summary with all of it told in one paragraph."""
    n, disputed = summary.sources.n, summary.n_disputed
    table = (
        f"{quantity(n, 'source makes', 'sources make')} {quantity(summary.n_claims, 'claim')} about "
        f"{quantity(summary.n_objects, 'object')}"
    )
    if disputed:
        table += f", and contradict one another on {'it' if summary.n_objects == 1 else f'{disputed:,}'}"
    elif n > 1:
        table += "; none contradicts another"
    told = [f"{table}.", majority(summary.majority)]
    if summary.groups is not None:
        told += [groups(summary.groups), worth(summary.worth)]
    told += [reliability(summary.sources), doubt(summary)]
    if summary.gold is not None and summary.gold.accuracy is not None:
        told.append(right(summary.gold, summary.course.model))
    return replace(summary, found=" ".join(filter(None, told)))


def majority(of: Majority) -> str:
    """How often the answer differs from majority vote."""
    if not of.n_found:
        return f"{quantity(of.n_given, 'truth was', 'truths were')} given, and none was left to find."
    given = f" ({quantity(of.n_given, 'more was', 'more were')} given)" if of.n_given else ""
    if not of.n_different:
        where = {1: "", 2: " on both objects"}.get(of.n_found, f" on all {of.n_found:,} objects")
        return f"The answer is that of majority vote{where}{given}."
    often = "" if of.n_found == 1 else f" on {of.n_different:,} of {of.n_found:,} objects"
    return f"The answer differs from majority vote{often}{given}."


def groups(of: Groups) -> str:
    """How many there are, and the largest."""
    if not of.n_shared:
        none = "No two sources share a group: what they have in common makes none a copy of another."
        return none if of.n_apart > 1 else ""
    largest = of.largest[0]
    reliable = f"{share(largest.reliability, 0)} reliable"
    apart = f"; {quantity(of.n_apart, 'stands', 'stand')} apart" if of.n_apart else ""
    which = "The group" if of.n_shared == 1 else "The largest group"
    return (
        f"Sources that err alike form {quantity(of.n_shared, 'group')}{apart}. {which} has "
        f"{quantity(largest.n_sources, 'source')} and is "
        f"{reliable if largest.kind == 'reliable' else f'{largest.kind}, {reliable}'}."
    )


def worth(of: Worth) -> str:
    """How many independent sources there are."""
    if of.n_sources < 2:
        return ""
    return f"The {of.n_sources:,} sources are worth {quantity(of.overall, 'independent one')}."


def median_worth(of: Worth) -> str:
    """How many sources an object has, and what they are worth."""
    claims, independent = (
        quantity(of.median_claims, "claim"),
        quantity(of.median_worth, "independent one"),
    )
    return f"The median object has {claims}" + (
        f", worth {independent}."
        if of.n_sources > 1
        else f": there is only {quantity(of.n_sources, 'source')}."
    )


def independence(of: Worth) -> str:
    """What the test against independence says."""
    if of.shared is None or of.p_value is None:
        return ""
    tested = f"(permutation test on squared counts, p = {of.p_value:.2g})"
    times = f"{of.shared:.2g}"
    is_chance = of.p_value > CHANCE
    # However small p is, a share of 1 or less is no more than chance gives.
    if of.shared <= 1 or (times == "1" and is_chance):
        return f"Pair by pair, sources share about as many mistakes as independent ones would, or fewer {tested}."
    more = (
        f"{share(of.shared - 1)} more mistakes than" if times == "1" else f"{times} times the mistakes that"
    )
    chance = "which may be chance" if is_chance else "more than chance explains"
    return f"Pair by pair, sources share {more} independent ones would, {chance} {tested}."


def strangers(of: Course) -> str:
    """That groups err together, where it made a difference."""
    if of.learned.get("design_effect", 1.0) <= 1:
        return ""
    return (
        f"Groups that have nothing to do with each other still say the same where it is not true (correlation "
        f"{of.learned['shared_errors']:.2f}): objects mislead many. Probabilities allow for it, and sources had to "
        "share more than that to be a group."
    )


def reliability(of: Sources) -> str:
    """How far it reaches."""
    if of.lowest is None or of.highest is None or of.n - of.n_unrated < 2:
        return ""
    unrated = f"; {quantity(of.n_unrated, 'is', 'are')} not rated" if of.n_unrated else ""
    low, high = share(of.lowest, 0), share(of.highest, 0)
    if low == high:
        return f"All {of.n - of.n_unrated:,} sources are about {low} reliable{unrated}."
    return f"The reliability of a source goes from {low} to {high}{unrated}."


def doubt(summary: Summary) -> str:
    """How many decisions one should look at."""
    n, of = summary.certainty.n_doubtful, summary.majority.n_found
    if not of:
        return ""
    if not n:
        return f"{'The' if of == 1 else 'Every'} decision has a probability of at least 90%."
    return f"{quantity(n, 'decision has', 'decisions have')} a probability below 90%."


def ties(of: Certainty) -> str:
    """How many decisions are no better than another."""
    return f"{quantity(of.n_ties, 'tie was', 'ties were')} decided by seed {of.seed}." if of.n_ties else ""


def right(of: Gold, model: str) -> str:
    """Against gold, and against voting where it was run."""
    if of.accuracy is None:
        return UNSCORED
    told = f"Against gold {model} is right on {of.n_right:,} of {quantity(of.n_gold, 'object')} ({share(of.accuracy)})"
    voted = next((r.accuracy for r in of.rivals if r.model == "vote" and model != "vote"), None)
    return f"{told}, majority vote on {share(voted)}." if voted is not None else f"{told}."


def scored(of: Gold) -> list[str]:
    """How sure it was, what counts and what does not."""
    told = []
    if of.log_loss is not None:
        told.append(f"log loss {of.log_loss:.3f}, calibration error {of.calibration_error:.3f}")
    return told + counted(of, of.otherwise)


def counted(of: Gold | Score, otherwise: str) -> list[str]:
    """What counts and what does not, with a sentence on truths that are written otherwise than claims."""
    told = []
    if of.n_outside:
        outside = quantity(of.n_outside, "of them has", "of them have")
        told.append(
            f"{outside} a truth that nobody claims, and {'counts' if of.n_outside == 1 else 'count'} as wrong"
        )
    if otherwise:
        told.append(otherwise)
    if of.n_known:
        known = quantity(
            of.n_known, "object was given as known and is", "objects were given as known and are"
        )
        told.append(f"{known} not scored")
    if of.n_unclaimed:
        told.append(
            f"{quantity(of.n_unclaimed, 'more has no claims and is', 'more have no claims and are')} not scored"
        )
    return told


def course(of: Course) -> str:
    """How the fit went."""
    if of.bound is None:
        return f"{of.model} took {of.seconds:.2g} s"
    state = "converged" if of.converged else "stopped"
    return f"{of.model} {state} after {quantity(of.sweeps, 'sweep')} in {of.seconds:.2g} s, bound {of.bound:,.2f}"


def starts(of: Course) -> str:
    """Whether other starts tell the same story."""
    if len(of.starts) < 2:
        return ""
    alike = sum(start.get("agreement", 0.0) >= 0.99 for start in of.starts[1:])
    rest = f"of the other {len(of.starts) - 1}"
    others = quantity(alike, f"{rest} agrees", f"{rest} agree")
    if len(of.starts) == 2:
        others = "the other agrees" if alike else "the other does not agree"
    return (
        f"It is the best of {len(of.starts)} starts by its bound; {others} with it on at least 99% of the "
        "objects."
    )


def of_all(what: str, shown: int, n: int) -> str:
    """A caption that says how many rows are left out."""
    return f"{what}: {shown:,} of {n:,}" if shown < n else what
