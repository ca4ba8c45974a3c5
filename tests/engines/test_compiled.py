"""The scalar functions of compiled kernels against SciPy's."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.special import psi as scipy_psi

from consilience.kernels.compiled import compiled, digamma, gammas, listening, logs
from consilience.kernels.state import MANY_PARAMETERS, dirichlets

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


@pytest.mark.parametrize("width", [2, 5])
def test_many_dirichlets_are_like_few(width: int) -> None:
    parameters = np.random.default_rng(0).gamma(0.5, 10.0, (MANY_PARAMETERS // width + 300, 2, width)) + 1e-6
    log, log_norm = dirichlets(parameters)
    for part in np.array_split(np.arange(len(parameters)), 4):
        few = dirichlets(parameters[part])
        np.testing.assert_allclose(log[part], few[0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(log_norm[part], few[1], rtol=1e-11, atol=1e-11)


def test_many_dirichlets_may_lie_in_memory_in_any_way() -> None:
    parameters = np.random.default_rng(0).gamma(2.0, 10.0, (MANY_PARAMETERS, 2, 3))
    for same in (np.asfortranarray(parameters), np.ascontiguousarray(parameters[:, ::-1])[:, ::-1]):
        for one, other in zip(dirichlets(same), dirichlets(parameters), strict=True):
            np.testing.assert_array_equal(one, other)
    log, log_norm = dirichlets(np.broadcast_to(parameters[:1], parameters.shape))
    assert np.all(log == log[0])
    assert np.all(log_norm == log_norm[0])


def test_what_is_compiled_is_told_once_and_timed_once() -> None:
    def within(x):  # type: ignore[no-untyped-def]
        return x + 1

    inner = compiled(within)

    def around(x):  # type: ignore[no-untyped-def]
        return inner(x) * 2

    outer = compiled(around)
    for function in (inner, outer):
        function._cache.disable()  # what an earlier test run compiled must not be found
    told: list[str] = []
    started = time.perf_counter()
    with listening(lambda: told.append("began")) as compiling:
        assert [outer(1), outer(2)] == [4, 6]
    assert told == ["began"]
    assert 0 < compiling.seconds <= time.perf_counter() - started
    with listening(lambda: told.append("again")) as nothing:
        assert outer(3) == 8
    assert (told, nothing.seconds) == (["began"], 0.0)
