"""A Ray cluster: shards are read where they run, and steps over them are tasks without a state of their own.

Whatever a task needs comes as an immutable object and whatever it finds becomes one. So Ray can make anew what was lost
with a worker or a machine, from the files if need be, and it is the same to the bit: statistics are integers.
Actors would keep state between tasks more cheaply, and lose it with their worker.
"""

from __future__ import annotations

import logging
import math
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from socket import create_connection
from threading import Event, current_thread, main_thread
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import pyarrow as pa
import ray
from ray._private import ray_constants

from consilience.claims.domains import MOST_COMMON_LABELS, check_domain
from consilience.claims.files import parquet_files
from consilience.claims.lookalikes import lookalikes
from consilience.claims.pieces import Reader, put_together, split, survey
from consilience.claims.reading import check_choices
from consilience.claims.words import SHOWN, quantity
from consilience.errors import ClaimsError, InputError, Problem, SettingsError
from consilience.runners.base import L, R, S
from consilience.runners.inline import Inline
from consilience.runners.spread import Spread

CLAIMS_A_SHARD = 2_000_000
"""Shards are no larger: what is lost with a worker is soon made anew, and many machines share the work evenly."""
ADDED_AT_A_TIME = 8
"""Statistics that one task adds."""
LOOPBACK = "127.0.0.1"
ANSWERS_WITHIN = 5.0
"""Seconds."""
MOST_RETRIES = 50
"""A task whose worker or machine is lost is tried again so often: one that kills its worker must come to an end."""


@dataclass(frozen=True)
class Ray:
    """Runs shards on a Ray cluster.

    address : of a cluster, such as "auto" or "ray-head:6379"; None starts one on this machine. Where this process is
              connected already, that cluster is taken. Nothing is connected before there is something to run
    shards  : how many to cut a table into; None is what suits its size
    """

    address: str | None = None
    shards: int | None = None
    name: ClassVar[str] = "ray"
    _held: WeakKeyDictionary[Any, Any] = field(default_factory=WeakKeyDictionary, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.shards is not None and self.shards < 1:
            raise SettingsError("shards", "a positive whole number or None", self.shards)

    def connect(self) -> str | None:
        """Connect this process, unless it is connected: the address of the cluster's dashboard, where there is one."""
        return None if ray.is_initialized() else _connected(self.address)

    @property
    def here(self) -> Inline:
        """What is in this process is worked on by its threads."""
        return Inline()

    def n_shards(self, n_claims: int, fewest: int = 1) -> int:
        """One a processor at the least, however small, and none too large."""
        self.connect()
        n_processors = int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
        return self.shards or max(n_processors, -(-n_claims // CLAIMS_A_SHARD))

    def map_sum(
        self,
        step: Callable[..., tuple[L, S]],
        shards: Sequence[Any],
        given: Any,
        prior: Any = None,
        *kept: Sequence[Any],
    ) -> tuple[Sequence[Any], S]:
        """A step on every shard, each a task; what shards keep stays where it is."""
        self.connect()
        said = ray.put(given), ray.put(prior)
        done = [
            _step.remote(step, self._hold(shard), *said, *its)
            for shard, *its in zip(shards, *kept, strict=True)
        ]
        sums = [stats for _, stats in done]
        while len(sums) > ADDED_AT_A_TIME:
            runs = range(0, len(sums), ADDED_AT_A_TIME)
            sums = [_add.remote(*sums[i : i + ADDED_AT_A_TIME]) for i in runs]
        return [keeps for keeps, _ in done], reduce(add, _get(sums))

    def fetch(self, kept: Sequence[Any]) -> list[Any]:
        """What shards kept, brought here."""
        return _get(list(kept))

    def map(self, work: Callable[[int], R], items: Sequence[int], stop: Event) -> list[R]:
        """Side by side on threads of this process, which wait for the cluster most of the time."""
        return Inline(threads=max(len(items), 1)).map(work, items, stop)

    def read(
        self,
        path: str | os.PathLike[str],
        *,
        source: str | None = None,
        object: str | None = None,
        value: str | None = None,
        domain: Any = "auto",
        on_conflict: str = "error",
        on_missing: str = "error",
    ) -> Spread:
        """Claims from Parquet files, read by the cluster; as `read_claims`, but that they stay there.

        path : a file, a folder, a pattern, or an address in an object store; all machines must see it by this name
        """
        path = os.fspath(path)
        check_domain(domain)
        check_choices(on_conflict, on_missing)
        if isinstance(domain, Mapping):
            expected = "a rule or a list of labels: a cluster has no domains by object"
            raise SettingsError("domain", expected, "a mapping")
        files = parquet_files(path)
        if not files:
            advice = "Write the table as Parquet, or fit it with runner='inline'."
            raise ClaimsError(
                path, [Problem("unknown-format", "A cluster reads Parquet files, and this is none.", advice)]
            )
        reader = Reader.of(path, files, {"source": source, "object": object, "value": value}, on_missing)
        self.connect()
        is_common = isinstance(domain, str) and domain == "common"
        most_labels = math.inf if is_common else MOST_COMMON_LABELS
        seen = reduce(add, _get([_survey.remote(file, reader, most_labels) for file in files]))
        _refuse(path, seen.problems)
        if not len(seen.sources):
            _refuse(
                path, [Problem("empty-table", "There are no rows.", "Give a table with at least one row.")]
            )
        splitters = seen.splitters(self.n_shards(int(seen.weight.sum())))
        domain = seen.domain(domain)
        labels = seen.labels if isinstance(domain, str) and domain == "common" else None
        sources = ray.put(seen.sources)
        n_parts = len(splitters) + 1
        cut = _split.options(num_returns=n_parts)
        pieces: list[Any] = [cut.remote(file, reader, sources, splitters) for file in files]
        if n_parts == 1:  # then Ray gives the one object, not a list of it
            pieces = [[piece] for piece in pieces]
        while True:
            how = reader, sources, labels, domain, on_conflict
            done = [_part.remote(*how, *(of_file[k] for of_file in pieces)) for k in range(n_parts)]
            made = _get([made for _, made in done])
            whole = reduce(add, made)
            _refuse(path, whole.problems)
            if labels is None or whole.used.all():
                break
            # Some labels were only in rows that gave way to others.
            labels = labels.filter(pa.array(whole.used > 0))
        notes = [f"{quantity(seen.n_dropped, 'row')} with an empty cell dropped."] if seen.n_dropped else []
        if whole.left_out:
            notes.append(
                f"{quantity(whole.left_out, 'row')} merged with another of the same source and object."
            )
        notes += lookalikes({"source": seen.sources} | ({} if labels is None else {"value": labels}))
        return Spread(
            runner=self,
            parts=[part for (part, _), each in zip(done, made, strict=True) if each.n_objects],
            sources=seen.sources,
            objects_by_part=whole.n_objects,
            claims_by_part=whole.n_claims,
            columns=(reader.names["source"], reader.names["object"], reader.names["value"]),
            notes=tuple(notes),
        )

    def _hold(self, shard: Any) -> Any:
        """Where a shard is: one of this process is put into the cluster once."""
        if isinstance(shard, ray.ObjectRef):
            return shard
        if shard not in self._held:
            self._held[shard] = ray.put(shard)
        return self._held[shard]


def _connected(address: str | None) -> str | None:
    """Connect to a cluster, without an address to one of our own, on this machine: the address of its dashboard."""
    quiet: Any = {"log_to_driver": False, "logging_level": logging.ERROR}
    on_termination = signal.getsignal(signal.SIGTERM)
    try:
        if address is not None and "://" not in address and ":" in address:
            # Ray itself asks for minutes, and hears no Ctrl-C while it does.
            host, _, port = address.rpartition(":")
            create_connection((host, int(port)), timeout=ANSWERS_WITHIN).close()
        if address is None:
            _keep_to_this_machine()
            context = ray.init(address="local", _node_ip_address=LOOPBACK, **quiet)
        else:
            context = ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError) as why:
        where = "on this machine" if address is None else f"at {address!r}"
        raise InputError(
            f"There is no Ray cluster {where} that answers ({' '.join(str(why).split())[:200]}). Start one with "
            "`ray start --head` and give its address, or leave the address out."
        ) from None
    if current_thread() is main_thread():
        # Ray takes the signal for itself, and a fit could not leave a checkpoint.
        signal.signal(signal.SIGTERM, on_termination)
    return f"http://{context.dashboard_url}" if context.dashboard_url else None


def _keep_to_this_machine() -> None:
    """Let a cluster that is about to start listen to this machine alone, and call nobody: whoever reaches a cluster of
    Ray can run anything there. Ray has a switch for that, meant for desktops, and reads it when it is imported."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray_constants.ENABLE_RAY_CLUSTER = False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


def _get(refs: Sequence[Any]) -> list[Any]:
    """Bring objects here; what a task raised is raised as it was."""
    try:
        found: list[Any] = ray.get(list(refs))
        return found
    except ray.exceptions.RayTaskError as error:
        raise error.cause or error from None


def _refuse(path: str, problems: Sequence[Problem]) -> None:
    if problems:
        shown = list(problems[: 2 * SHOWN])
        if len(problems) > len(shown):
            more = f"{len(problems) - len(shown):,} more of this kind, in other files or parts."
            shown.append(Problem("more", more, "Mend these first, and look again."))
        raise ClaimsError(path, shown)


@ray.remote(num_returns=2, max_retries=MOST_RETRIES)
def _step(step: Any, shard: Any, given: Any, prior: Any, *kept: Any) -> Any:
    return step(shard, given, prior, *kept)


@ray.remote(max_retries=MOST_RETRIES)
def _add(*stats: Any) -> Any:
    return reduce(add, stats)


@ray.remote(max_retries=MOST_RETRIES)
def _survey(file: str, reader: Reader, most_labels: float) -> Any:
    return survey(file, reader, most_labels)


@ray.remote(max_retries=MOST_RETRIES)
def _split(file: str, reader: Reader, sources: Any, splitters: Sequence[Any]) -> Any:
    pieces = split(file, reader, sources, splitters)
    return pieces[0] if len(pieces) == 1 else pieces


@ray.remote(num_returns=2, max_retries=MOST_RETRIES)
def _part(reader: Reader, sources: Any, labels: Any, domain: Any, on_conflict: str, *pieces: Any) -> Any:
    return put_together(pieces, reader, sources, labels, domain, on_conflict)
