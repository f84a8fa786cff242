"""How far training had got, and how late it was at most, when a record without a step or stamp was written."""

from __future__ import annotations

import numpy as np
import polars as pl


class Epochs:
    """Steps that begin again with each epoch, counted on over all epochs of a file.

    "Epoch 2, step 8/100" may be step 8 of the epoch or of the run: where the epoch rises and the step does not, it is
    the epoch's. Epochs count from 0 or 1, so a file that begins with a later one continues another.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._first = 0.0
        self._within = False

    def counted(self, metrics: pl.DataFrame) -> pl.DataFrame:
        """The same metrics with steps of the run; column `name` has epoch and steps_in_epoch where lines state both."""
        key = ["line", "part"]
        stated = metrics.filter(pl.col("name") == "steps_in_epoch")
        if stated.is_empty():
            return metrics
        total = stated.select(*key, "step", total="value")
        epoch = metrics.filter(pl.col("name") == "epoch").select(*key, epoch="value")
        marks = total.join(epoch, on=key, nulls_equal=True).sort(key, maintain_order=True)
        epochs, made = marks["epoch"].to_numpy(), marks["step"].cast(pl.Float64).to_numpy()
        if self._last is None:
            self._first, self._last = min(epochs[0], 1.0), (epochs[0], made[0])
        before = np.concatenate([[self._last], np.column_stack([epochs, made])[:-1]])
        self._within = self._within or bool(((epochs > before[:, 0]) & (made <= before[:, 1])).any())
        self._last = (epochs[-1], made[-1])
        if not self._within:
            return metrics
        skipped = (np.maximum(epochs - self._first, 0) * marks["total"].to_numpy()).astype(np.int64)
        skips = marks.select(*key, skipped_=pl.Series(skipped))
        joined = metrics.join(skips, on=key, how="left", nulls_equal=True, maintain_order="left")
        return joined.with_columns(step=pl.col("step") + pl.col("skipped_").fill_null(0)).drop("skipped_")


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


def after_step(frame: pl.DataFrame, known: pl.DataFrame, *, of_anyone: bool = False) -> pl.DataFrame:
    """Fill column after_step from the last step that the same rank printed, or anyone where the rank is not known.

    `of_anyone`: a rank that printed no step takes that of the others; often one rank alone prints steps.
    """
    if known.is_empty():
        return frame
    keyed = frame.with_columns(rank_key=pl.col("rank").cast(pl.Int32).fill_null(-1)).sort("line", maintain_order=True)
    keyed = keyed.drop("after_step", strict=False)
    if of_anyone:
        own = pl.col("rank_key").is_in(known["rank"].unique().to_list())
        keyed = keyed.with_columns(rank_key=pl.when(own).then("rank_key").otherwise(-1).cast(pl.Int32))
    joined = keyed.join_asof(known, on="line", by_left="rank_key", by_right="rank", check_sortedness=False)
    return joined.rename({"last_step": "after_step"}).drop("rank_key")
