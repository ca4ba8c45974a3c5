"""What SECURITY.md promises of the code: no pickle in what is saved, no network while it works, pinned dependencies."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "consilience").rglob("*.py"))
UNSAFE = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
MAY_PICKLE = ROOT / "src" / "consilience" / "testing" / "checks.py"
"""It checks that fits survive a journey between processes, and saves nothing."""
FETCHES = ROOT / "src" / "consilience" / "datasets" / "fetch.py"
"""`consilience datasets NAME`: the one command that asks for the network."""
LISTENS = ROOT / "src" / "consilience" / "server" / "app.py"
"""`consilience serve`: it opens the address that it listens on, and asks for nothing."""
CONNECTS = ROOT / "src" / "consilience" / "runners" / "cluster.py"
"""`--runner ray --address`: it asks whether the cluster that was named answers."""
REACHES_OUT = {"socket", "ssl", "urllib.request", "http.client", "ftplib", "requests", "httpx", "aiohttp"}
LISTENING = """
import sys

def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"):
        raise SystemExit(f"reached for the network: {event}")

sys.addaudithook(hook)
"""


def imported(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT / "src").as_posix())
def test_no_file_can_pickle_or_reach_out(path: Path) -> None:
    names = imported(path)
    if path != MAY_PICKLE:
        assert not names & UNSAFE
    if path not in (FETCHES, LISTENS, CONNECTS):
        assert not names & REACHES_OUT


def test_arrays_are_read_and_written_without_pickle() -> None:
    seen = 0
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "np.save", "np.savez"):
                given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                assert given.get("allow_pickle") == "False", f"{path}:{node.lineno}"
                seen += 1
    assert seen >= 4


def test_a_fit_and_its_report_need_no_network_and_reach_for_none(tmp_path: Path) -> None:
    rows = [f"s{i},o{j},{(i * j) % 3}" for i in range(6) for j in range(9)]
    (tmp_path / "claims.csv").write_text("\n".join(["source,object,value", *rows]), "utf-8")
    out = str(tmp_path / "out")
    commands = [["fit", str(tmp_path / "claims.csv"), "--out", out, "--quiet"], ["report", out]]
    # Where the system lets us, in a place that has no network at all: then what no hook sees would fail too.
    apart = ["unshare", "--map-root-user", "--net"]
    can = (
        shutil.which("unshare")
        and not subprocess.run([*apart, "true"], capture_output=True, check=False).returncode
    )
    for command in commands:
        program = [
            sys.executable,
            "-c",
            f"{LISTENING}\nfrom consilience.cli.main import main; main()",
            *command,
        ]
        done = subprocess.run(
            [*(apart if can else ()), *program], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "saved without" not in done.stderr
    assert (tmp_path / "out" / "report.html").exists()


def test_reaching_out_would_be_noticed() -> None:
    program = f"{LISTENING}\nimport socket; socket.create_connection(('localhost', 9), timeout=1)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "reached for the network" in done.stderr


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-peers.lock"])
def test_every_dependency_is_pinned_and_hashed(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8").replace("\\\n", " ")
    entries = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(entries) > 10
    for entry in entries:
        assert re.match(r"^[\w.\[\]-]+==[\w.+!]+ ", entry), entry[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry[:80]
