"""Diagnose synthetic jobs that hang, and count right, undecided and wrong answers.

Usage: python benchmarks/simulate_hangs.py [JOBS] [FIRST_SEED]     (`make simulate`)
Exits with 1 where a healthy rank was named or a job without a fault was called hung.
"""

import random
import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
import jobs  # noqa: E402
from evidence import MemorySession, dumps, logs  # noqa: E402

SIZES = [2, 3, 4, 6, 8, 8, 12, 16, 16, 24, 32, 48, 64]
LARGE = [128, 256, 512, 1024]
ANSWERS = ("right", "undecided", "wrong")
FINDINGS = (
    "comm_hang_culprit",
    "comm_hang_mismatch",
    "comm_hang_order",
    "comm_hang_transport",
    "comm_hang_unknown",
)


def one(seed):
    """(fault, answer, description) of the job of this seed."""
    rng = random.Random(seed)
    world = rng.choice(LARGE) if seed % 40 == 0 else rng.choice(SIZES)
    fault = jobs.FAULTS[seed % len(jobs.FAULTS)]
    job = jobs.make(rng, world, fault)
    with tempfile.TemporaryDirectory() as folder:
        files = jobs.write(job, Path(folder))
        lost = cut = 0
        if rng.random() < 0.4:
            kept = set(rng.sample(sorted(files), rng.randint(0, len(files))))
            lost = len(files) - len(kept)
            files = {rank: file for rank, file in files.items() if rank in kept}
        if rng.random() < 0.15:
            for file in files.values():
                if rng.random() < 0.3:
                    data = file.read_bytes()
                    file.write_bytes(data[: rng.randrange(len(data))])
                    cut += 1
        batches = dumps(files.values())
        kind = "dumps"
        if not job.gloo and world <= 64 and jobs.stuck(job) and rng.random() < 0.3:
            kind = rng.choice(["logs", "dumps and logs"])
            batches = (batches if "dumps" in kind else []) + logs(_spoilt(rng, jobs.write_logs(job, Path(folder))))
        session = MemorySession(batches)
    about = f"seed {seed}: {fault}, world {world}, {'gloo' if job.gloo else 'nccl'} {kind}, lost {lost}, cut {cut}"
    return fault, *judge(job, session, about)


def _spoilt(rng, files):
    """Logs of which some are lost and some end too early."""
    keep = rng.choice([1.0, 1.0, 0.7])
    for file in files.values():
        if rng.random() < 0.15:
            text = file.read_text()
            file.write_text(text[: rng.randrange(len(text))])
        if rng.random() <= keep and file.stat().st_size:
            yield file


def judge(job, session, about):
    """Compare what is named with the ranks that the fault was put into."""
    named = {row["rank"] for row in session.rows("comm_hang_culprit") if row["culprit"]}
    about += f"; culprits {sorted(job.culprits)}, named {sorted(named)}"
    hung = jobs.stuck(job)
    if named - (job.culprits if hung else set()):
        return "wrong", about
    if not hung:
        return ("wrong" if any(session.rows(f) for f in FINDINGS) else "right"), about
    state = {row["kind"] for row in session.rows_of_view("hang_state")}
    expected = {"order": {"order"}, "transport": {"transport"}, "partial": {"transport"}}.get(job.fault, set())
    if named or state & expected:
        return "right", about
    return "undecided", about + f", state {sorted(state)}"


def _split(name, counts):
    """One line: how many jobs, and how many and what share of them were right, undecided and wrong."""
    jobs_ = sum(counts[a] for a in ANSWERS)
    return f"{name:10} {jobs_:6}" + "".join(f" {counts[a]:7} ({counts[a] / jobs_:6.1%})" for a in ANSWERS)


def _processor_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main(count, first):
    started = time.time()
    answers, examples = Counter(), []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for fault, answer, about in pool.map(one, range(first, first + count), chunksize=8):
            answers[fault, answer] += 1
            if answer == "wrong":
                examples.append(about)
            done = sum(answers.values())
            if done % 100 == 0:
                wrong = sum(n for (_, a), n in answers.items() if a == "wrong")
                print(f"{done} jobs, {wrong} wrong, {time.time() - started:.0f} s", file=sys.stderr, flush=True)
    total = Counter()
    for (_, answer), n in answers.items():
        total[answer] += n
    print(f"{'injected':10} {'jobs':>6}" + "".join(f" {name:>17}" for name in ANSWERS))
    for fault in (f for f in jobs.FAULTS if any(answers[f, name] for name in ANSWERS)):
        print(_split(fault, {name: answers[fault, name] for name in ANSWERS}))
    print(_split("all", total), f"  {time.time() - started:.0f} s, {_processor_seconds():.0f} processor s")
    print("\n".join(examples[:20]))
    return bool(total["wrong"])


if __name__ == "__main__":
    arguments = [int(a) for a in sys.argv[1:]]
    sys.exit(main(arguments[0] if arguments else 2000, arguments[1] if len(arguments) > 1 else 0))
