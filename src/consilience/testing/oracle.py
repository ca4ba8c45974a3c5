"""The local steps as slow, obvious loops: no vectorisation, no shortcuts, nothing shared with the kernels.

Each function returns plain Python: q(t) as a list over candidates, statistics as nested lists, the bound's local terms
as a dict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, lgamma, log
from typing import TypeVar

import numpy as np
from scipy.special import digamma

from consilience.claims.encoding import Shard
from consilience.kernels.state import Beliefs, Globals, Grouping, Locals, Prior

K = TypeVar("K")


@dataclass(frozen=True)
class Result:
    """What a local step gives, in plain lists."""

    truth: list[float]
    object_reliability: list[list[float]]
    score: list[list[float]]
    reliable: list[list[float]]
    terms: dict[str, float]
    answers: list[list[list[float]]]
    """Mean-field: the Dirichlet parameters of each group on each object."""


def dirichlet_parameters(size: int, z: int, r: int, prior: Prior) -> list[float]:
    """a^{r,z}: η^r at z, θ^r elsewhere."""
    return [float(prior.true_count[r] if k == z else prior.false_count[r]) for k in range(size)]


def log_beta(a: list[float]) -> float:
    """ln B(a) = Σ lnΓ(a_k) - lnΓ(Σ a_k)."""
    return sum(lgamma(x) for x in a) - lgamma(sum(a))


def expected_log_r(given: Globals, group: int, r: int) -> float:
    """E ln p(r | u_l) under q(u_l)."""
    b0, b1 = given.group_reliability[group]
    return float(digamma((b0, b1)[r]) - digamma(b0 + b1))


def structured(shard: Shard, given: Globals, prior: Prior) -> Result:
    """MODEL.md §4, by enumeration of z and r for every object and every group with claims."""
    truth: list[float] = []
    score = [[0.0] * given.group.shape[1] for _ in range(given.group.shape[0])]
    reliable = [[0.0, 0.0] for _ in range(given.n_groups)]
    terms = dict.fromkeys(("claims", "answers", "reliability", "truth"), 0.0)
    for m in range(shard.n_objects):
        start, stop = int(shard.first_candidate[m]), int(shard.first_candidate[m + 1])
        size = stop - start
        claims = [
            (int(shard.claim_source[i]), int(shard.claim_candidate[i]) - start)
            for i in range(shard.first_claim[m], shard.first_claim[m + 1])
        ]
        counts: dict[int, list[float]] = {}
        for n, k in claims:
            for w in range(given.group.shape[1]):
                if given.membership[n, w] > 0:
                    counts.setdefault(int(given.group[n, w]), [0.0] * size)[k] += float(
                        given.membership[n, w]
                    )

        # the summands of S_lm(z), for every group, r and z
        summand = {
            (group, r, z): expected_log_r(given, group, r)
            + log_beta([a + n for a, n in zip(dirichlet_parameters(size, z, r, prior), count, strict=True)])
            - log_beta(dirichlet_parameters(size, z, r, prior))
            for group, count in counts.items()
            for r in (0, 1)
            for z in range(size)
        }
        logit = [
            float(shard.log_truth[start + z])
            + sum(log(exp(summand[group, 0, z]) + exp(summand[group, 1, z])) for group in counts)
            for z in range(size)
        ]
        highest = max(logit)
        total = sum(exp(x - highest) for x in logit)
        nu = [exp(x - highest) / total for x in logit]
        truth += nu
        terms["truth"] += sum(
            q * (float(shard.log_truth[start + z]) - log(q)) for z, q in enumerate(nu) if q > 0
        )

        log_answer: dict[tuple[int, int], float] = {}
        for group, count in counts.items():
            q = {
                (r, z): exp(summand[group, r, z]) / (exp(summand[group, 0, z]) + exp(summand[group, 1, z]))
                for r in (0, 1)
                for z in range(size)
            }
            for k in range(size):
                log_answer[group, k] = 0.0
            for (r, z), q_r in q.items():
                posterior = [
                    a + n for a, n in zip(dirichlet_parameters(size, z, r, prior), count, strict=True)
                ]
                expected = [float(digamma(a) - digamma(sum(posterior))) for a in posterior]
                joint = nu[z] * q_r
                reliable[group][r] += joint
                if joint > 0:
                    terms["reliability"] += joint * (expected_log_r(given, group, r) - log(q_r))
                # E ln p(π | r, t) - E ln q(π | r, t)
                a_prior = dirichlet_parameters(size, z, r, prior)
                terms["answers"] += joint * (
                    log_beta(posterior)
                    - log_beta(a_prior)
                    + sum((a_prior[k] - posterior[k]) * expected[k] for k in range(size))
                )
                for k in range(size):
                    log_answer[group, k] += joint * expected[k]
                    terms["claims"] += joint * count[k] * expected[k]
        for n, k in claims:
            for w in range(given.group.shape[1]):
                if given.membership[n, w] > 0:
                    score[n][w] += log_answer[int(given.group[n, w]), k]
    return Result(truth, [], score, reliable, terms, [])


def mean_field(shard: Shard, given: Globals, prior: Prior, warm: Locals) -> Result:
    """MODEL.md §3: π, then r, then t, group by group and object by object."""
    assert warm.object_reliability is not None
    n_groups = given.n_groups
    truth: list[float] = []
    object_reliability: list[list[float]] = []
    answers: list[list[list[float]]] = []
    score = [[0.0] * (n_groups + 1) for _ in range(given.group.shape[0])]
    reliable = [[0.0, 0.0] for _ in range(n_groups)]
    terms = dict.fromkeys(("claims", "answers", "reliability", "truth"), 0.0)
    for m in range(shard.n_objects):
        start, stop = int(shard.first_candidate[m]), int(shard.first_candidate[m + 1])
        size = stop - start
        claims = [
            (int(shard.claim_source[i]), int(shard.claim_candidate[i]) - start)
            for i in range(shard.first_claim[m], shard.first_claim[m + 1])
        ]
        nu = [float(x) for x in warm.truth[start:stop]]

        alpha, expected, q_r = [], [], []
        for group in range(n_groups):
            q = [1 - float(warm.object_reliability[m, group]), float(warm.object_reliability[m, group])]
            count = [sum(float(given.membership[n, group]) for n, y in claims if y == k) for k in range(size)]
            alpha.append(
                [
                    1
                    + count[k]
                    + sum(
                        q[r] * ((prior.true_count[r] - 1) * nu[k] + (prior.false_count[r] - 1) * (1 - nu[k]))
                        for r in (0, 1)
                    )
                    for k in range(size)
                ]
            )
            expected.append([float(digamma(a) - digamma(sum(alpha[group]))) for a in alpha[group]])
            weight = [
                exp(
                    expected_log_r(given, group, r)
                    + sum(nu[z] * log_density(expected[group], z, r, prior) for z in range(size))
                )
                for r in (0, 1)
            ]
            q_r.append([weight[0] / sum(weight), weight[1] / sum(weight)])

        tail = [
            [
                sum(
                    prior.reliability[r] / prior.reliability.sum() * float(digamma(a[k]) - digamma(sum(a)))
                    for r in (0, 1)
                    for a in [dirichlet_parameters(size, z, r, prior)]
                )
                for k in range(size)
            ]
            for z in range(size)
        ]  # tail[z][k]: E ln π_k of a group at its prior when the truth is z
        logit = [
            float(shard.log_truth[start + z])
            + sum(q_r[g][r] * log_density(expected[g], z, r, prior) for g in range(n_groups) for r in (0, 1))
            + sum(float(given.membership[n, n_groups]) * tail[z][k] for n, k in claims)
            for z in range(size)
        ]
        highest = max(logit)
        total = sum(exp(x - highest) for x in logit)
        nu = [exp(x - highest) / total for x in logit]

        truth += nu
        answers.append(alpha)
        object_reliability.append([q[1] for q in q_r])
        terms["truth"] += sum(
            q * (float(shard.log_truth[start + z]) - log(q)) for z, q in enumerate(nu) if q > 0
        )
        for group in range(n_groups):
            for r in (0, 1):
                reliable[group][r] += q_r[group][r]
                terms["reliability"] += q_r[group][r] * (expected_log_r(given, group, r) - log(q_r[group][r]))
                terms["answers"] += q_r[group][r] * sum(
                    nu[z] * log_density(expected[group], z, r, prior) for z in range(size)
                )
            terms["answers"] -= sum(
                (alpha[group][k] - 1) * expected[group][k] for k in range(size)
            ) - log_beta(alpha[group])
        for n, k in claims:
            for group in range(n_groups):
                score[n][group] += expected[group][k]
                terms["claims"] += float(given.membership[n, group]) * expected[group][k]
            at_prior = sum(nu[z] * tail[z][k] for z in range(size))
            score[n][n_groups] += at_prior
            terms["claims"] += float(given.membership[n, n_groups]) * at_prior
    return Result(truth, object_reliability, score, reliable, terms, answers)


def log_density(expected: list[float], z: int, r: int, prior: Prior) -> float:
    """E ln Dir(π; a^{r,z}) when E ln π = expected."""
    a = dirichlet_parameters(len(expected), z, r, prior)
    return sum((x - 1) * e for x, e in zip(a, expected, strict=True)) - log_beta(a)


def sample_terms(
    shard: Shard, given: Globals, prior: Prior, n_samples: int, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Monte Carlo of the structured bound: draw from q, average ln p - ln q term by term. Mean and standard error.

    Draws g, u, ρ from their factors, then t, r | t and π | r, t from the optimal local factors, and evaluates the
    densities themselves: no expectation is taken in closed form.
    """
    from scipy import stats

    n_sources, width = given.group.shape
    optimum = structured(shard, given, prior)
    draws: dict[str, list[float]] = {
        name: [] for name in ("claims", "answers", "reliability", "truth", "membership", "sticks", "groups")
    }
    for _ in range(n_samples):
        u = np.array([rng.beta(b1, b0) for b0, b1 in given.group_reliability])
        rho = np.array([rng.beta(a, b) for a, b in given.sticks])
        log_lambda = np.log(rho) + np.concatenate([[0.0], np.cumsum(np.log1p(-rho))[:-1]])
        slot = [int(rng.choice(width, p=given.membership[n])) for n in range(n_sources)]
        group = [int(given.group[n, slot[n]]) for n in range(n_sources)]
        draw = dict.fromkeys(draws, 0.0)
        draw["groups"] = sum(
            float(stats.beta.logpdf(u[g], *prior.reliability[::-1]) - stats.beta.logpdf(u[g], b1, b0))
            for g, (b0, b1) in enumerate(given.group_reliability)
        )
        draw["sticks"] = sum(
            float(stats.beta.logpdf(rho[g], 1, prior.concentration) - stats.beta.logpdf(rho[g], a, b))
            for g, (a, b) in enumerate(given.sticks)
        )
        draw["membership"] = sum(
            float(log_lambda[group[n]] - log(given.membership[n, slot[n]])) for n in range(n_sources)
        )
        for m in range(shard.n_objects):
            start, stop = int(shard.first_candidate[m]), int(shard.first_candidate[m + 1])
            size = stop - start
            nu = optimum.truth[start:stop]
            z = int(rng.choice(size, p=np.array(nu) / sum(nu)))
            draw["truth"] += float(shard.log_truth[start + z]) - log(nu[z])
            claims = [
                (int(shard.claim_source[i]), int(shard.claim_candidate[i]) - start)
                for i in range(shard.first_claim[m], shard.first_claim[m + 1])
            ]
            counts: dict[int, list[float]] = {}
            for n, k in claims:
                for w in range(width):
                    if given.membership[n, w] > 0:
                        counts.setdefault(int(given.group[n, w]), [0.0] * size)[k] += float(
                            given.membership[n, w]
                        )
            for g, count in counts.items():
                posterior = {
                    r: np.array(dirichlet_parameters(size, z, r, prior)) + np.array(count) for r in (0, 1)
                }
                summand = [
                    expected_log_r(given, g, r)
                    + log_beta(list(posterior[r]))
                    - log_beta(dirichlet_parameters(size, z, r, prior))
                    for r in (0, 1)
                ]
                q1 = 1 / (1 + exp(summand[0] - summand[1]))
                r = int(rng.random() < q1)
                pi = np.maximum(rng.dirichlet(posterior[r]), 1e-300)
                log_pi = np.log(pi)
                a = np.array(dirichlet_parameters(size, z, r, prior))
                draw["reliability"] += log(u[g] if r else 1 - u[g]) - log(q1 if r else 1 - q1)
                draw["answers"] += float(
                    np.sum((a - posterior[r]) * log_pi) - log_beta(list(a)) + log_beta(list(posterior[r]))
                )
                draw["claims"] += sum(float(log_pi[k]) for n, k in claims if group[n] == g)
        for name, value in draw.items():
            draws[name].append(value)
    return {
        name: (float(np.mean(values)), float(np.std(values) / np.sqrt(n_samples)))
        for name, values in draws.items()
    }


def sample_mean_field_terms(
    shard: Shard, given: Globals, prior: Prior, warm: Locals, n_samples: int, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Monte Carlo of the mean-field bound, the infinite tail included: a source may join any group there is."""
    from scipy import stats

    optimum = mean_field(shard, given, prior, warm)
    n_groups, kappa = given.n_groups, prior.concentration
    ratio = exp(-1 / kappa)  # of the weights of one group beyond the truncation and the next
    draws: dict[str, list[float]] = {
        name: [] for name in ("claims", "answers", "reliability", "truth", "membership", "sticks", "groups")
    }
    for _ in range(n_samples):
        draw = dict.fromkeys(draws, 0.0)
        u = [float(rng.beta(b1, b0)) for b0, b1 in given.group_reliability]
        rho = [float(rng.beta(a, b)) for a, b in given.sticks]
        for g, (b0, b1) in enumerate(given.group_reliability):
            draw["groups"] += float(
                stats.beta.logpdf(u[g], *prior.reliability[::-1]) - stats.beta.logpdf(u[g], b1, b0)
            )
        for g, (a, b) in enumerate(given.sticks):
            draw["sticks"] += float(stats.beta.logpdf(rho[g], 1, kappa) - stats.beta.logpdf(rho[g], a, b))
        group = []
        for n in range(len(given.membership)):
            g = int(rng.choice(n_groups + 1, p=given.membership[n]))
            log_q = log(given.membership[n, g])
            if g == n_groups:
                beyond = int(rng.geometric(1 - ratio)) - 1
                log_q += log(1 - ratio) + beyond * log(ratio)
                g += beyond
            while (
                len(rho) <= g
            ):  # sticks beyond the truncation are at their prior, and add nothing to the bound
                rho.append(float(rng.beta(1, kappa)))
            draw["membership"] += log(rho[g]) + sum(np.log1p(-np.array(rho[:g]))) - log_q
            group.append(g)
        for m in range(shard.n_objects):
            start, stop = int(shard.first_candidate[m]), int(shard.first_candidate[m + 1])
            nu = np.array(optimum.truth[start:stop])
            z = int(rng.choice(stop - start, p=nu / nu.sum()))
            draw["truth"] += float(shard.log_truth[start + z]) - log(nu[z])
            log_pi: dict[int, list[float]] = {}
            for g in range(n_groups):
                q1 = optimum.object_reliability[m][g]
                r = int(rng.random() < q1)
                draw["reliability"] += log(u[g] if r else 1 - u[g]) - log(q1 if r else 1 - q1)
                alpha = optimum.answers[m][g]
                log_pi[g] = [float(x) for x in np.log(np.maximum(rng.dirichlet(alpha), 1e-300))]
                draw["answers"] += log_density(log_pi[g], z, r, prior)
                draw["answers"] -= sum((a - 1) * x for a, x in zip(alpha, log_pi[g], strict=True)) - log_beta(
                    alpha
                )
            for i in range(shard.first_claim[m], shard.first_claim[m + 1]):
                g, k = group[int(shard.claim_source[i])], int(shard.claim_candidate[i]) - start
                if g >= n_groups and g not in log_pi:
                    r = int(rng.random() < rng.beta(*prior.reliability[::-1]))
                    at_prior = rng.dirichlet(dirichlet_parameters(stop - start, z, r, prior))
                    log_pi[g] = [float(x) for x in np.log(np.maximum(at_prior, 1e-300))]
                draw["claims"] += log_pi[g][k]
        for name, value in draw.items():
            draws[name].append(value)
    return {
        name: (float(np.mean(values)), float(np.std(values) / np.sqrt(n_samples)))
        for name, values in draws.items()
    }


@dataclass(frozen=True)
class GroupingResult:
    """What a local step of the partition inference gives, in plain lists."""

    truth: list[float]
    reliable: list[list[list[float]]]
    habit: list[list[list[float]]]
    share: list[list[float]]
    counts: list[float]
    objects: list[float]
    """Each object's part of the bound."""
    lured: list[float]


Class = tuple[int, int]
"""An object's kind and its lure."""
NO_LURE, LURED = -1, 2


def log_urn(said: list[int], opinion: int, size: int, beliefs: Beliefs) -> float:
    """ln probability that members of a group with this opinion say these values one after the other, π summed out.

    A Pólya urn with η balls of the opinion and θ of every other value; each claim adds a ball of its value.
    """
    balls = [beliefs.true_count if k == opinion else beliefs.false_count for k in range(size)]
    log_p = 0.0
    for k in said:
        log_p += log(balls[k] / sum(balls))
        balls[k] += 1
    return log_p


def stories(
    shard: Shard, given: Grouping, beliefs: Beliefs, m: int
) -> tuple[dict[tuple[Class, int], float], dict[tuple[int, Class, int], dict[tuple[int, int], float]]]:
    """All that may have happened on object m: what kind it is and what its lure is, if there are lures (c = (d, w)),
    and what is true (z); for every group with claims, whether it is reliable or goes by its habit, or by the lure
    (r = 1, 0, LURED), and what its opinion is (s).

    Returns ln p(c, z), and for (group, c, z) a dict of (r, s) to ln p(r, s, claims | c, z), u and ξ at exp E ln.
    Value `size` is the one that nobody claims.
    """
    start, stop = int(shard.first_candidate[m]), int(shard.first_candidate[m + 1])
    size = stop - start
    domain = size + (float(shard.log_unclaimed[m]) > -np.inf)
    has_labels = beliefs.n_labels > 1
    label = [int(shard.label[start + k]) if has_labels and k < size else 0 for k in range(domain)]
    lures = list(range(beliefs.n_labels)) if beliefs.lured.any() else [NO_LURE]
    truths: dict[tuple[Class, int], float] = {}
    for d in range(beliefs.n_kinds):
        for w in lures:
            for z in range(domain):
                log_z = float(shard.log_truth[start + z] if z < size else shard.log_unclaimed[m])
                is_possible = log_z > -np.inf and beliefs.share[d, label[z]] > 0
                if is_possible and (w == NO_LURE or label[z] != w):
                    truths[(d, w), z] = log_z + log(beliefs.share[d, label[z]] / max(len(lures) - 1, 1))
    said: dict[int, list[int]] = {}
    for i in range(shard.first_claim[m], shard.first_claim[m + 1]):
        group = int(given.group[shard.claim_source[i]])
        said.setdefault(group, []).append(int(shard.claim_candidate[i]) - start)
    happened: dict[tuple[int, Class, int], dict[tuple[int, int], float]] = {}
    for group, values in said.items():
        urn = [log_urn(values, s, domain, beliefs) for s in range(domain)]
        for d in range(beliefs.n_kinds):
            log_u = [
                float(digamma(x) - digamma(sum(given.reliability[group, d])))
                for x in given.reliability[group, d]
            ]
            log_x = [float(digamma(x) - digamma(sum(given.habit[group, d]))) for x in given.habit[group, d]]
            by_habit = {
                (0, s): log_u[0]
                + log(1 - beliefs.lured[d])
                + (log_x[label[s]] if has_labels else -log(domain))
                + urn[s]
                for s in range(domain)
            }
            for w in lures:
                lured = {}
                if w != NO_LURE and beliefs.lured[d] > 0:
                    lured = {(LURED, label.index(w)): log_u[0] + log(beliefs.lured[d]) + urn[label.index(w)]}
                for z in range(domain):
                    if ((d, w), z) in truths:
                        happened[group, (d, w), z] = {(1, z): log_u[1] + urn[z], **by_habit, **lured}
    return truths, happened


def partition(shard: Shard, given: Grouping, beliefs: Beliefs) -> GroupingResult:
    """The local step of the partition inference: every story of every object, weighed."""
    n_groups, n_kinds, n_labels = given.habit.shape
    truth: list[float] = []
    objects: list[float] = []
    reliable = [[[0.0, 0.0] for _ in range(n_kinds)] for _ in range(n_groups)]
    habit = [[[0.0] * n_labels for _ in range(n_kinds)] for _ in range(n_groups)]
    share = [[0.0] * n_labels for _ in range(n_kinds)]
    counts = [0.0] * 4
    lured = [0.0] * n_kinds
    eta, theta = beliefs.true_count, beliefs.false_count
    for m in range(shard.n_objects):
        start, stop = int(shard.first_candidate[m]), int(shard.first_candidate[m + 1])
        size = stop - start
        domain = size + (float(shard.log_unclaimed[m]) > -np.inf)
        label = [int(shard.label[start + k]) if n_labels > 1 and k < size else 0 for k in range(domain)]
        truths, happened = stories(shard, given, beliefs, m)
        groups = sorted({group for group, _, _ in happened})
        log_joint = {
            (c, z): log_p + sum(log_sum(happened[group, c, z].values()) for group in groups)
            for (c, z), log_p in truths.items()
        }
        objects.append(log_sum(log_joint.values()))
        q = {key: exp(value - objects[-1]) for key, value in log_joint.items()}
        claimed = [sum(weight for (_, y), weight in q.items() if y == z) for z in range(size)]
        truth += [each / sum(claimed) for each in claimed]
        for ((d, _), z), weight in q.items():
            share[d][label[z]] += weight
        for group in groups:
            said = [
                int(shard.claim_candidate[i]) - start
                for i in range(shard.first_claim[m], shard.first_claim[m + 1])
                if given.group[shard.claim_source[i]] == group
            ]
            gain_true = [rising_slope(eta, said.count(k)) for k in range(domain)]
            gain_false = [rising_slope(theta, said.count(k)) for k in range(domain)]
            gain_total = rising_slope(eta + (domain - 1) * theta, len(said))
            counts[1] += gain_total
            counts[3] += (domain - 1) * gain_total
            for (c, z), weight in q.items():
                d, total = c[0], log_sum(happened[group, c, z].values())
                for (r, s), log_p in happened[group, c, z].items():
                    each = weight * exp(log_p - total)
                    reliable[group][d][r == 1] += each
                    lured[d] += each * (r == LURED)
                    if r == 0 and n_labels > 1:
                        habit[group][d][label[s]] += each
                    counts[0] += each * gain_true[s]
                    counts[2] += each * (sum(gain_false) - gain_false[s])
    return GroupingResult(truth, reliable, habit, share, counts, objects, lured)


def rising_slope(x: float, n: int) -> float:
    """ψ(x + n) - ψ(x) for a whole n."""
    return sum(1 / (x + i) for i in range(n))


def log_sum(logs: Iterable[float]) -> float:
    """ln Σ exp."""
    logs = list(logs)
    highest = max(logs)
    return highest + log(sum(exp(x - highest) for x in logs))


def log_seating(group: list[int], concentration: float) -> float:
    """ln p(partition): sources come in one after the other and sit down with others, or at a table of their own."""
    log_p, seated = 0.0, dict.fromkeys(group, 0)
    for n, g in enumerate(group):
        log_p += log((seated[g] or concentration) / (concentration + n))
        seated[g] += 1
    return log_p


def sample_partition_terms(
    shard: Shard, given: Grouping, beliefs: Beliefs, n_samples: int, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Monte Carlo of the partition inference's bound given the partition: draw from q, average ln p - ln q. Mean and
    standard error of the objects' and the groups' terms.

    Draws u and ξ from their factors, then of every object d and t, of every group r, s and π, and evaluates the
    densities themselves.
    """
    from scipy import stats

    known = [stories(shard, given, beliefs, m) for m in range(shard.n_objects)]
    occupied = sorted({int(g) for g in given.group})
    draws: dict[str, list[float]] = {"objects": [], "groups": []}
    for _ in range(n_samples):
        objects = groups = 0.0
        u: dict[tuple[int, int], float] = {}
        log_x: dict[tuple[int, int], list[float]] = {}
        for group in occupied:
            for d in range(beliefs.n_kinds):
                b0, b1 = given.reliability[group, d]
                u[group, d] = float(rng.beta(b1, b0))
                groups += float(
                    stats.beta.logpdf(u[group, d], *beliefs.reliability[d, ::-1])
                    - stats.beta.logpdf(u[group, d], b1, b0)
                )
                if beliefs.n_labels > 1:
                    alpha, prior = (
                        [float(a) for a in given.habit[group, d]],
                        [float(a) for a in beliefs.habit_prior[d]],
                    )
                    logs = [float(x) for x in np.log(np.maximum(rng.dirichlet(alpha), 1e-300))]
                    log_x[group, d] = logs
                    groups += sum((p - a) * x for p, a, x in zip(prior, alpha, logs, strict=True))
                    groups += log_beta(alpha) - log_beta(prior)
        for m, (truths, happened) in enumerate(known):
            start, stop = int(shard.first_candidate[m]), int(shard.first_candidate[m + 1])
            size = stop - start
            domain = size + (float(shard.log_unclaimed[m]) > -np.inf)
            active = sorted({group for group, _, _ in happened})
            log_q = {
                (c, z): log_p + sum(log_sum(happened[group, c, z].values()) for group in active)
                for (c, z), log_p in truths.items()
            }
            (c, z), log_drawn = draw_one(log_q, rng)
            d = c[0]
            objects += truths[c, z] - log_drawn
            for group in active:
                (r, s), log_drawn = draw_one(happened[group, c, z], rng)
                objects -= log_drawn
                objects += log(u[group, d] if r == 1 else 1 - u[group, d])
                if r != 1:
                    objects += log(beliefs.lured[d] if r == LURED else 1 - beliefs.lured[d])
                if r == 0 and beliefs.n_labels > 1:
                    objects += log_x[group, d][int(shard.label[start + s])]
                elif r == 0:
                    objects -= log(domain)
                said = [
                    int(shard.claim_candidate[i]) - start
                    for i in range(shard.first_claim[m], shard.first_claim[m + 1])
                    if given.group[shard.claim_source[i]] == group
                ]
                a = [beliefs.true_count if k == s else beliefs.false_count for k in range(domain)]
                posterior = [a[k] + said.count(k) for k in range(domain)]
                log_pi = [float(x) for x in np.log(np.maximum(rng.dirichlet(posterior), 1e-300))]
                objects += sum(log_pi[k] for k in said)
                objects += sum((a[k] - posterior[k]) * log_pi[k] for k in range(domain))
                objects += log_beta(posterior) - log_beta(a)
        draws["objects"].append(objects)
        draws["groups"].append(groups)
    return {
        name: (float(np.mean(values)), float(np.std(values) / np.sqrt(n_samples)))
        for name, values in draws.items()
    }


def draw_one(log_weight: dict[K, float], rng: np.random.Generator) -> tuple[K, float]:
    """A key drawn with probability in proportion to its weight, and ln of that probability."""
    keys = list(log_weight)
    total = log_sum(log_weight.values())
    p = np.array([exp(log_weight[key] - total) for key in keys])
    key = keys[int(rng.choice(len(keys), p=p / p.sum()))]
    return key, log_weight[key] - total
