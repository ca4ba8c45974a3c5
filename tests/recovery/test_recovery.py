"""What was planted, or is known of real data, is found again. Slow: `make recovery`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from consilience.claims.reading import read_claims
from consilience.cli.main import app
from consilience.datasets.synthetic import planted
from consilience.models.mss.model import MSS
from consilience.models.vote import Vote

pytestmark = pytest.mark.recovery
DATA = Path(os.environ.get("CONSILIENCE_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.parametrize("seed", range(5))
def test_book_authors(seed):
    book = DATA / "book"
    if not book.exists():
        pytest.skip(f"no data set at {book}: set CONSILIENCE_DATA to the folder that holds it")
    run = CliRunner().invoke(
        app,
        [
            "fit",
            f"{book}/claims.csv.gz",
            "--truth",
            f"{book}/truth.csv",
            "--json",
            "--quiet",
            "--seed",
            str(seed),
        ],
    )
    assert json.loads(run.stdout)["accuracy"] >= 0.90


@pytest.mark.parametrize("seed", range(5))
def test_negative_control_independent_sources_lose_nothing(seed):
    data = planted("independent", seed=seed)
    claims = read_claims(data.claims)
    assert MSS().fit(claims).score(truth=data.truth).accuracy >= (
        Vote().fit(claims).score(truth=data.truth).accuracy - 0.005
    )
