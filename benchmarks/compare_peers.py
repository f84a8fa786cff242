"""HolisticTraceAnalysis itself beside our breakdown of GPU time, trace by trace.

    python benchmarks/compare_peers.py --peer /path/to/python/with/HTA

Its default leaves the last of several profiled steps out, so its loader is asked to keep it. Prints the idle, compute and
overlap of both for every trace of ../shared that both can read.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from postmortem.ingest import ingest  # noqa: E402
from postmortem.query import Session  # noqa: E402
from postmortem.store import Store  # noqa: E402

TRACES = ROOT.parent / "shared/data/traces"
SETS = (
    "param-dlrm-8ranks",
    "hta/trace_diff/control",
    "hta/trace_diff/test",
    "hta/nccl_parser_config",
    "hta/trace_filter",
)
PEER = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
found = TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True)
time = found.get_temporal_breakdown(visualize=False)
overlap = found.get_comm_comp_overlap(visualize=False)
print(json.dumps({"time": time.to_dict("records"), "overlap": overlap.to_dict("records")}))
"""


def theirs(python: str, folder: Path) -> dict[int, tuple[float, float, float]]:
    """Rank -> idle (us), compute (us), overlap (%)."""
    done = subprocess.run([python, "-c", PEER, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        print("   HTA fails:", done.stderr.strip().splitlines()[-1])
        return {}
    found = json.loads(done.stdout.splitlines()[-1])
    overlap = {row["rank"]: row["comp_comm_overlap_pctg"] for row in found["overlap"]}
    return {r["rank"]: (r["idle_time(us)"], r["compute_time(us)"], overlap[r["rank"]]) for r in found["time"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True)
    peer = parser.parse_args().peer
    for name in SETS:
        with tempfile.TemporaryDirectory() as store:
            ingest({"run": TRACES / name}, Path(store), jobs=1)
            rows = Session(Store(Path(store)), ["run"]).sql("FROM trace_breakdown ORDER BY rank").to_pylist()
        print(name)
        other = theirs(peer, TRACES / name)
        for row in rows:
            ours = (row["idle"] / 1000, row["compute"] / 1000, row["overlap"])
            print("   rank", row["rank"], "ours", ours, "HTA", other.get(row["rank"]))


if __name__ == "__main__":
    main()
