"""What launchers and loggers put in front of a record: found from outside in, removed, and kept as columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from postmortem.formats import ascii_classes

# Each piece is optional; the order is that in which tools wrap each other. Groups of one column carry a digit.
_STAMP = r"(?:\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d\d/\d\d/\d{4})[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_LEVELS = r"DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|debug|info|warning|error|critical"
_OUTER = (
    # dmesg: --decode, -T (ctime), uptime or delta in seconds, and records of /dev/kmsg (priority,number,microseconds,flags;)
    r"(?:(?:kern|user|daemon|syslog|auth) *:(?P<level_kern>[a-z]+) *: )?"
    r"(?:\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] |\[ *[+]?\d+\.\d{6}\] |\d{1,3},\d+,\d+,[^;,]{1,2}(?:,[^;]*)?;)?"
    # kubectl, docker --timestamps and CRI files: RFC 3339 with a zone, then maybe the stream and a full/partial flag
    rf"(?:{_STAMP}{_ZONE} (?:(?P<stream_k8s>stdout|stderr) [FP] )?)?"
    # stern and Kubernetes aggregators: [pod/name/container]
    r"(?:\[pod/(?P<host_pod>[^\]/ ]+)/[^\] ]*\] )?"
    # syslog (RFC 3164), journalctl -o short and short-iso
    r"(?:(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
    rf"|{_STAMP}{_ZONE}) (?P<host_syslog>[\w.-]+) [\w./@-]+(?:\[(?P<pid_syslog>\d+)\])?: )?"
)
_MIDDLE = (
    # mpirun -tag-output and --timestamp-output (Open MPI); the second number is the rank in MPI_COMM_WORLD
    r"(?:(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    r"\[\d+,(?P<task_mpi>\d+)\]<(?P<stream_mpi>stdout|stderr|stddiag)>: ?)?"
    # Ray: (actor pid=123, ip=10.0.0.1)
    r"(?:\((?:[\w.:<>-]+ )?pid=(?P<pid_ray>\d+)(?:, ip=(?P<host_ray>[\w.:-]+))?\) )?"
    # torchrun --tee: [${role_name}${local_rank}]: (torch/distributed/elastic/multiprocessing/api.py)
    r"(?:\[(?:default|trainer|worker|role)_?(?P<local_rank_tee>\d+)\]: ?)?"
    # torch's exception hook and C++ log: the global rank (torch/distributed/distributed_c10d.py)
    r"(?:\[rank(?P<rank_torch>\d+)\]: ?)?"
)
# glog of torch's C++ side. What follows in brackets is a rank inside a process group, so nothing more is removed.
_GLOG = r"\[(?P<level_c>[IWEF])(?:\d{3,4} \d\d:\d\d:\d\d(?:\.\d+)?)? (?P<logger_c>[\w./-]+:\d+)\] ?"
_INNER = (
    # torchrun's Python side, with its process id
    r"(?:(?P<level_p>[IWEF])\d{4} \d\d:\d\d:\d\d(?:\.\d+)? +(?P<pid_p>\d+) (?P<logger_p>[^\] ]+:\d+)\] ?)?"
    # [time] logger: [LEVEL]   (torchrun 2.1 and 2.2), before what begins alike
    rf"(?:\[{_STAMP}\] (?P<logger_el>[\w.]+): \[(?P<level_el>{_LEVELS})\] ?)?"
    # hydra: [time][logger][LEVEL] -
    rf"(?:\[{_STAMP}\]\[(?P<logger_hydra>[\w.]+)\]\[(?P<level_hydra>{_LEVELS})\] - )?"
    # DeepSpeed's logger (deepspeed/utils/logging.py), and others that print [time] [LEVEL] [origin]
    rf"(?:\[{_STAMP}\] ?(?:\[(?P<level_ds>{_LEVELS})\] )?(?:\[(?P<logger_ds>[\w.<>/-]+:\d+(?::[\w<>]+)?)\] ?)?)?"
    # DeepSpeed 0.2's logger
    rf"(?:\[(?P<level_old>{_LEVELS}) {_STAMP}\] ?)?"
    # transformers: [LEVEL|file.py:123] time >>
    rf"(?:\[(?P<level_hf>{_LEVELS})\|(?P<logger_hf>[\w.]+:\d+)\] (?:{_STAMP} )?>> ?)?"
    # logging.basicConfig: LEVEL:logger:
    r"(?:(?P<level_b>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<logger_b>[\w.]+):)?"
    # the format of the logging tutorial: "2026-01-02 03:04:05,678 - trainer - INFO - "
    rf"(?:{_STAMP} - (?P<logger_name>[A-Za-z_][\w.]*) - (?P<level_name>{_LEVELS}) - )?"
    # the level first: "INFO 2026-01-02 03:04:05 ", "[INFO] 2026-01-02 03:04:05,678: "; vllm: "INFO 01-02 03:04:05 [file.py:1] "
    rf"(?:\[?(?P<level_first>{_LEVELS})\]?[ :]+{_STAMP}{_ZONE}?[ :|-]+)?"
    rf"(?:(?P<level_vllm>{_LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d \[?(?P<logger_vllm>[\w./-]+:\d+)\] )?"
    # bare stamps: "2026-01-02 03:04:05,678 - INFO - ", "2026-01-02 03:04:05 | INFO | ", "2026-01-02T03:04:05 ", and that of
    # the examples of transformers and accelerate: "01/02/2026 03:04:05 - INFO - __main__ - "; loguru: "... | INFO     | a:b:1 - "
    rf"(?:{_STAMP}{_ZONE}?(?: ?[-|:]? ?(?:\[?(?P<level_iso>{_LEVELS}) *\]? *(?:- (?P<logger_iso>[A-Za-z_][\w.]*) -"
    r"|\| (?P<logger_loguru>[\w.]+:[\w<>]+:\d+) -|[-|:]|\b)))?"
    r" *(?:- )?)?"
    # a rank in words: DeepSpeed's log_dist, and what trainers print
    r"(?:\[(?:[Rr]ank|RANK)[ =:_]?(?P<rank_words>-?\d+)\]:? ?)?"
)
_STAMPS = re.compile(
    ascii_classes(
        rf"{_STAMP}{_ZONE}?|\d{{3,4}} \d\d:\d\d:\d\d(?:\.\d+)?|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+| \d{{4}}\b)?"
    )
)
_ZONED = re.compile(ascii_classes(_ZONE) + "$")
# A bare word with a colon in front of a record is a host only if what follows is a lead-in that no message starts with.
_HOST_TOKEN = ascii_classes(r"^([A-Za-z0-9][\w.-]*): ")
_HOST_STRONG = ascii_classes(
    r"^[A-Za-z0-9][\w.-]*: (?:\[rank\d+\]:|\[default\d+\]:|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3}\] (?:\[[A-Z]+\] \[|torch\.[\w.]+: \[)"
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\] ]+:\d+\]|\[[IWEF](?:\d{3,4} \d\d:\d\d:\d\d\.\d+)? [\w./-]+:\d+\])"
)
# pdsh -w a,b / "Running on the following workers: a,b" (deepspeed/launcher/multinode_runner.py)
_HOST_LIST = re.compile(r"(?:pdsh (?:-\S+ (?:\d+ )?)*-w |Running on the following workers: )([\w.,-]+)")
_NO_HOSTS = {"error", "warning", "info", "debug", "note", "traceback", "exception", "fatal", "hint", "usage"}
_SRUN = ascii_classes(r"^ *\d+: ")


@dataclass(slots=True)
class LeadIns:
    """The lead-ins that one file was found to use so far; names of hosts have 0 for every digit."""

    hosts: set[str] = field(default_factory=set)
    srun: bool = False

    def learn(self, shapes: pl.Series, counts: pl.Series) -> None:
        """Look at the shapes of a block's lines, and how often each occurs, for host names and srun labels."""
        found = shapes.filter(shapes.str.contains(_HOST_STRONG)).str.extract(_HOST_TOKEN).drop_nulls().unique()
        tokens = set(found.to_list())
        labels = {token for token in tokens if token.isdecimal()}  # numbers of tasks, not names of hosts
        self.hosts.update(h for h in tokens - labels if _is_host(h))
        listed = shapes.filter(shapes.str.contains("pdsh |Running on the following workers: ")).to_list()
        for line in listed:
            for names in _HOST_LIST.findall(line):
                self.hosts.update(h for h in names.split(",") if h and h.lower() not in _NO_HOSTS)
        labelled = int(counts.filter(shapes.str.contains(_SRUN)).sum())
        # A label stands on nearly every line; a list of numbered items does not fill a log.
        filled = int(counts.filter(shapes != "").sum())
        self.srun = self.srun or bool(labels) or (labelled >= 2 and labelled > 0.8 * filled)

    def regexes(self) -> tuple[str, str]:
        """(One round of lead-ins with named groups, up to two rounds without groups); each piece may be absent."""
        return _regexes(tuple(sorted(self.hosts, key=len, reverse=True)), self.srun)


@cache
def _regexes(hosts: tuple[str, ...], srun: bool) -> tuple[str, str]:
    names = "|".join(re.escape(h).replace(r"\-", "-") for h in hosts)
    host = f"(?:(?P<host_pdsh>{names}):(?: |$))?" if hosts else ""  # "node1:4711:4711 [0] NCCL INFO" is no lead-in
    task = r"(?: *(?P<task_srun>\d+): )?" if srun else ""
    wrapped = _OUTER + host + task + _MIDDLE
    again = f"(?:{_MIDDLE}(?:{_GLOG}|{_INNER}))?"  # tools wrap what was wrapped before
    once, twice = f"^{wrapped}(?:{_GLOG}|{_INNER})", f"^{wrapped}(?:{_GLOG}|{_INNER}{again})"
    return ascii_classes(once), ascii_classes(_bare(twice))


def _bare(regex: str) -> str:
    """The same expression without names, so that it may stand in a regex twice."""
    return re.sub(r"\(\?P<\w+>", "(?:", regex)


def _is_host(token: str) -> bool:
    """Not a level, a class of exception, or the number of a task (srun --label)."""
    return (
        not token.isdigit() and token.lower() not in _NO_HOSTS and not token.endswith(("Error", "Exception", "Warning"))
    )


KINDS = ("stream", "host", "pid", "task", "local_rank", "rank", "level", "logger")
_PLACES = {
    "time": pl.String,
    "time.at": pl.Int64,
    **{f"{k}.{side}": pl.Int64 for k in KINDS for side in ("at", "size")},
}


def split(forms: pl.DataFrame, leadins: LeadIns) -> pl.DataFrame:
    """Divide records into lead-ins and message.

    Args:
        forms: columns shape, start (byte offset in the shape) and raw (the record, with 0 for every digit).
        leadins: what the file was found to use.

    Returns columns shape, start, prefix, text; the stamp as `time` (with 0 for every digit) and its byte offset
    `time.at` from `start`; for each of KINDS `<kind>.at` and its length in bytes `<kind>.size`; null where there is none.
    """
    regex, twice = leadins.regexes()
    forms = forms.with_columns(prefix=pl.col("raw").str.extract(twice, 0).fill_null(""))
    forms = forms.with_columns(text=pl.col("raw").str.strip_prefix(pl.col("prefix"))).drop("raw")
    compiled = re.compile(regex)
    rows = [{"prefix": prefix, **_read(prefix, compiled)} for prefix in forms["prefix"].unique().to_list()]
    places = pl.DataFrame(rows, schema={"prefix": pl.String, **_PLACES})
    return forms.join(places, on="prefix", how="left", maintain_order="left")


def _read(prefix: str, regex: re.Pattern[str]) -> dict[str, int | str]:
    """Where the lead-ins state what; the innermost statement about the writer wins."""
    found: dict[str, int | str] = {}
    size = _bytes_before(prefix)
    if stamps := list(_STAMPS.finditer(prefix)):
        # Of several stamps the one with a zone, else the innermost: it was made nearest to the writer.
        stamp = next((stamp for stamp in stamps if _ZONED.search(stamp[0])), stamps[-1])
        found |= {"time": stamp[0], "time.at": size(stamp.start())}
    at = 0
    while at < len(prefix) and (match := regex.match(prefix[at:])) and match.end():
        for name, value in match.groupdict().items():
            if value:
                kind, start = name.rsplit("_", 1)[0], size(at + match.start(name))
                found |= {f"{kind}.at": start, f"{kind}.size": len(value.encode())}
        at += match.end()
        if match["logger_c"]:
            break
    return found


def _bytes_before(text: str) -> Callable[[int], int]:
    """Characters -> bytes."""
    return (lambda at: at) if text.isascii() else (lambda at: len(text[:at].encode()))
