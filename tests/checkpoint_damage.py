"""Damages real checkpoints in known ways, and says which files a diagnosis has to name for each."""

from __future__ import annotations

import os
import random
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from postmortem import ingest, query
from postmortem.store import Store

FINDINGS = sorted(
    name for name, q in query.queries().items() if q.folder == "findings" and name.startswith("checkpoint_")
)
# Hints that a copy's times or a deliberate choice can raise; they never stand for a named defect.
HINTS = {"checkpoint_times", "checkpoint_norm_outlier"}


@dataclass
class Damage:
    """What was done: finding -> the sources it must name. Sources in `also` may be named by any finding."""

    kind: str
    expect: dict[str, set[str]]
    also: set[str] = field(default_factory=set)

    @property
    def named(self) -> set[str]:
        return set().union(*self.expect.values())


def patch(path: Path, record: str, offset: int, new: bytes) -> None:
    """Overwrite bytes of a record and mend every checksum, as if torch.save had written the new values."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        directory = archive.start_dir
    spans = {info.filename.partition("/")[2]: (info, *_span(data, info)) for info in infos}
    _, start, _ = spans[record]
    data[start + offset : start + offset + len(new)] = new
    _mend(data, directory, spans, record)
    combined = 0
    for name, (_, begin, size) in spans.items():
        if name != ".data/serialization_id" and size:
            crc = zlib.crc32(data[begin : begin + size])
            combined ^= (crc + 0x9E3779B9 + (combined << 6) + (combined >> 2)) & 0xFFFFFFFFFFFFFFFF
    begin = spans[".data/serialization_id"][1]
    data[begin + 20 : begin + 40] = b"%020d" % combined
    _mend(data, directory, spans, ".data/serialization_id")
    path.write_bytes(data)


def _span(data: bytes, info: zipfile.ZipInfo) -> tuple[int, int]:
    names, extras = struct.unpack_from("<2H", data, info.header_offset + 26)
    return info.header_offset + 30 + names + extras, info.file_size


def _mend(data: bytearray, directory: int, spans: dict, record: str) -> None:
    info, begin, size = spans[record]
    crc = struct.pack("<I", zlib.crc32(data[begin : begin + size]))
    if info.flag_bits & 8:
        data[begin + size + 4 : begin + size + 8] = crc
    entry = data.find(info.filename.encode(), directory) - 46
    data[entry + 16 : entry + 20] = crc


def clip_last(bench: Bench) -> None:
    """Give the samples' model, all of whose parameters divide evenly, one element of padding, which is zero.

    In all model states of a stage-3 bench of two ranks, head.bias has 511 elements instead of 512.
    """
    for path in bench.shards("*model_states"):
        with zipfile.ZipFile(path) as archive:
            data = archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))
        match = re.search(rb"head\.bias(?:q.|r....)(?:h.|j....)M\x00\x02", data, re.DOTALL)
        assert match, path
        patch(path, "data.pkl", match.end() - 2, struct.pack("<H", 511))
    for path in bench.shards("*rank_1_*optim_states"):
        for record, size in _flat(path).items():
            patch(path, record, size - 4, bytes(4))


def _flat(path: Path) -> dict[str, int]:
    """Sizes of the records of first moments, second moments and master weights of a shard with one group, B."""
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename.partition("/")[2]: info.file_size for info in archive.infolist()}
    return {name: size for name, size in sizes.items() if name.startswith("data/") and size > 64}


def pickled(path: Path, key: str, opcode: bytes) -> int:
    """Offset in data.pkl of the value behind a key, which has to be written with `opcode`."""
    with zipfile.ZipFile(path) as archive:
        data = archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))
    text = b"X" + struct.pack("<I", len(key)) + key.encode()
    match = re.search(re.escape(text) + rb"(?:q.|r....)(?:\]q.|\]r....)?" + re.escape(opcode), data, re.DOTALL)
    assert match, (path, key)
    return match.end()


class Bench:
    """A folder of checkpoints that is damaged, judged and mended again."""

    def __init__(self, source: Path, home: Path) -> None:
        self.folder = home / "run"
        self.store = home / "store"
        shutil.copytree(source, self.folder)
        for path in self.folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        order = {tag: place for place, tag in enumerate(self.tags)}
        if not self.shards("mp_rank_*"):
            clip_last(self)
        for path in self.shards():
            os.utime(path, (1_700_000_000 + 100 * order[path.parent.name],) * 2)

    @property
    def tags(self) -> list[str]:
        found = [path.name for path in self.folder.iterdir() if path.is_dir()]
        return sorted(found, key=lambda tag: int(re.sub(r"\D", "", tag) or 0))

    def shards(self, pattern: str = "*") -> list[Path]:
        return sorted(path for path in self.folder.glob(f"*/{pattern}.pt"))

    def name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def named(self) -> dict[str, set[str]]:
        """Finding -> sources it names."""
        ingest.ingest({"run": self.folder}, self.store, jobs=1)
        session = query.Session(Store(self.store), ["run"])
        rows = {name: session.rows(name) for name in FINDINGS}
        return {name: {row["source"] for row in found} for name, found in rows.items() if found}

    @contextmanager
    def mended(self, paths: list[Path]) -> Iterator[None]:
        """Put `paths` back as they were when the block ends."""
        kept = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}
        try:
            yield
        finally:
            for path, (data, time) in kept.items():
                path.write_bytes(data)
                os.utime(path, ns=(time, time))


def judge(damage: Damage, named: dict[str, set[str]]) -> str | None:
    """What is wrong with a diagnosis of a damage, or None."""
    for finding, sources in damage.expect.items():
        if not sources <= named.get(finding, set()):
            return f"{damage.kind}: {finding} named {named.get(finding)}, not {sources}; all: {named}"
    for finding, sources in named.items():
        stray = sources - damage.named - damage.also
        if stray and finding not in HINTS:
            return f"{damage.kind}: {finding} named {stray} falsely"
    return None


def flip(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = rng.choice(bench.shards())

    def apply() -> Damage:
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        return Damage("flip", {"checkpoint_damaged": {bench.name(path)}})

    return [path], apply


def truncate(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = rng.choice(bench.shards())

    def apply() -> Damage:
        path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])
        return Damage("truncate", {"checkpoint_damaged": {bench.name(path)}})

    return [path], apply


def overwrite(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = rng.choice(bench.shards())

    def apply() -> Damage:
        path.write_bytes(rng.choice([b"\0" * path.stat().st_size, b"Not a checkpoint.\n" * 9, b"\x7fELF" * 99]))
        return Damage("overwrite", {"checkpoint_damaged": {bench.name(path)}})

    return [path], apply


def remove(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = rng.choice(bench.shards())

    def apply() -> Damage:
        path.unlink()
        return Damage("remove", {"checkpoint_missing": {path.parent.name}})

    return [path], apply


def swap_ranks(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    tag = rng.choice(bench.tags)
    one, two = rng.sample([p for p in bench.shards("*optim_states") if p.parent.name == tag], 2)

    def apply() -> Damage:
        first, second = one.read_bytes(), two.read_bytes()
        one.write_bytes(second)
        two.write_bytes(first)
        return Damage("swap_ranks", {"checkpoint_misplaced": {bench.name(one), bench.name(two)}}, _models(bench, tag))

    return [one, two], apply


def _models(bench: Bench, tag: str) -> set[str]:
    # A shard whose values are not those the model was rounded from makes the model file disagree, too.
    return {bench.name(p) for p in bench.shards("*model_states") if p.parent.name == tag} | {tag}


def swap_tags(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    one_tag, two_tag = rng.sample(bench.tags, 2) if len(bench.tags) > 1 else (bench.tags[0],) * 2
    one = rng.choice([path for path in bench.shards() if path.parent.name == one_tag])
    two = bench.folder / two_tag / one.name

    def apply() -> Damage:
        first, second = one.read_bytes(), two.read_bytes()
        one.write_bytes(second)
        two.write_bytes(first)
        names = {bench.name(one), bench.name(two)}
        also = _models(bench, one_tag) | _models(bench, two_tag)
        return Damage("swap_tags", {"checkpoint_steps": names}, also)

    return [one, two], apply


def latest(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = bench.folder / "latest"
    older = bench.tags[:-1]

    def apply() -> Damage:
        stale = older and rng.random() < 0.5
        path.write_text(rng.choice(older) if stale else f"global_step{rng.randrange(10**6, 10**7)}")
        return Damage("latest", {"checkpoint_latest_stale" if stale else "checkpoint_latest_missing": {"latest"}})

    return [path], apply


def not_finite(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = rng.choice(bench.shards("*optim_states"))

    def apply() -> Damage:
        sizes = _flat(path)
        record = rng.choice([*sizes])
        value = rng.choice([float("nan"), float("inf"), float("-inf")])
        # The last element may be padding, see `padding_values`.
        patch(path, record, 4 * rng.randrange(sizes[record] // 4 - 1), struct.pack("<f", value))
        return Damage("not_finite", {"checkpoint_not_finite": {bench.name(path)}}, _models(bench, path.parent.name))

    return [path], apply


def hyperparameter(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = rng.choice(bench.shards("*optim_states"))

    def apply() -> Damage:
        key = rng.choice(["lr", "eps", "weight_decay"])
        patch(path, "data.pkl", pickled(path, key, b"G"), struct.pack(">d", rng.random()))
        peers = [p for p in bench.shards("*optim_states") if p.parent == path.parent]
        also = {bench.name(p) for p in peers} if len(peers) == 2 else set()
        return Damage("hyperparameter", {"checkpoint_disagreement": {bench.name(path)}}, also)

    return [path], apply


def padding(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = rng.choice(bench.shards("*optim_states"))

    def apply() -> Damage:
        patch(path, "data.pkl", pickled(path, "group_paddings", b"K"), bytes([rng.randrange(1, 256)]))
        peers = [p for p in bench.shards("*optim_states") if p.parent == path.parent]
        also = {bench.name(p) for p in peers} if len(peers) == 2 else set()
        return Damage("padding", {"checkpoint_partition": {bench.name(path)}}, also)

    return [path], apply


def padding_values(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    """A value in the padding of a moment, which no gradient ever reaches (see `clip_last`)."""
    path = rng.choice(bench.shards("*rank_1_*optim_states"))

    def apply() -> Damage:
        record, size = rng.choice([*_flat(path).items()][:2])
        value = rng.choice([1e-9, -0.5, float("nan"), float("inf")])
        patch(path, record, size - 4, struct.pack("<f", value))
        return Damage("padding_values", {"checkpoint_padding": {bench.name(path)}})

    return [path], apply


def counter(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    path = rng.choice(bench.shards("*model_states"))

    def apply() -> Damage:
        # The step numbers of the samples fit one or two bytes; only the low byte is changed.
        try:
            where = pickled(path, "global_steps", b"K")
        except AssertionError:
            where = pickled(path, "global_steps", b"M")
        with zipfile.ZipFile(path) as archive:
            data = archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))
        patch(path, "data.pkl", where, bytes([(data[where] + rng.randrange(1, 256)) % 256]))
        tag = path.parent.name
        return Damage(
            "counter", {"checkpoint_steps": {bench.name(path)}}, _models(bench, tag) | _optimizers(bench, tag)
        )

    return [path], apply


def _optimizers(bench: Bench, tag: str) -> set[str]:
    return {bench.name(p) for p in bench.shards("*optim_states") if p.parent.name == tag}


def master(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    """Replica altered: the 16-bit weights are no longer the rounded master weights."""
    path = rng.choice(bench.shards("mp_rank_*"))

    def apply() -> Damage:
        with zipfile.ZipFile(path) as archive:
            size = next(info.file_size for info in archive.infolist() if info.filename.endswith("/data/0"))
        place = 2 * rng.randrange(size // 2)
        with zipfile.ZipFile(path) as archive:
            old = archive.read(next(name for name in archive.namelist() if name.endswith("/data/0")))[place : place + 2]
        patch(path, "data/0", place, bytes([old[0] ^ 1 << rng.randrange(8), old[1]]))
        return Damage("master", {"checkpoint_master": {bench.name(path)}})

    return [path], apply


def replica(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    """A copy of the model on a second tensor-parallel rank, one layer norm of which is altered."""
    one = rng.choice(bench.shards("mp_rank_00_model_states"))
    tag = one.parent.name

    def apply() -> Damage:
        for path in [p for p in bench.shards("*mp_rank_00*") if p.parent.name == tag]:
            twin = path.with_name(path.name.replace("mp_rank_00", "mp_rank_01"))
            twin.write_bytes(path.read_bytes().replace(b"mp_rank_00", b"mp_rank_01"))
            if "model_states" in path.name:
                for file in (path, twin):
                    patch(file, "data.pkl", pickled(file, "mp_world_size", b"K"), b"\x02")
        other = one.with_name("mp_rank_01_model_states.pt")
        offset = 2 * rng.choice([16384, 16416, 24800, 24832])  # layer norms of the samples' model
        patch(other, "data/0", offset + 2 * rng.randrange(32), struct.pack("<H", 0x3D01))
        names = {bench.name(one), bench.name(other)}
        return Damage("replica", {"checkpoint_replica": names}, _models(bench, tag) | _optimizers(bench, tag) | names)

    return [one], apply


def scaled(bench: Bench, rng: random.Random) -> tuple[list[Path], Callable[[], Damage]]:
    """The first moments of one of four shards thirty times as large as they were, in the last checkpoint."""
    path = rng.choice([p for p in bench.shards("*optim_states") if p.parent.name == bench.tags[-1]])

    def apply() -> Damage:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if info.file_size > 64]
            name = next(n for n in names if "/data/" in n)  # base_optimizer_state comes before the master weights
            values = struct.unpack(f"<{archive.getinfo(name).file_size // 4}f", archive.read(name))
        record = name.partition("/")[2]
        patch(path, record, 0, struct.pack(f"<{len(values)}f", *(30 * value for value in values)))
        return Damage("scaled", {"checkpoint_norm_outlier": {bench.name(path)}})

    return [path], apply


GENERAL = [flip, truncate, overwrite, remove, swap_ranks, latest, not_finite, hyperparameter, counter]
STAGE_12 = [padding, master, replica]
STAGE_3 = [padding_values]
TAGGED = [swap_tags, scaled]


def trial(bench: Bench, rng: random.Random, kind: Callable) -> str | None:
    """One damage, judged; the bench is as before afterwards."""
    paths, apply = kind(bench, rng)
    before = set(bench.folder.rglob("*"))
    kept = [*paths, *(bench.shards() if kind is replica else [])]
    with bench.mended(kept):
        damage = apply()
        problem = judge(damage, bench.named())
    for path in set(bench.folder.rglob("*")) - before:
        path.unlink()
    return problem


def kinds(bench: Bench) -> list[Callable]:
    """The kinds of damage that make sense for a bench."""
    plain = bool(bench.shards("mp_rank_*"))
    return GENERAL + (STAGE_12 if plain else STAGE_3) + (TAGGED if len(bench.tags) > 1 else [])
