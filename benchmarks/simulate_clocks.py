"""Clocks of eight hosts that disagree, put into real traces: is the same rank still last, and is the offset found?

    python benchmarks/simulate_clocks.py [--trials 200] [--seed 1]

The eight ranks of ../shared's DLRM traces are declared to run on eight hosts. Each host's clock gets an offset of up to
5 s and a drift of up to 50 ppm. The collectives are also repeated to longer traces, with the spread of their ends kept.
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


def disturbed(collectives: pa.Table, offsets: np.ndarray, drifts: np.ndarray) -> pa.Table:
    """The same as the clocks of the hosts show it; rank i runs on host i."""
    rank = collectives["rank"].to_numpy()
    origin = collectives["start_time"].to_numpy().min()
    for name in TIMES:
        true = collectives[name].to_numpy()
        shown = true + offsets[rank] + np.rint(drifts[rank] * (true - origin)).astype(np.int64)
        collectives = collectives.set_column(collectives.schema.get_field_index(name), name, pa.array(shown))
    return collectives


def answers(trace: pa.Table, collectives: pa.Table) -> tuple[list[int], dict[int, dict[str, float]]]:
    """Last rank of every collective in the order of the collectives, and the clock of every rank."""
    connection = duckdb.connect()
    register(connection)
    hosts = pa.array([f"host{rank}" for rank in trace["rank"].to_pylist()])
    connection.register("trace_file", trace.set_column(trace.schema.get_field_index("host"), "host", hosts))
    connection.register("trace_collective", collectives)
    for name in ("trace_clock", "aligned_collective"):
        connection.execute(f"CREATE TABLE {name} AS {queries()[name].sql}")
    last = connection.execute(
        "SELECT any_value(last_rank) FROM aligned_collective GROUP BY step, kind, collective ORDER BY step, collective"
    ).fetchall()
    rows = connection.execute("SELECT rank, status, offset_ns, reference_time, uncertainty FROM trace_clock").fetchall()
    keys = ("status", "offset_ns", "reference_time", "uncertainty")
    return [row[0] for row in last], {row[0]: dict(zip(keys, row[1:], strict=True)) for row in rows}


def error(clock: dict[str, float], rank: int, origin: int, offsets: np.ndarray, drifts: np.ndarray) -> float:
    """Error of a stated offset in ns, at the moment for which it is stated."""
    own = clock["reference_time"]
    since = (own - origin - offsets[rank]) / (1 + drifts[rank])
    true = own - (origin + since + offsets[0] + drifts[0] * since)
    return abs(clock["offset_ns"] - true)


def trials(trace: pa.Table, collectives: pa.Table, count: int, seed: int) -> dict[str, float]:
    """Put clocks into the set `count` times and compare the answers with those of the undisturbed set."""
    chance = np.random.default_rng(seed)
    ranks = trace.num_rows
    expected, _ = answers(trace, collectives)
    origin = int(collectives["start_time"].to_numpy().min())
    same, errors, covered = [], [], []
    for _ in range(count):
        offsets = chance.integers(-5 * 10**9, 5 * 10**9, ranks)
        drifts = chance.uniform(-50e-6, 50e-6, ranks)
        last, clocks = answers(trace, disturbed(collectives, offsets, drifts))
        same += [a == b for a, b in zip(expected, last, strict=True)]
        for rank in range(1, ranks):
            errors.append(error(clocks[rank], rank, origin, offsets, drifts))
            covered.append(errors[-1] <= clocks[rank]["uncertainty"])
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
    for steps, share in ((1, 1.0), (50, 0.5), (500, 0.05)):
        count = max(1, round(options.trials * share))
        result = trials(trace, repeated(collectives, steps), count, options.seed)
        print(f"{steps} steps, {count} trials: {result}")
        if result["unchanged"] < 0.99 or result["largest_error_us"] > 20 or result["covered"] < 0.95:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
