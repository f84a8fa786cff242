"""Log lines that no format knows, grouped by shape: what is still unread, most frequent first."""

from __future__ import annotations

import pyarrow as pa
from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig

from postmortem.query import Session

LIMIT = 20_000
"""Masked texts that are grouped; rarer ones beyond it are counted together."""

# Words that make a line worth a look, in any case; an unread one may be a fault that no finding knows.
_ALARMING = (
    r"(?i)error|fatal|exception|\bnan\b|\binf\b|overflow|killed|time(?:d )?out|out of memory|\boom\b|abort|segfault"
)

_MASKED = """
SELECT
    regexp_replace(left(text, 400), '0x[0-9a-fA-F]+|[0-9]+', '#', 'g') AS masked,
    count(*) AS lines,
    bool_or(regexp_matches(text, $alarming)) AS alarming,
    arg_min({source: source, line: line, text: left(text, 400)}, (source, line)) AS first
FROM line
WHERE format IS NULL AND trim(text) <> ''
GROUP BY masked
ORDER BY lines DESC, masked
LIMIT $most
"""


def shapes(session: Session, *, alarming: bool = False) -> pa.Table:
    """Shapes of unrecognised lines of one run.

    Args:
        session: the run.
        alarming: only lines with words such as error, killed or NaN.

    Returns:
        columns lines, alarming, shape, source, line, example; the most frequent shape first.
    """
    config = TemplateMinerConfig()
    config.profiling_enabled = False
    miner = TemplateMiner(config=config)
    groups: dict[int, dict[str, object]] = {}
    cursor = session.connection.execute(_MASKED, {"alarming": _ALARMING, "most": LIMIT})
    for masked, lines, alarm, first in cursor.fetchall():
        if alarming and not alarm:
            continue
        cluster = miner.add_log_message(masked)["cluster_id"]
        group = groups.setdefault(
            cluster,
            {"lines": 0, "alarming": False, "source": first["source"], "line": first["line"], "example": first["text"]},
        )
        group["lines"] = int(str(group["lines"])) + lines
        group["alarming"] = bool(group["alarming"]) or alarm
    for cluster in miner.drain.clusters:
        if cluster.cluster_id in groups:
            groups[cluster.cluster_id]["shape"] = cluster.get_template()
    rows = sorted(groups.values(), key=lambda group: (-int(str(group["lines"])), str(group["shape"])))
    names = ("lines", "alarming", "shape", "source", "line", "example")
    return (
        pa.table({name: [row[name] for row in rows] for name in names})
        if rows
        else pa.table({n: pa.array([], pa.string()) for n in names})
    )
