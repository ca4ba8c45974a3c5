"""Metrics of an answer against gold. Their arithmetic stands in `results.score`: a Fit can score itself."""

from __future__ import annotations

from consilience.results.score import Score, calibration_error, score

__all__ = ["Score", "calibration_error", "score"]
