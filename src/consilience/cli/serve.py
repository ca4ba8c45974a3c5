"""`consilience serve`: look at a saved result in a browser."""

from __future__ import annotations

import os
import secrets
from typing import Annotated
from urllib.parse import urlencode

import typer

from consilience.cli.output import Screen
from consilience.errors import InputError

SHORTEST = 16
"""Characters of a token, at the least."""
TOKEN = "CONSILIENCE_TOKEN"


def serve(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A result that `fit --out` wrote.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8750,
    host: Annotated[
        str, typer.Option(help="The address to listen on; another than this machine's needs a token.")
    ] = ("127.0.0.1"),
    token: Annotated[
        str | None,
        typer.Option(
            help=f"What visitors must know; better in the variable {TOKEN}, where others cannot read it."
        ),
    ] = None,
) -> None:
    """Explore a result in the browser, check truths and refit.

    Why each object is decided so, who copies whom, and the truths most worth checking: pick them with a key, then
    refit with your answers. Answers are kept beside DIR, in DIR.reviews.sqlite. Ctrl-C stops it.

    \b
    Example:
      consilience serve result
      CONSILIENCE_TOKEN=… consilience serve result --host 0.0.0.0
    """
    from consilience.server.app import serve as run
    from consilience.server.explorer import Explorer
    from consilience.server.guard import is_local

    token = token or os.environ.get(TOKEN) or None
    if token is None and not is_local(host):
        raise InputError(
            f"On {host} other machines can ask, so a token is needed. Set one that nobody can guess, such as "
            f"{TOKEN}={secrets.token_urlsafe(24)}, or leave --host out."
        )
    if token is not None and len(token) < SHORTEST:
        raise InputError(f"The token has {len(token)} characters; at least {SHORTEST} are needed.")
    screen = Screen()
    screen.say(f"Opening {folder} …")
    explorer = Explorer(folder)

    def started(at: int) -> None:
        name = f"[{host}]" if ":" in host else host
        door = f"?{urlencode({'token': token})}" if token else ""
        screen.say(f"Explore it at http://{name}:{at}/{door}\nCtrl-C stops it.")

    run(explorer, host, port, token, started)
