"""On the book data: the explorer shows why a book on which voting is wrong is decided otherwise."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

import pytest

from consilience.claims.reading import read_claims, read_truths
from consilience.models.mss.model import MSS
from tests.server.conftest import visited

DATA = Path(os.environ.get("CONSILIENCE_DATA") or Path("..", "shared", "data")) / "book"
CLAIMS, TRUTH = DATA / "claims.csv.gz", DATA / "truth.csv"


@pytest.mark.skipif(
    not (CLAIMS.is_file() and TRUTH.is_file()),
    reason=f"{CLAIMS} and {TRUTH.name} not found: set CONSILIENCE_DATA",
)
def test_why_a_book_is_decided_against_the_majority(tmp_path: Path) -> None:
    folder = MSS(n_starts=1).fit(read_claims(CLAIMS), seed=0).save(tmp_path / "book")
    truths = read_truths(TRUTH)
    gold = dict(zip(truths.objects.to_pylist(), truths.values.to_pylist(), strict=True))
    with visited(folder) as client:
        listed = client.get("/api/objects?differs=true&size=200&order=claims").json()["rows"]
        right = [row for row in listed if gold.get(row["object"]) == row["value"]]
        assert right, "on no book of the gold voting is wrong and the decision right"
        told = 0
        for row in right:
            shape = client.get(f"/api/object?number={row['number']}").json()
            most = max(shape["candidates"], key=lambda candidate: candidate["n_claims"])
            assert most["value"] != row["value"] == shape["candidates"][0]["value"]
            page = html.unescape(re.sub(r"<[^>]*>", "", client.get(f"/object?number={row['number']}").text))
            assert "More sources claim" in page
            assert "What each voice adds" in page
            told += "count as one voice: by voices it is" in page
            # The waterfall is against what the majority says, and ends in favour of the decision.
            assert re.search(rf"{re.escape(most['value'])}\s*[\d.]+%{most['n_claims']}shown below", page)
            against = shape["candidates"].index(most)
            adds = sum(voice["nats"][0] - voice["nats"][against] for voice in shape["voices"])
            assert adds > 0
        assert told > 0
