"""The key numbers of a verdict, and what would change it."""

from __future__ import annotations

from postmortem.report import words
from postmortem.report.model import SENTENCES, Document, Figure, sides, span, text


def of_run(document: Document, primary: Document | None) -> list[Figure]:
    """Key numbers of one run."""
    run = document.get("run", {})
    out = []
    if primary:
        out.append(
            Figure(
                "who began it",
                words.ranks(primary.get("culprit_ranks")) or "no single rank",
                f"confidence {text(primary.get('confidence'), 'not stated')}",
            )
        )
        onset, last = primary.get("onset_step"), run.get("last_step")
        after = f"last step {words.number(last)}" if last is not None else ""
        out.append(
            Figure(
                "onset",
                f"step {words.number(onset)}" if onset is not None else "no step stated",
                " · ".join(filter(None, [after, words.when(primary.get("onset_time"))])),
            )
        )
    hosts = len(run.get("hosts") or [])
    out.append(
        Figure(
            "size",
            f"{words.number(run.get('world_size'))} ranks",
            f"{hosts} host{'s' if hosts != 1 else ''}" if hosts else "hosts not stated",
        )
    )
    out.append(Figure("steps", span(run), f"end: {text(run.get('end'), 'unknown')}"))
    return out


def of_comparison(document: Document) -> list[Figure]:
    """Key numbers of a comparison, as far as it has them."""
    makers = (_throughput, _stability, _worst_memory, _loss)
    return [figure for make in makers if (figure := make(document)) is not None]


def _throughput(document: Document) -> Figure | None:
    found = document.get("throughput") or {}
    if not found:
        return None
    ratio, word = words.finite(found.get("ratio")), text(found.get("verdict"), "undecided")
    if ratio is None:
        return Figure(
            "step time, after / before",
            "not known",
            f"{word}: {text(found.get('why'), 'no step times on both sides')}",
            words.tone(word),
        )
    spread = words.interval(found.get("ci"))
    n = " and ".join(words.number(v) for v in found.get("n") or [])
    parts = [f"interval {spread}" if spread else "", f"n = {n} steps" if n else "", word]
    return Figure(
        "step time, after / before",
        f"{words.number(ratio)} times",
        " · ".join(filter(None, parts)),
        words.tone(word),
    )


def _stability(document: Document) -> Figure | None:
    found = document.get("stability") or {}
    have, needed = found.get("clean_steps_after"), found.get("needed")
    if have is None and needed is None:
        return None
    word = text(found.get("verdict"), "")
    bound = words.finite(found.get("upper_bound_after"))
    parts = [
        f"{words.number(needed)} needed" if needed is not None else "",
        f"failure rate after at most {words.number(bound)} per step" if bound is not None else "", word,
    ]  # fmt: skip
    return Figure(
        "clean steps after",
        words.number(have),
        " · ".join(filter(None, parts)),
        words.tone(word) if word else "",
    )


def _worst_memory(document: Document) -> Figure | None:
    rows = [row for row in document.get("memory") or [] if row.get("before") or row.get("after")]
    if not rows:
        return None
    known = [row for row in rows if row.get("verdict") != "undecided"] or rows
    worst = max(
        known,
        key=lambda row: max(words.finite((row.get(s) or {}).get("slope")) or 0.0 for s in ("before", "after")),
    )
    unit = text(worst.get("unit"), "B/step")
    before, after = ((worst.get(side) or {}) for side in ("before", "after"))
    value = " → ".join(
        words.amount(side.get("slope"), unit) if side.get("slope") is not None else "unknown"
        for side in (before, after)
    )
    where = f"{text(worst.get('kind')).replace('_', ' ')}, {words.ranks([worst.get('rank')]) or 'job'}"
    spread = words.interval(after.get("ci"), unit)
    word = text(worst.get("verdict"))
    return Figure(
        "steepest memory growth",
        value,
        " · ".join(filter(None, [where, f"after: {spread}" if spread else "", word])),
        words.tone(word),
    )


def _loss(document: Document) -> Figure | None:
    found = document.get("loss") or {}
    word = text(found.get("verdict"))
    if not word:
        return None
    detail = text(found.get("why"))
    spread = words.interval(found.get("ci"))
    parts = [
        detail,
        f"after / before {words.number(found['ratio'])}" if words.finite(found.get("ratio")) is not None else "",
        f"interval {spread}" if spread else "",
    ]
    return Figure("loss", word, " · ".join(filter(None, parts)), words.tone(word))


def may_change(document: Document) -> list[str]:
    """What would change the verdict of a comparison, as sentences."""
    said = [text(s) for s in document.get("would_change") or []]
    if said:
        return said[:SENTENCES]
    out = []
    stability = document.get("stability") or {}
    have, needed = (words.finite(stability.get(k)) for k in ("clean_steps_after", "needed"))
    if have is not None and needed is not None and have < needed:
        out.append(
            f"{words.number(needed - have)} more clean steps in the run after: it has {words.number(have)} of the {words.number(needed)} needed."
        )
    if document.get("verdict") == "masked":
        out += [
            f"The run after repeated with {text(c.get('what'))} back at {words.plain(c.get('before'))}: if the fault stays away, it is fixed."
            for c in document.get("changes") or [] if c.get("can_mask")
        ]  # fmt: skip
    more = words.finite((document.get("throughput") or {}).get("more_steps"))
    if more:
        out.append(f"About {words.number(more)} more steps would decide on the step time.")
    if (document.get("throughput") or {}).get("more_runs"):
        out.append("More runs on each side, not more steps, would decide on the step time.")
    noise = words.finite((document.get("throughput") or {}).get("break_even_noise"))
    if noise is not None:
        out.append(f"Run-to-run noise above {words.number(noise * 100)} %: the throughput verdict holds below that.")
    missing = [
        sentence for part in sides(document).values() for sentence in (part.get("coverage") or {}).get("missing") or []
    ]
    if missing and document.get("verdict") == "undecided":
        out.append("Evidence that is missing on one side; it is listed under coverage.")
    if document.get("verdict") == "fixed":
        out.append("The same fault seen once more in a longer run after the change.")
    return out


def may_change_diagnosis(document: Document) -> list[str]:
    """What would change a diagnosis, as sentences."""
    said = [text(s) for s in document.get("would_change") or []]
    if said:
        return said[:SENTENCES]
    primary = document.get("primary")
    missing = (document.get("coverage") or {}).get("missing") or []
    if not primary:
        return [f"Evidence that was not there: {text(s)}" for s in missing[:5]]
    fault: Document = next((f for f in document.get("faults") or [] if f.get("fault") == primary.get("fault")), {})
    out = [
        f"The experiment “{text(e.get('title'))}” gives: {text(e.get('expect_if_false'))}."
        for e in (fault.get("experiments") or [])[:2] if e.get("expect_if_false")
    ]  # fmt: skip
    return out + [f"Evidence that was not there: {text(s)}" for s in missing[:3]]
