"""Findings + fault knowledge -> the diagnosis of one run: what is wrong, who began it, why, what to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postmortem import faults as knowledge
from postmortem.query import Query, Session, queries

SCHEMA = "postmortem.diagnosis/1"
EVIDENCE_ROWS = 25
"""Rows of evidence kept per finding; `postmortem query <finding>` shows all of them."""

_CONFIDENCE = ("low", "medium", "high")


@dataclass(frozen=True)
class Finding:
    """One finding that fired: its declaration and its rows, in the order of the query."""

    query: Query
    rows: Sequence[Mapping[str, Any]]

    @property
    def fault(self) -> str:
        """Class of fault that the finding speaks of, or an empty string."""
        return str(self.query.header.get("fault", ""))

    @property
    def severity(self) -> str:
        """Severity: fault, warning, note or evidence."""
        return str(self.query.header["severity"])

    @property
    def confidence(self) -> str:
        """The best confidence among the rows, else the one that the header declares."""
        stated = [str(row["confidence"]) for row in self.rows if row.get("confidence")]
        return max(stated or [str(self.query.header.get("confidence", "medium"))], key=_CONFIDENCE.index)

    @property
    def culprits(self) -> list[int]:
        """Global ranks that began it: column `rank`, limited to rows with `culprit` where there is such a column."""
        rows = [row for row in self.rows if row.get("culprit", True)]
        return sorted({int(row["rank"]) for row in rows if row.get("rank") is not None})

    @property
    def onset_step(self) -> int | None:
        """The first step that a row states."""
        return min((int(row["step"]) for row in self.rows if row.get("step") is not None), default=None)

    @property
    def onset_time(self) -> int | None:
        """The earliest time that a row states, in ns since the epoch."""
        return min((int(row["time"]) for row in self.rows if row.get("time") is not None), default=None)

    @property
    def statement(self) -> str:
        """The summary of the header, filled from the first row; {ranks}, {who} and {n} stand for all rows."""
        values = {key: _shown(value) for key, value in self.rows[0].items()}
        values |= {"ranks": _listed(self.culprits), "who": _who(self.culprits), "n": str(len(self.rows))}
        return str(self.query.header["summary"]).format_map(values)

    def evidence(self) -> list[dict[str, Any]]:
        """The rows as evidence lines of the contract."""
        return [
            {key: row.get(key) for key in ("source", "line", "rank", "step", "time", "text")}
            | {"finding": self.query.name}
            for row in self.rows[:EVIDENCE_ROWS]
        ]


def diagnose(session: Session) -> dict[str, Any]:
    """Diagnose the one run of `session`; the result is the JSON of schemas/json/diagnosis.schema.json."""
    found = findings(session)
    ranked = rank_faults(found)
    return {
        "schema": SCHEMA,
        "run": run_facts(session),
        "primary": _primary(ranked),
        "faults": ranked,
        "notes": [
            {"statement": f.statement, "finding": f.query.name, "evidence": f.evidence()}
            for f in found
            if f.severity == "note"
        ],
        "chain": session.rows("chain"),
        "coverage": coverage(session),
        "environment": session.rows("environment_differences"),
        "limits": [row["sentence"] for row in session.rows("limits")],
    }


def findings(session: Session) -> list[Finding]:
    """Every finding that fires on the run."""
    asked = [query for query in queries().values() if query.folder == "findings"]
    results = [Finding(query, session.rows(query.name)) for query in asked]
    return [finding for finding in results if finding.rows]


def rank_faults(found: Sequence[Finding]) -> list[dict[str, Any]]:
    """One entry per class of fault, the one that explains the others first."""
    classes = []
    for name in knowledge.faults():
        own = [f for f in found if f.fault == name and f.severity in {"fault", "warning"}]
        if own:
            classes.append(_fault(name, own, found))
    noticed = any(finding.query.name == "peers_lost" for finding in found)
    for fault in classes:
        explaining = (o["fault"] for o in classes if o is not fault and _explains(o, fault, noticed=noticed))
        fault["explained_by"] = next(explaining, None)
    return sorted(classes, key=_order)


def _fault(name: str, own: Sequence[Finding], found: Sequence[Finding]) -> dict[str, Any]:
    best = max(
        own,
        key=lambda f: (
            f.severity == "fault",
            int(f.query.header.get("weight", 0)),
            _CONFIDENCE.index(f.confidence),
        ),
    )
    known = knowledge.faults()[name]
    supporting = [best, *(f for f in found if f is not best and f.fault == name)]
    return {
        "fault": name,
        "severity": best.severity,
        "kind": str(best.query.header.get("kind", known.kind)),
        "finding": best.query.name,
        "culprit_ranks": best.culprits or _named(supporting),
        "onset_step": best.onset_step,
        "onset_time": best.onset_time,
        "confidence": best.confidence,
        "statement": best.statement,
        **explained(name, {finding.query.name: finding.statement for finding in found}),
        "evidence": [row for finding in supporting for row in finding.evidence()],
    }


def _named(supporting: Sequence[Finding]) -> list[int]:
    """Ranks of the first finding that may name them for a finding that cannot: all ranks slow down alike."""
    naming = (f.culprits for f in supporting if f.severity == "fault" and f.query.header.get("names_culprit"))
    return next((ranks for ranks in naming if ranks), [])


def explained(name: str, fired: Mapping[str, str]) -> dict[str, Any]:
    """Mechanisms, candidate causes and experiments of a class of fault; `fired`: finding -> what it states."""
    known = knowledge.faults()[name]
    causes = _causes(known, fired)
    return {
        "mechanisms": list(dict.fromkeys(cause["mechanism"] for cause in causes if cause["for"])),
        "causes": causes,
        "experiments": _experiments(known, causes),
    }


def _causes(known: knowledge.Fault, fired: Mapping[str, str]) -> list[dict[str, Any]]:
    """Candidate causes with the evidence on both sides, the likeliest first."""
    judged = []
    for cause in known.causes:
        for_ = [f"{why} ({fired[name]})" for name, why in cause.supports.items() if name in fired]
        against = [f"{why} ({fired[name]})" for name, why in cause.opposes.items() if name in fired]
        judged.append((len(for_) - len(against) + cause.prior, cause, for_, against))
    judged.sort(key=lambda item: -item[0])
    return [
        {
            "id": cause.id, "title": cause.title, "mechanism": cause.mechanism,
            "rank_of_likelihood": place, "for": for_, "against": against,
        }
        for place, (_, cause, for_, against) in enumerate(judged, 1)
    ]  # fmt: skip


def _experiments(known: knowledge.Fault, causes: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Experiments of the causes, in the causes' order."""
    by_id = {cause.id: cause for cause in known.causes}
    return [
        {
            "cause": judged["id"], "title": experiment.title, "change": experiment.change,
            "expect_if_true": experiment.expect_if_true, "expect_if_false": experiment.expect_if_false,
        }
        for judged in causes
        for experiment in by_id[judged["id"]].experiments
    ]  # fmt: skip


def _order(fault: Mapping[str, Any]) -> tuple[bool, bool, int]:
    """Faults before warnings, then what nothing else explains, then the fixed order of the classes."""
    return (
        fault["severity"] != "fault",
        fault["explained_by"] is not None,
        knowledge.NAMES.index(fault["fault"]),
    )


# What can bring what about, when it began no later. A crash leaves its peers waiting; a failed allocation or a
# non-finite loss raises; waiting is slow. Nothing that is merely slow brings a crash about.
_CONSEQUENCES = {
    "oom": {"crash", "comm_hang", "throughput"},
    "nan_inf": {"crash"},
    "crash": {"comm_hang", "throughput"},
    "comm_hang": {"crash", "throughput"},
    "silent": {"nan_inf"},
}


def _explains(cause: Mapping[str, Any], effect: Mapping[str, Any], *, noticed: bool) -> bool:
    """Whether one fault brought another about; `noticed`: peers lost their connection before any timed out."""
    if cause["severity"] != "fault" or effect["fault"] not in _CONSEQUENCES.get(cause["fault"], ()):
        return False
    if {cause["fault"], effect["fault"]} == {"crash", "comm_hang"}:
        return _hung_first(cause, effect, noticed=noticed) is (cause["fault"] == "comm_hang")
    for key in ("onset_step", "onset_time"):
        if cause[key] is not None and effect[key] is not None:
            return bool(cause[key] <= effect[key])
    return True


def _hung_first(one: Mapping[str, Any], other: Mapping[str, Any], *, noticed: bool) -> bool:
    """Whether a hang came before a crash of the same run, rather than after it.

    A run that hangs is stopped from outside in the end, which is no crash of its own. A rank that failed by itself
    leaves its peers waiting, unless it is known to have failed later than they began to wait and none of them noticed.
    """
    hang, crash = sorted((one, other), key=lambda fault: fault["fault"])
    if crash["finding"] == "crash_external_stop":
        return True
    if hang["culprit_ranks"] and not crash["culprit_ranks"]:
        return True  # processes that all ended with an error do not explain why one rank did not come
    if crash["finding"] in {"crash_exit", "crash_followers"} and not crash["culprit_ranks"] and not noticed:
        return True  # launchers stop all processes at once when one ends: who timed out before that waited already
    begun, failed = hang["onset_time"], crash["onset_time"]
    return not noticed and begun is not None and failed is not None and bool(begun < failed)


def _primary(ranked: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    if not ranked or ranked[0]["severity"] != "fault":
        return None
    keys = ("fault", "culprit_ranks", "onset_step", "onset_time", "confidence", "statement")
    return {key: ranked[0][key] for key in keys}


def run_facts(session: Session) -> dict[str, Any]:
    """Name, size, span and end of the run."""
    return session.rows("run_summary")[0]


def coverage(session: Session) -> dict[str, Any]:
    """What was read and what was not, and which ranks left no evidence."""
    facts = session.rows("coverage")[0]
    missing = [row["sentence"] for row in session.rows("coverage_gaps")]
    files = {key.removeprefix("files_"): facts[key] for key in facts if key.startswith("files_")}
    ranks = {key: facts[key] for key in facts if key.startswith("ranks_")}
    return {**ranks, "files": files, "issues": facts["issues"], "missing": missing}


def _shown(value: Any) -> str:
    """A value as it stands in a sentence."""
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, list):
        return _listed(value)
    return (
        f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10_000 else str(value)
    )


def _who(ranks: Sequence[int]) -> str:
    if not ranks:
        return "no single rank"
    return f"rank{'s' if len(ranks) > 1 else ''} {_listed(ranks)}"


def _listed(values: Sequence[Any]) -> str:
    shown = [str(value) for value in values[:12]]
    return ", ".join(shown) + (f" and {len(values) - 12} more" if len(values) > 12 else "")
