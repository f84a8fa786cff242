"""Stamps of log lines -> nanoseconds since the epoch, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from postmortem.formats import ascii_classes
from postmortem.parsers._shapes import Texts

LEAP = 1972
"""Year of stamps whose year nothing in the file states: a leap year, so that every day of a year exists."""
_ISO = ascii_classes(
    r"^(\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d\d/\d\d/\d{4})[T _](\d\d:\d\d:\d\d)[.,]?(\d*)(Z|[+-]\d\d:?\d\d)?$"
)
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

    def read(self, stamps: Texts) -> tuple[pl.Series, pl.Series]:
        """Nanoseconds since the epoch of each stamp, and how good they are."""
        if not len(stamps.of):
            return pl.Series([], dtype=pl.Int64), pl.Series([], dtype=pl.String)
        iso = _iso(stamps)
        frame = pl.DataFrame(iso).with_columns(_yearless(stamps) if iso[0].null_count() else _NO_DAY)
        years = frame["ns"].drop_nulls()
        known = self.year
        if len(years):
            stated = pl.from_epoch(years[[0, -1]], time_unit="ns").dt.year()
            self.year = int(stated[-1])
            known = int(stated[0]) if known is None else known
        frame = frame.select(_dated(known))
        return frame["time"], frame["clock"]


def _iso(stamps: Texts) -> list[pl.Series]:
    day, time, fraction, zone = stamps.groups(_ISO)
    stamp = _dashed(day) + pl.Series([" "]) + time
    ns = stamp.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="ns", strict=False).cast(pl.Int64)
    ns = ns + _fraction(fraction)
    if zone.null_count() < len(zone):
        ns = ns - _offset(zone)
    clock = zone.is_not_null().to_frame("z").select(pl.when("z").then(pl.lit("utc")).otherwise(pl.lit("local")))
    return [ns.alias("ns"), clock.to_series().alias("clock")]


def _dashed(day: pl.Series) -> pl.Series:
    """Dates with slashes as ISO dates: the year first, or the month, as the examples of transformers print it.

    A first number above 12 can only be the day.
    """
    if not day.str.contains("/", literal=True).any():
        return day
    date, parts = pl.col("day"), pl.col("day").str.extract_groups(r"^(?<a>\d\d)/(?<b>\d\d)/(?<year>\d{4})$")
    a, b, year = (parts.struct.field(name) for name in ("a", "b", "year"))
    month = pl.when(a > "12").then(b).otherwise(a)
    named = year + "-" + month + "-" + pl.when(a > "12").then(a).otherwise(b)
    return day.to_frame("day").select(pl.coalesce(named, date.str.replace_all("/", "-", literal=True))).to_series()


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


def _yearless(stamps: Texts) -> list[pl.Series]:
    """Month and day with time, as "MM-DD HH:MM:SS" and nanoseconds of the fraction."""
    month, day_, time, fraction = stamps.groups(_GLOG)
    day = month.str.zfill(2) + "-" + day_ + " " + time
    month, day_, time, other_fraction, stated = stamps.groups(_SYSLOG)
    if month.null_count() < len(month):
        months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        number = month.replace_strict(
            {m: f"{i:02}" for i, m in enumerate(months, 1)}, default=None, return_dtype=pl.String
        )
        other = number + "-" + day_.str.strip_chars().str.zfill(2) + " " + time
        day = _first(day, other)
        fraction = _first(fraction, other_fraction)
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


def whole_seconds(stamp: str, form: str = "%Y-%m-%d_%H:%M:%S") -> int | None:
    """Local time without a zone, as `strptime` reads it -> ns since the epoch as if it were UTC."""
    try:
        moment = datetime.strptime(stamp.strip(), form).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1_000_000_000
