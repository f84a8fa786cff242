"""Stamps of log lines -> nanoseconds since the epoch, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from postmortem.formats import ascii_classes

LEAP = 1972
"""Year of stamps whose year nothing in the file states: a leap year, so that every day of a year exists."""
_ISO = ascii_classes(r"^(\d{4}-\d\d-\d\d)[T _](\d\d:\d\d:\d\d)[.,]?(\d*)(Z|[+-]\d\d:?\d\d)?$")
_POWERS = [10 ** (9 - digits) for digits in range(10)]
_GLOG = ascii_classes(
    r"^(\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.?(\d*)$"
)  # month without leading zero in C++, with it in Python
_SYSLOG = ascii_classes(r"^([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d)(?:\.(\d+)| (\d{4}))?$")  # dmesg -T has the year
_NO_DAY = [
    pl.lit(None, pl.String).alias("day"),
    pl.lit(0, pl.Int64).alias("fraction"),
    pl.lit(None, pl.String).alias("stated"),
]


@dataclass(slots=True)
class Clock:
    """The year that one file stated last."""

    year: int | None = None

    def stamp(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Replace the text column `time` by int64 nanoseconds, and add `clock`."""
        text = lines["time"]
        stamped = text.is_not_null()
        if not stamped.any():
            return lines.with_columns(time=pl.lit(None, pl.Int64), clock=pl.lit(None, pl.String))
        some = text.filter(stamped).to_frame("t")
        iso = _iso(some)
        frame = some.with_columns(iso).with_columns(_yearless(some) if iso[0].null_count() else _NO_DAY)
        years = frame["ns"].drop_nulls()
        known = self.year
        if len(years):
            stated = pl.from_epoch(years, time_unit="ns").dt.year()
            self.year = int(stated[-1])
            known = int(stated[0]) if known is None else known
        frame = frame.with_columns(_dated(known))
        at = stamped.arg_true()
        out = pl.DataFrame({"at": at, "time": frame["time"], "clock": frame["clock"]})
        rest = lines.drop("time").with_row_index("at")
        return rest.join(out, on="at", how="left", maintain_order="left").drop("at")


def _iso(some: pl.DataFrame) -> list[pl.Series]:
    parts = some.select(pl.col("t").str.extract_groups(_ISO)).unnest("t")
    names = parts.columns
    stamp = parts[names[0]] + pl.Series([" "]) + parts[names[1]]
    ns = stamp.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="ns", strict=False).cast(pl.Int64)
    ns = ns + _fraction(parts[names[2]])
    zone = parts[names[3]]
    if zone.null_count() < len(zone):
        ns = ns - _offset(zone)
    clock = (
        zone.is_not_null().to_frame("z").select(pl.when("z").then(pl.lit("utc")).otherwise(pl.lit("local"))).to_series()
    )
    return [ns.alias("ns"), clock.alias("clock")]


def _fraction(digits: pl.Series) -> pl.Series:
    length = digits.str.len_bytes()
    if (length > 9).any():
        digits, length = digits.str.head(9), length.clip(upper_bound=9)
    scale = pl.Series(_POWERS)[length.fill_null(0)]
    return (digits.cast(pl.Int64, strict=False) * scale).fill_null(0)


def _offset(zone: pl.Series) -> pl.Series:
    sign = zone.str.starts_with("-").cast(pl.Int64) * -2 + 1
    hours = zone.str.extract(r"^[+-](\d\d)", 1).cast(pl.Int64, strict=False)
    minutes = zone.str.extract(r"^[+-]\d\d:?(\d\d)", 1).cast(pl.Int64, strict=False)
    return (sign * (hours * 3600 + minutes * 60) * 1_000_000_000).fill_null(0)


def _yearless(some: pl.DataFrame) -> list[pl.Series]:
    """Month and day with time, as "MM-DD HH:MM:SS" and nanoseconds of the fraction."""
    glog = some.select(pl.col("t").str.extract_groups(_GLOG)).unnest("t")
    a, b, c, d = glog.columns
    day = glog[a].str.zfill(2) + "-" + glog[b] + " " + glog[c]
    fraction = glog[d]
    syslog = some.select(pl.col("t").str.extract_groups(_SYSLOG)).unnest("t")
    a, b, c, d, e = syslog.columns
    stated = syslog[e]
    if syslog[a].null_count() < len(syslog):
        months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        number = syslog[a].replace_strict(
            {m: f"{i:02}" for i, m in enumerate(months, 1)}, default=None, return_dtype=pl.String
        )
        other = number + "-" + syslog[b].str.strip_chars().str.zfill(2) + " " + syslog[c]
        day = _first(day, other)
        fraction = _first(fraction, syslog[d])
    return [day.alias("day"), _fraction(fraction).alias("fraction"), stated.alias("stated")]


def _first(one: pl.Series, other: pl.Series) -> pl.Series:
    return pl.select(pl.coalesce(pl.lit(one), pl.lit(other))).to_series()


def _dated(year: int | None) -> list[pl.Expr]:
    """Stamps without a year take the file's; with none, the year LEAP and the clock "day"."""
    stamp = pl.coalesce("stated", pl.lit(str(year or LEAP))) + "-" + pl.col("day")
    guessed = stamp.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="ns", strict=False).cast(pl.Int64) + pl.col(
        "fraction"
    )
    named = (
        pl.when(pl.col("ns").is_not_null())
        .then("clock")
        .when(pl.col("stated").is_not_null())
        .then(pl.lit("local"))
        .when(guessed.is_not_null())
        .then(pl.lit("year" if year else "day"))
    )
    return [pl.coalesce("ns", guessed).alias("time"), named.alias("clock")]


def whole_seconds(stamp: str) -> int | None:
    """YYYY-MM-DD_HH:MM:SS (local time, no zone) -> ns since the epoch as if it were UTC."""
    try:
        moment = datetime.strptime(stamp.strip(), "%Y-%m-%d_%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1_000_000_000
