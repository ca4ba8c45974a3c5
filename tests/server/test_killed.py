"""kill -9 in the middle of reviews: not one acknowledged answer is lost."""

from __future__ import annotations

import random
import shutil
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.server.conftest import HEADERS, reviews_of
from tests.server.live import serving


@pytest.mark.parametrize("seed", range(2))
def test_not_one_acknowledged_answer_is_lost(capitals_result: Path, tmp_path: Path, seed: int) -> None:
    folder = Path(shutil.copytree(capitals_result, tmp_path / "result"))
    rng = random.Random(seed)
    acknowledged: dict[str, str] = {}
    with serving(folder) as (url, server):
        tasks = httpx.get(f"{url}/api/queue?size=50").json()["tasks"]
        assert len(tasks) == 50
        enough = rng.randrange(5, 35)
        reached = threading.Event()

        def kill() -> None:
            reached.wait()
            time.sleep(rng.uniform(0.0, 0.02))  # anywhere within an answer or two
            server.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            with httpx.Client(headers=HEADERS) as client:
                for task in tasks:
                    answer = {"number": task["number"], "value": task["value"]}
                    if client.post(f"{url}/api/reviews", json=answer).status_code == 201:
                        acknowledged[task["object"]] = task["value"]
                    if len(acknowledged) == enough:
                        reached.set()
        except httpx.TransportError:
            pass
        reached.set()
        killer.join()
    assert enough <= len(acknowledged) < len(tasks)  # it was killed in the middle
    stored = reviews_of(folder).answers()
    assert {name: stored.get(name) for name in acknowledged} == acknowledged
    assert len(stored) <= len(acknowledged) + 1  # one may be on the disk whose acknowledgement was cut off
