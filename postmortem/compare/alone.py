"""The numbers of one run that nothing is compared with: its typical step, its growth of memory, its loss and gradients."""

from __future__ import annotations

from typing import Any

from postmortem.compare.gradient import gradient_norms
from postmortem.compare.loss import losses
from postmortem.compare.memory import growth
from postmortem.compare.steps import known, level_facts, span_of, steps_of
from postmortem.query import Session
from postmortem.stats import split_run


def measures(session: Session) -> dict[str, Any]:
    """Step time, memory, loss and gradient norm of the one run of `session`, in the keys and units of a comparison with side `run`."""
    (run,) = session.runs
    steps = steps_of(session, run)
    side = split_run(steps.seconds, steps.scheduled)
    return {
        "throughput": {
            "steady": {"run": span_of(steps, side)},
            "sides": {"run": level_facts(steps, side)},
            "n": [side.typical.n],
            "n_effective": [known(side.typical.n_eff)],
            "query": "step_times",
        },
        "memory": growth(session),
        "loss": losses(session),
        "gradient": gradient_norms(session),
    }
