"""The evidence lower bound as named, complete terms: constants kept, so that Monte Carlo can confirm each.

Local terms are sums over objects and come with the statistics; global ones are computed here.

claims      E ln p(y | g, π)
answers     E ln p(π | r, t) - E ln q(π | …)
reliability E ln p(r | u) - E ln q(r | …)
truth       E ln p(t) - E ln q(t)
membership  E ln p(g | ρ) - E ln q(g)
sticks      -KL(q(ρ) ‖ Beta(1, κ))
groups      -KL(q(u) ‖ Beta(b1, b0))
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma

from consilience.claims.encoding import Float
from consilience.kernels.state import LOCAL_TERMS, Globals, Prior, Stats, from_two_words
from consilience.models.mss.updates import expected_log_weights

TERMS = (*LOCAL_TERMS, "membership", "sticks", "groups")
TINY = 1e-308


def bound_terms(stats: Stats, given: Globals, prior: Prior) -> dict[str, float]:
    """The bound at (given, the locals that gave these stats), term by term; their sum is the bound."""
    terms = dict(zip(LOCAL_TERMS, from_two_words(stats.terms).tolist(), strict=True))
    # Where there is no membership, there is nothing to count: any finite logarithm will do.
    surprise = expected_log_weights(given.sticks, prior)[given.group] - np.log(given.membership + TINY)
    terms["membership"] = float(np.sum(given.membership * surprise))
    terms["sticks"] = -float(np.sum(beta_divergence(given.sticks, np.array([1.0, prior.concentration]))))
    terms["groups"] = -float(np.sum(beta_divergence(given.group_reliability, prior.reliability)))
    return terms


def beta_divergence(q: Float, p: Float) -> Float:
    """KL(Beta(q) ‖ Beta(p)), rows of q against p."""
    log_mean = digamma(q) - digamma(q.sum(axis=1, keepdims=True))
    divergence: Float = betaln(p[0], p[1]) - betaln(q[:, 0], q[:, 1]) + np.sum((q - p) * log_mean, axis=1)
    return divergence
