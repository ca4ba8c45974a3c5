"""The scalar functions of compiled kernels against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.special import psi as scipy_psi

from consilience.kernels.compiled import digamma, gammas, logs

RANGES = [(-300, -100), (-12, -3), (-3, 3), (0, 2), (3, 12), (12, 200)]


@pytest.mark.parametrize("exponents", RANGES)
def test_special_functions_have_fifteen_digits(exponents: tuple[int, int]) -> None:
    x = 10 ** np.random.default_rng(0).uniform(*exponents, 5_000)
    psi, log_gamma, logarithm = np.empty((3, len(x)))
    logs(x, logarithm)
    np.testing.assert_allclose(logarithm, np.log(x), rtol=1e-14, atol=1e-16)
    gammas(x, psi, log_gamma, np.empty((3, len(x))))
    np.testing.assert_allclose(psi, scipy_psi(x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(log_gamma, gammaln(x), rtol=1e-13, atol=2e-14)
    np.testing.assert_allclose([digamma(each) for each in x], scipy_psi(x), rtol=1e-13, atol=1e-14)
