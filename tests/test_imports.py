from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "numpy", "scipy", "numba", "duckdb", "pyarrow", "pandas", "polars", "narwhals", "typer", "rich", "altair",
    "vl_convert", "jinja2", "fastapi", "uvicorn", "pydantic",
}  # fmt: skip


def loaded_after(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after running this code."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_after("import consilience") & HEAVY


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["fit", "--help"], ["report", "--help"], ["serve", "--help"]]
)
def test_asking_the_command_line_about_itself_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
sys.argv = ["consilience", *{arguments!r}]
from consilience.cli.main import main
try:
    main()
except SystemExit as leaving:
    assert not leaving.code
"""
    assert not loaded_after(code) & (HEAVY - {"typer", "rich"})


def test_an_engine_needs_only_numpy_to_know_claims() -> None:
    loaded = loaded_after("import consilience.claims.encoding, consilience.kernels.state")
    assert "numpy" in loaded
    assert not loaded & (HEAVY - {"numpy"})


def test_a_model_loads_no_reader_of_files_and_no_frames() -> None:
    loaded = loaded_after("import consilience as cs; cs.MSS; cs.Vote")
    assert not loaded & {"duckdb", "pandas", "polars", "typer", "rich", "numba", "altair", "jinja2"}
