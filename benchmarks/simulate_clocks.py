"""Clocks of eight hosts that disagree, put into real traces: is the same rank still last, and is the offset found?

    python benchmarks/simulate_clocks.py [--trials 200] [--seed 1]

The eight ranks of ../shared's DLRM traces are declared to run on eight hosts. Each host's clock gets an offset of up to
5 s and a drift of up to 50 ppm, which in the last setting changes by as much again. The collectives are also repeated to longer traces, with the spread of their ends kept.
Prints, per length: the share of last-arrival answers that did not change, the largest error of an offset, and how often
the stated uncertainty covers the error.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from postmortem.ingest import ingest  # noqa: E402
from postmortem.query import Session, queries  # noqa: E402
from postmortem.sqlfunctions import register  # noqa: E402
from postmortem.store import Store  # noqa: E402

DLRM = ROOT.parent / "shared/data/traces/param-dlrm-8ranks"
PERIOD = 20_000_000  # ns between repeated steps
TIMES = ("launch_time", "start_time", "end_time")


def real(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Views trace_file and trace_collective of the real set."""
    with tempfile.TemporaryDirectory() as store:
        ingest({"run": folder}, Path(store), jobs=1)
        session = Session(Store(Path(store)), ["run"])
        return session.sql("FROM trace_file"), session.sql("FROM trace_collective")


def repeated(collectives: pa.Table, steps: int) -> pa.Table:
    """The collectives of the one profiled step, again and again."""
    parts = []
    for i in range(steps):
        part = collectives
        for name in TIMES:
            part = part.set_column(
                part.schema.get_field_index(name), name, pa.array(part[name].to_numpy() + i * PERIOD)
            )
        parts.append(
            part.set_column(part.schema.get_field_index("step"), "step", pa.array([i] * len(part), pa.int64()))
        )
    return pa.concat_tables(parts)


class Clocks:
    """Clocks of the ranks' hosts: offsets of up to 5 s, drifts of up to 50 ppm, which may change as time goes by."""

    def __init__(self, chance: np.random.Generator, ranks: int, origin: int, span: int, *, bends: bool) -> None:
        self.origin, self.span = origin, max(span, 1)
        self.offset = chance.integers(-5 * 10**9, 5 * 10**9, ranks)
        self.drift = chance.uniform(-50e-6, 50e-6, ranks)
        self.bend = chance.uniform(-50e-6, 50e-6, ranks) if bends else np.zeros(ranks)  # swings once per trace

    def ahead(self, rank: np.ndarray | int, true: np.ndarray) -> np.ndarray:
        """By how many ns the clock of `rank` is ahead at the true times."""
        since = true - self.origin
        swing = self.span / (2 * np.pi) * np.sin(2 * np.pi * since / self.span)
        return self.offset[rank] + self.drift[rank] * since + self.bend[rank] * swing

    def true(self, rank: int, own: int) -> np.ndarray:
        """True time at which the clock of `rank` shows `own`."""
        true = np.float64(own - self.origin - self.offset[rank]) + self.origin
        for _ in range(5):  # the drifts are small: each round is exact to a ten-thousandth of the one before
            true = own - self.ahead(rank, true)
        return true


def disturbed(collectives: pa.Table, clocks: Clocks) -> pa.Table:
    """The same as the clocks of the hosts show it; rank i runs on host i."""
    rank = collectives["rank"].to_numpy()
    for name in TIMES:
        true = collectives[name].to_numpy()
        shown = true + np.rint(clocks.ahead(rank, true)).astype(np.int64)
        collectives = collectives.set_column(collectives.schema.get_field_index(name), name, pa.array(shown))
    return collectives


def answers(trace: pa.Table, collectives: pa.Table) -> tuple[list[int], list[tuple[int, str, int, int, int]]]:
    """Last rank of every collective in their order, and (rank, status, offset, reference time, uncertainty) of clocks."""
    connection = duckdb.connect()
    register(connection)
    hosts = pa.array([f"host{rank}" for rank in trace["rank"].to_pylist()])
    connection.register("trace_file", trace.set_column(trace.schema.get_field_index("host"), "host", hosts))
    connection.register("trace_collective", collectives)
    for name in ("trace_clock", "trace_doubled", "aligned_collective"):
        connection.execute(f"CREATE TABLE {name} AS {queries()[name].sql}")
    last = connection.execute(
        "SELECT any_value(last_rank) FROM aligned_collective GROUP BY step, kind, collective ORDER BY step, collective"
    ).fetchall()
    rows = connection.execute("SELECT rank, status, offset_ns, reference_time, uncertainty FROM trace_clock").fetchall()
    return [row[0] for row in last], rows


def trials(trace: pa.Table, collectives: pa.Table, count: int, seed: int, *, bends: bool = False) -> dict[str, float]:
    """Put clocks into the set `count` times and compare the answers with those of the undisturbed set."""
    chance = np.random.default_rng(seed)
    ranks = trace.num_rows
    expected, _ = answers(trace, collectives)
    starts, ends = collectives["start_time"].to_numpy(), collectives["end_time"].to_numpy()
    same, errors, covered = [], [], []
    for _ in range(count):
        clocks = Clocks(chance, ranks, int(starts.min()), int(ends.max() - starts.min()), bends=bends)
        last, windows = answers(trace, disturbed(collectives, clocks))
        same += [a == b for a, b in zip(expected, last, strict=True)]
        for rank, _status, offset, own, uncertainty in windows:
            if rank:  # at the moment for which the offset is stated
                true = clocks.true(rank, own)
                errors.append(abs(offset - (own - true - clocks.ahead(0, true))))
                covered.append(errors[-1] <= uncertainty)
    return {
        "unchanged": float(np.mean(same)),
        "largest_error_us": float(np.max(errors)) / 1000,
        "covered": float(np.mean(covered)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not DLRM.is_dir():
        print("../shared is not here.")
        return
    trace, collectives = real(DLRM)
    for steps, share, bends in ((1, 1.0, False), (50, 0.5, False), (500, 0.05, False), (500, 0.05, True)):
        count = max(1, round(options.trials * share))
        result = trials(trace, repeated(collectives, steps), count, options.seed, bends=bends)
        print(f"{steps} steps, {count} trials, {'changing' if bends else 'constant'} drift: {result}", flush=True)
        if result["unchanged"] < 0.99 or result["largest_error_us"] > 20 or result["covered"] < 0.95:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
