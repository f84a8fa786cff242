"""How far training had got, and how late it was at most, when a record without a step or stamp was written."""

from __future__ import annotations

import polars as pl


def steps(metrics: pl.DataFrame, before: pl.DataFrame | None) -> pl.DataFrame:
    """The last step of each rank by line (columns line, rank, last_step); rank -1 stands for "any rank"."""
    frames = [] if before is None else [before]
    if "step" in metrics.columns:
        own = metrics.filter(pl.col("step").is_not_null())
        own = own.select("line", pl.col("rank").cast(pl.Int32).fill_null(-1), last_step="step")
        changed = pl.any_horizontal(pl.all().ne_missing(pl.all().shift()))  # a line prints several metrics
        own = own.filter(changed)
        frames += [own, own.with_columns(rank=pl.lit(-1, pl.Int32))]
    if not frames:
        return pl.DataFrame(schema={"line": pl.Int64, "rank": pl.Int32, "last_step": pl.Int64})
    return pl.concat(frames).sort("line", maintain_order=True)


def bounded(events: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """An event without a stamp happened before the next stamped line of its rank, or else of its file, was written.

    That upper bound becomes its time, marked by the clock "bound".
    """
    if events.is_empty() or "time" not in events.columns or events["time"].null_count() == 0:
        return events
    stamped = lines.select("line", "rank", "time", "clock").filter(
        pl.col("time").is_not_null() & (pl.col("clock") != "day")
    )
    if stamped.is_empty():
        return events
    events = events.with_columns(
        pl.col("time").cast(pl.Int64),
        pl.col("line").cast(pl.Int64),
        pl.col("rank").cast(pl.Int32),
        pl.col("clock").cast(pl.String),
    )
    events = events.sort("line", maintain_order=True)
    own = stamped.select("line", "rank", own_="time")
    events = events.join_asof(own, on="line", by="rank", strategy="forward", check_sortedness=False)
    events = events.join_asof(
        stamped.select("line", any_="time"), on="line", strategy="forward", check_sortedness=False
    )
    bound = pl.coalesce("own_", "any_")
    unstamped = pl.col("time").is_null()
    return events.with_columns(
        clock=pl.when(unstamped & bound.is_not_null()).then(pl.lit("bound")).otherwise("clock"),
        time=pl.coalesce("time", bound),
    ).drop("own_", "any_")


def with_carried_step(metrics: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Metrics whose line states no step take the last one printed before them."""
    own = metrics.filter(pl.col("carry_").is_null())
    carried = after_step(metrics.filter(pl.col("carry_").is_not_null()), known)
    if "after_step" in carried.columns:
        carried = carried.with_columns(step=pl.coalesce(*[c for c in ("step", "after_step") if c in carried.columns]))
    return pl.concat([own, carried], how="diagonal_relaxed")


def after_step(frame: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Fill column after_step from the last step that the same rank printed, or anyone where the rank is not known."""
    if known.is_empty():
        return frame
    keyed = frame.with_columns(rank_key=pl.col("rank").cast(pl.Int32).fill_null(-1)).sort("line", maintain_order=True)
    keyed = keyed.drop("after_step", strict=False)
    joined = keyed.join_asof(known, on="line", by_left="rank_key", by_right="rank", check_sortedness=False)
    return joined.rename({"last_step": "after_step"}).drop("rank_key")
