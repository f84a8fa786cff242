"""What launchers and loggers put in front of a record: found from outside in, removed, and kept as columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import polars as pl

# Each piece is optional; the order is that in which tools wrap each other. Groups of one column carry a digit.
_STAMP = r"\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_LEVELS = r"DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|debug|info|warning|error|critical"
_BEFORE_HOST = (
    # kubectl, docker --timestamps and CRI files: RFC 3339 with a zone, then maybe the stream and a full/partial flag
    rf"(?:(?P<time_k8s>{_STAMP}{_ZONE}) (?:(?P<stream_k8s>stdout|stderr) [FP] )?)?"
    # docker compose and Kubernetes aggregators: [pod/name/container]
    r"(?:\[pod/(?P<host_pod>[^\]/ ]+)/[^\] ]*\] )?"
    # syslog (RFC 3164), journalctl -o short and short-iso
    r"(?:(?:(?P<time_syslog>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?)"
    rf"|(?P<time_journal>{_STAMP}{_ZONE})) (?P<host_syslog>[\w.-]+) [\w./@-]+(?:\[(?P<pid_syslog>\d+)\])?: )?"
)
_AFTER_HOST = (
    # mpirun -tag-output and --timestamp-output (Open MPI); the second number is the rank in MPI_COMM_WORLD
    r"(?:(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    r"\[\d+,(?P<task_mpi>\d+)\]<(?P<stream_mpi>stdout|stderr|stddiag)>: ?)?"
    # Ray: (actor pid=123, ip=10.0.0.1)
    r"(?:\((?:[\w.:<>-]+ )?pid=(?P<pid_ray>\d+)(?:, ip=(?P<host_ray>[\w.:-]+))?\) )?"
    # torchrun --tee: [${role_name}${local_rank}]: (torch/distributed/elastic/multiprocessing/api.py)
    r"(?:\[(?:default|trainer|worker|role)_?(?P<local_rank_tee>\d+)\]: ?)?"
    # torch's exception hook and C++ log: the global rank (torch/distributed/distributed_c10d.py)
    r"(?:\[rank(?P<rank_torch>\d+)\]: ?)?"
    # glog of torch's C++ side. What follows in brackets is a rank inside a process group, so nothing more is removed.
    r"(?:(?:\[(?P<level_c>[IWEF])(?:(?P<time_c>\d{3,4} \d\d:\d\d:\d\d(?:\.\d+)?))? (?P<logger_c>[\w./-]+:\d+)\] ?)|(?:"
    # torchrun's Python side, with its process id
    r"(?:(?P<level_p>[IWEF])(?P<time_p>\d{4} \d\d:\d\d:\d\d(?:\.\d+)?) +(?P<pid_p>\d+) (?P<logger_p>[^\] ]+:\d+)\] ?)?"
    # DeepSpeed's logger (deepspeed/utils/logging.py), and others that print [time] [LEVEL] [origin]
    rf"(?:\[(?P<time_ds>{_STAMP})\] (?:\[(?P<level_ds>{_LEVELS})\] )?(?:\[(?P<logger_ds>[\w.<>/-]+:\d+(?::[\w<>]+)?)\] ?)?)?"
    # [time] logger: [LEVEL]   (torchrun 2.1 and 2.2)
    rf"(?:\[(?P<time_el>{_STAMP})\] (?P<logger_el>[\w.]+): \[(?P<level_el>{_LEVELS})\] ?)?"
    # transformers: [LEVEL|file.py:123] time >>
    rf"(?:\[(?P<level_hf>{_LEVELS})\|(?P<logger_hf>[\w.]+:\d+)\] (?P<time_hf>{_STAMP}) >> ?)?"
    # logging.basicConfig: LEVEL:logger:
    rf"(?:(?P<level_b>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<logger_b>[\w.]+):)?"
    # bare stamps: "2026-01-02 03:04:05,678 - INFO - ", "2026-01-02 03:04:05 | INFO | a:b:1 - ", "2026-01-02T03:04:05 "
    rf"(?:(?P<time_iso>{_STAMP}{_ZONE}?)(?: ?[-|:]? ?(?:\[?(?P<level_iso>{_LEVELS})\]? *(?:[-|:]|\b)))? *(?:- )?)?"
    # a rank in words: DeepSpeed's log_dist, and what trainers print
    r"(?:\[(?:[Rr]ank|RANK)[ =:_]?(?P<rank_words>-?\d+)\]:? ?)?"
    r"))"
)
# A bare word with a colon in front of a record is a host only if what follows is a lead-in that no message starts with.
_HOST_TOKEN = r"^([A-Za-z0-9][\w.-]*): "
_HOST_STRONG = (
    r"^[A-Za-z0-9][\w.-]*: (?:\[rank\d+\]:|\[default\d+\]:|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3}\] \[[A-Z]+\] \[)"
)
# pdsh -w a,b / "Running on the following workers: a,b" (deepspeed/launcher/multinode_runner.py)
_HOST_LIST = re.compile(r"(?:pdsh (?:-\S+ (?:\d+ )?)*-w |Running on the following workers: )([\w.,-]+)")
_NO_HOSTS = {"error", "warning", "info", "debug", "note", "traceback", "exception", "fatal", "hint", "usage"}
_SRUN = r"^ *\d+: "


@dataclass(slots=True)
class LeadIns:
    """The lead-ins that one file was found to use so far."""

    hosts: set[str] = field(default_factory=set)
    srun: bool = False

    def learn(self, raw: pl.Series) -> None:
        """Look at a block of raw lines for host names and srun labels in front of lines."""
        found = raw.filter(raw.str.contains(_HOST_STRONG)).str.extract(_HOST_TOKEN).drop_nulls().unique()
        self.hosts.update(h for h in found.to_list() if _is_host(h))
        listed = raw.filter(raw.str.contains_any(["pdsh ", "Running on the following workers: "])).to_list()
        for line in listed:
            for names in _HOST_LIST.findall(line):
                self.hosts.update(h for h in names.split(",") if h and h.lower() not in _NO_HOSTS)
        labelled = int(raw.str.contains(_SRUN).sum() or 0)
        # A label stands on nearly every line; a list of numbered items does not fill a log.
        self.srun = self.srun or (labelled >= 2 and labelled > 0.8 * int((raw.str.len_bytes() > 0).sum() or 0))

    @property
    def regex(self) -> str:
        """The whole lead-in as one anchored expression with the remaining text as its last group."""
        hosts = "|".join(re.escape(h).replace(r"\-", "-") for h in sorted(self.hosts, key=len, reverse=True))
        host = f"(?:(?P<host_pdsh>{hosts}): ?)?" if hosts else ""
        task = r"(?: *(?P<task_srun>\d+): )?" if self.srun else ""
        return f"(?s)^(?P<prefix>{_BEFORE_HOST}{host}{task}{_AFTER_HOST})(?P<text>.*)$"


def _is_host(token: str) -> bool:
    return token.lower() not in _NO_HOSTS and not token.endswith(("Error", "Exception", "Warning"))


_AGAIN = r"^[\[({ISEWFDC\d]"


def split(lines: pl.DataFrame, leadins: LeadIns) -> pl.DataFrame:
    """Replace column `raw` by `prefix`, `text` and one text column per kind of thing that lead-ins state.

    A record may be wrapped again by the same kind of tool, so what remains is looked at once more.
    """
    first = _groups(lines["raw"], leadins.regex)
    again = (first["prefix"].str.len_bytes() > 0) & first["text"].str.contains(_AGAIN) & first["logger_c"].is_null()
    if again.any():
        second = _groups(first["text"].filter(again), leadins.regex)
        if (second["prefix"].str.len_bytes() > 0).any():
            first = _merged(first, second, again)
    return lines.drop("raw").hstack(_columns(first))


def _groups(raw: pl.Series, regex: str) -> pl.DataFrame:
    return raw.to_frame("raw").select(pl.col("raw").str.extract_groups(regex)).unnest("raw")


def _merged(first: pl.DataFrame, second: pl.DataFrame, where: pl.Series) -> pl.DataFrame:
    rows = where.arg_true()
    wide = second.with_columns(at=rows).rename({c: f"{c}2" for c in second.columns})
    both = first.with_row_index("at").join(wide, on="at", how="left", maintain_order="left")
    columns = [
        (pl.col("prefix") + pl.col("prefix2").fill_null("")).alias("prefix"),
        pl.coalesce("text2", "text").alias("text"),
    ]
    columns += [pl.coalesce(f"{c}2", c).alias(c) for c in first.columns if c not in ("prefix", "text")]
    return both.select(columns)


def _columns(groups: pl.DataFrame) -> pl.DataFrame:
    """Merge groups of one meaning; the innermost statement about the writer wins, it was made nearest to it."""
    kinds: dict[str, list[str]] = {}
    for name in groups.columns:
        if name not in ("prefix", "text"):
            kinds.setdefault(name.rsplit("_", 1)[0], []).append(name)
    merged = []
    for kind, names in kinds.items():
        present = [n for n in reversed(names) if groups[n].null_count() < groups.height]
        merged.append((pl.coalesce(present) if present else pl.lit(None, pl.String)).alias(kind))
    return groups.select("prefix", "text", *merged)
