"""--engine URL -> a concurrent.futures.Executor. Only per-file work is spread; the analysis is one DuckDB."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

from postmortem.errors import PostmortemError

if TYPE_CHECKING:
    from collections.abc import Callable


class Inline(Executor):
    """Runs each task at once in this process: no start-up cost for small runs and -j 1."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn` now and return its finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 (a future carries any exception to its reader)
            future.set_exception(error)
        return future


def executor(url: str = "local://", jobs: int | None = None) -> Executor:
    """Open the executor that `url` names.

    Args:
        url: `local://`, `dask://host:port` or `dask+file:///path/of/scheduler.json`.
        jobs: number of processes for `local://`; default: one per core.

    Raises:
        PostmortemError: unknown scheme, or the extra for it is not installed.

    """
    if url == "local://":
        workers = jobs or os.cpu_count() or 1
        if workers == 1:
            return Inline()
        # polars and fork do not mix, so always spawn.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker)
    if url.startswith(("dask://", "dask+file://")):
        return _dask(url)
    raise PostmortemError(f"The engine {url} is not known.", "Use local://, dask://host:port or dask+file:///path.")


def _prepare_worker() -> None:
    """Leave interrupts to the parent, and the other cores to the other workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when polars is imported, which is later


def _dask(url: str) -> Executor:
    try:
        from distributed import Client  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise PostmortemError("The Dask engine is not installed.", "pip install 'train-postmortem[dask]'") from error
    if url.startswith("dask+file://"):
        client = Client(scheduler_file=url.removeprefix("dask+file://"))
    else:
        client = Client(url.replace("dask://", "tcp://", 1))
    pool: Executor = client.get_executor()
    return pool
