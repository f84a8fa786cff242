"""Whether the two loss curves agree where both runs have them."""

from __future__ import annotations

from typing import Any

from postmortem.query import Session
from postmortem.stats import paired_difference

LEAST_STEPS = 10


def loss(session: Session) -> dict[str, Any]:
    """Paired differences of the losses at equal steps, with the interval of their median."""
    before, after = session.runs
    session.need(["losses"])
    rows = session.connection.execute(
        "SELECT a.step, median(a.loss), median(b.loss) FROM losses AS a INNER JOIN losses AS b "
        "ON a.step = b.step AND a.rank IS NOT DISTINCT FROM b.rank "
        "WHERE a.run_id = $before AND b.run_id = $after AND isfinite(a.loss) AND isfinite(b.loss) "
        "GROUP BY a.step ORDER BY a.step",
        {"before": before, "after": after},
    ).fetchall()
    if len(rows) < LEAST_STEPS:
        return {
            "verdict": "undecided",
            "why": "The runs share too few steps with a finite loss.",
            "n": len(rows),
        }
    found = paired_difference([row[1] for row in rows], [row[2] for row in rows])
    apart = found.low > 0 or found.high < 0
    return {
        "verdict": "different" if apart else "no difference shown",
        "why": f"median difference {found.estimate:.4g} ({found.low:.4g} to {found.high:.4g}) over {found.n} steps",
        "difference": found.estimate,
        "ci": [found.low, found.high],
        "n": found.n,
    }
