"""Checkpoints: read without torch, judged shard against shard, twin against twin."""

from __future__ import annotations

import base64
import io
import json
import math
import pickle
import random
import shutil
import struct
import sys
import tarfile
import time
import tomllib
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
import checkpoint_damage as damage

from postmortem import ingest, query, schema
from postmortem.parsers import _values, checkpoint_tag, dcp, safetensors, torch_checkpoint
from postmortem.parsers._torch_file import LEGACY
from postmortem.records import Batch, Issue, Source
from postmortem.store import Store


def rows(parser, path: Path, name: str = "c/t/x.pt", **options):
    """(table -> rows, issues) of one file."""
    source = Source("run", name, path, parser.FORMAT, path.stat().st_size, "d", options=options)
    tables: dict[str, list] = {}
    issues = []
    for item in parser.parse(source):
        if isinstance(item, Issue):
            issues.append(item)
        else:
            assert isinstance(item, Batch)
            found = schema.tables()[item.table].conform(item, "run", name)
            tables.setdefault(item.table, []).extend(found.to_pylist())
    return tables, issues


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def tensor(numel: int, kind: str = "FloatStorage", key: str = "0", view: bytes = b"") -> bytes:
    """The opcodes of a flat tensor, as torch.save writes them."""
    identity = b"(" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" + text(key) + text("cpu")
    identity += b"J" + struct.pack("<i", numel) + view + b"tQ"
    size = b"J" + struct.pack("<i", numel) + b"\x85"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + identity + b"K\x00" + size + b"K\x01\x85\x89}tR"


def write_zip(path: Path, value: bytes, storages: dict[str, bytes], **more: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{path.stem}/data.pkl"), b"\x80\x02" + value + b".")
        for key, data in storages.items():
            archive.writestr(zipfile.ZipInfo(f"{path.stem}/data/{key}"), data)
        for name, data in more.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return path


def judged(folder: Path, home: Path) -> dict[str, list]:
    ingest.ingest({"run": folder}, home / "store", jobs=1)
    session = query.Session(Store(home / "store"), ["run"])
    return {name: found for name in damage.FINDINGS if (found := session.rows(name))}


@pytest.mark.parametrize("run", ["corrupt_before", "zero2_gas", "zero3"])
def test_healthy_checkpoints_of_every_stage_pass(shared, tmp_path, run):
    assert judged(shared / "data" / "runs" / run / "checkpoints", tmp_path) == {}


def test_values_equal_those_of_another_reader(shared):
    path = next((shared / "data/runs/zero2_gas/checkpoints").glob("*/*rank_1*optim*"))
    tables, issues = rows(torch_checkpoint, path)
    assert issues == []
    by_path = {row["path"]: row for row in tables["checkpoint_tensor"]}
    with zipfile.ZipFile(path) as archive:
        for row in by_path.values():
            info = archive.getinfo(f"{path.stem}/data/{row['storage']}")
            data = np.frombuffer(archive.read(info), "<f4").astype("f8")
            assert (row["crc32"], row["numel"], row["nan"], row["inf"]) == (info.CRC, len(data), 0, 0)
            assert (row["min"], row["max"], row["zeros"]) == (data.min(), data.max(), (data == 0).sum())
            assert row["l2"] == pytest.approx(np.sqrt((data**2).sum()), rel=1e-6)
            with path.open("rb") as file:
                file.seek(row["offset"])
                assert file.read(row["bytes"]) == data.astype("<f4").tobytes()
    states = {row["key"]: json.loads(row["value"]) for row in tables["checkpoint_state"]}
    assert states["optimizer_state_dict.zero_stage"] == 2
    assert states["optimizer_state_dict.base_optimizer_state.state.0.step"] == 20
    assert states["optimizer_state_dict.base_optimizer_state.param_groups.0.lr"] == 0.001
    assert states["ds_config.bf16.enabled"] is True
    assert {row["name"] for row in tables["checkpoint_parameter"]} >= {"head.bias", "blocks.1.fc.weight"}


def test_twins_part_where_the_truth_says(shared, tmp_path):
    truth = tomllib.loads((shared / "data" / "TRUTH.toml").read_text())["pair"]
    names = [truth["corrupt"]["before"], truth["corrupt"]["after"]]
    row = _twins(shared, tmp_path, *names)
    assert row["twins"]
    assert abs(row["step"] - truth["corrupt"]["first_divergent_step"]) <= 1
    assert (row["shard_ranks"], row["confidence"]) == ([truth["corrupt"]["differing_shard"]], "high")
    assert (row["shards"], row["differing"], row["tag_step"]) == (4, 1, 20)


@pytest.mark.parametrize("pair", ["oom_masked", "control"])
def test_no_divergence_is_claimed_of_others(shared, tmp_path, pair):
    truth = tomllib.loads((shared / "data" / "TRUTH.toml").read_text())["pair"][pair]
    row = _twins(shared, tmp_path, truth["before"], truth["after"])
    assert row["twins"] == (pair == "control")
    assert row["step"] is row["tag"] is row["confidence"] is None


def _twins(shared, tmp_path, before, after):
    for name in (before, after):
        (tmp_path / name).mkdir()
        for part in ("train.log", "ds_config.json", "checkpoints"):
            path = shared / "data" / "runs" / name / part
            if path.is_dir():
                shutil.copytree(path, tmp_path / name / part)
            elif path.exists():
                shutil.copy(path, tmp_path / name / part)
        if not (tmp_path / name / "train.log").exists():
            shutil.copytree(shared / "data" / "runs" / name / "logs", tmp_path / name / "logs")
    ingest.ingest({name: tmp_path / name for name in (before, after)}, tmp_path / "store", jobs=1)
    session = query.Session(Store(tmp_path / "store"), [before, after])
    return session.rows("twin_divergence", before=before, after=after)[0]


def test_damages_are_found_and_nothing_else_is(shared, tmp_path):
    rng = random.Random(7)
    benches = []
    for run in ("corrupt_after", "zero3"):
        (tmp_path / run).mkdir()
        benches.append(damage.Bench(shared / "data/runs" / run / "checkpoints", tmp_path / run))
    trials = [(benches[0], kind) for kind in damage.kinds(benches[0])]
    trials += [
        (benches[1], kind) for kind in (damage.hyperparameter, damage.counter, damage.remove, damage.padding_values)
    ]
    assert [problem for bench, kind in trials if (problem := damage.trial(bench, rng, kind))] == []


def test_every_bit_outside_of_the_data_matters(shared):
    path = next((shared / "data/runs/zero3/checkpoints").glob("*/*rank_0*model_states.pt"))
    whole = path.read_bytes()
    rng = random.Random(3)
    for _ in range(400):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        found = torch_checkpoint._torch_file.read(io.BytesIO(data), len(data), bytes(data[:64]))
        assert found.defects or torch_checkpoint.checksums(io.BytesIO(data), found)


def test_a_truncated_file_gives_what_is_whole(shared, tmp_path):
    path = next((shared / "data/runs/corrupt_after/checkpoints").glob("*20/*rank_1*optim*"))
    whole, _ = rows(torch_checkpoint, path)
    second = next(row for row in whole["checkpoint_tensor"] if row["kind"] == "exp_avg_sq")
    cut = tmp_path / path.name
    cut.write_bytes(path.read_bytes()[: second["offset"] + second["bytes"] // 2])
    tables, issues = rows(torch_checkpoint, cut)
    assert [issue.kind for issue in issues] == ["truncated"]
    kinds = {row["kind"]: row for row in tables["checkpoint_tensor"]}
    assert kinds["exp_avg"]["l2"] == next(r["l2"] for r in whole["checkpoint_tensor"] if r["kind"] == "exp_avg")
    assert kinds["fp32"]["offset"] is None
    assert kinds["fp32"]["numel"] == 12528
    file = tables["checkpoint_file"][0]
    assert (file["status"], file["offset"]) == ("truncated", cut.stat().st_size)
    assert file["recovered_bytes"] == 4 + 50112


def _shard(path: Path, wrapper: str, flat: int, held: int, **groups: bytes) -> dict[str, dict]:
    """An optimizer shard of one group with `flat` master weights and moments of `held` elements, 1, 2, 3, ..."""
    numbers = np.arange(1, held + 1, dtype="<f4").tobytes()
    moments = (
        b"}K\x00}" + text("exp_avg") + tensor(held, key="1") + b"s" + text("exp_avg_sq") + tensor(held, key="2") + b"ss"
    )
    state = b"}" + text(wrapper) + b"}" + text("state") + moments + b"ss"
    name = "fp32_flat_groups" if wrapper == "optimizer_state_dict" else "single_partition_of_fp32_groups"
    state += text(name) + b"](" + tensor(flat) + b"es"
    state += b"".join(text(key) + value + b"s" for key, value in groups.items())
    write_zip(
        path, b"}" + text("optimizer_state_dict") + state + b"s", {"0": numbers[: 4 * flat], "1": numbers, "2": numbers}
    )
    tables, issues = rows(torch_checkpoint, path)
    assert issues == []
    return {row["kind"]: row for row in tables["checkpoint_tensor"]}


def test_padding_of_stages_1_and_2(tmp_path):
    path = tmp_path / "zero_pp_rank_1_mp_rank_00_optim_states.pt"
    stated = {"group_paddings": b"](K\x02e", "zero_stage": b"K\x01"}
    found = _shard(path, "base_optimizer_state", 4, 6, **stated)
    # stage 1 strips the master weights, not the moments; BF16_Optimizer, which states no stage, strips neither
    assert found["fp32"]["padding"] == 0
    moment = found["exp_avg"]
    assert (moment["padding"], moment["padding_filled"]) == (2, 2)
    assert moment["padding_offset"] == moment["offset"] + 4 * 4
    del stated["zero_stage"]
    assert _shard(path, "base_optimizer_state", 6, 6, **stated)["fp32"]["padding"] == 2


@pytest.mark.parametrize(("dp", "padding"), [(0, None), (1, 1), (2, 3)])
def test_padding_of_stage_3_is_what_the_model_states_beside_it_leave(tmp_path, dp, padding):
    # w (4) makes 2 elements on each of 3 ranks: 2, 2, 0; b (1) one on each: 1, 0, 0; v (3) one on each
    shapes = b"](}" + text("w") + b"K\x04\x85s" + text("b") + b"K\x01\x85s" + text("v") + b"K\x03\x85se"
    write_zip(
        tmp_path / f"zero_pp_rank_{dp}_mp_rank_00_model_states.pt", b"}" + text("param_shapes") + shapes + b"s", {}
    )
    path = tmp_path / f"zero_pp_rank_{dp}_mp_rank_00_optim_states.pt"
    found = _shard(path, "optimizer_state_dict", 4, 4, partition_count=b"K\x03")
    assert [row["padding"] for row in found.values()] == [padding] * 3


def test_a_legacy_file(tmp_path):
    data = np.arange(4, dtype="<f4")
    path = tmp_path / "old.pt"
    info = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    head = LEGACY + pickle.dumps(1001, 2) + pickle.dumps(info, 2)
    body = head + b"\x80\x02}" + text("w") + tensor(4, view=b"N") + b"s." + pickle.dumps(["0"], 2)
    path.write_bytes(body + struct.pack("<q", 4) + data.tobytes())
    tables, issues = rows(torch_checkpoint, path)
    assert issues == []
    row = tables["checkpoint_tensor"][0]
    assert (row["path"], row["min"], row["max"], row["zeros"], row["l2"]) == ("w", 0, 3, 1, pytest.approx(14**0.5))
    assert tables["checkpoint_file"][0]["container"] == "legacy"
    path.write_bytes(path.read_bytes()[:-1])
    assert [issue.kind for issue in rows(torch_checkpoint, path)[1]] == ["truncated"]


def test_a_tar_of_early_torch_is_named(tmp_path):
    path = tmp_path / "model.pt"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("sys_info"))
    assert torch_checkpoint.sniff("model.pt", path.read_bytes()[:4096])
    _, issues = rows(torch_checkpoint, path)
    assert len(issues) == 1
    assert "0.1.10" in issues[0].message


def test_quantized_values_have_a_structure(tmp_path):
    # torch.save(torch.quantize_per_tensor(...)): _rebuild_qtensor(storage, offset, size, stride, quantizer, ...)
    one = tensor(4, "QInt8Storage").replace(b"_rebuild_tensor_v2", b"_rebuild_qtensor").replace(b"\x89}tR", b")\x89}tR")
    path = write_zip(tmp_path / "q.pt", b"}" + text("w") + one + b"s", {"0": b"\x01\x02\xff\x00"})
    row = rows(torch_checkpoint, path)[0]["checkpoint_tensor"][0]
    assert (row["dtype"], row["shape"], row["min"]) == ("qint8", [4], None)
    assert row["content"] is not None


def test_values_of_every_dtype():
    halves = np.array([1, -2, np.nan, np.inf, 0], "<f2")
    found = _values.statistics(io.BytesIO(halves.tobytes()), 0, 10, "float16")
    assert (found.nan, found.inf, found.zeros, found.min, found.max) == (1, 1, 1, -2, 1)
    # 0x3f80 is 1.0 in bfloat16, 0xff80 minus infinity, 0x7fc0 NaN
    found = _values.statistics(io.BytesIO(struct.pack("<3H", 0x3F80, 0xFF80, 0x7FC0)), 0, 6, "bfloat16")
    assert (found.nan, found.inf, found.max, found.finite) == (1, 1, 1.0, 1)
    # OCP 8-bit Floating Point Specification: largest e4m3 is 448 (0x7e), 0x7f NaN; largest e5m2 57344 (0x7b)
    assert _values.statistics(io.BytesIO(b"\x7e\x7f\xfe"), 0, 3, "float8_e4m3fn").max == 448
    found = _values.statistics(io.BytesIO(b"\x7b\x7c\x7d\x01"), 0, 4, "float8_e5m2")
    assert (found.max, found.inf, found.nan, found.min) == (57344, 1, 1, 2.0**-16)
    assert _values.statistics(io.BytesIO(struct.pack("<2q", -5, 7)), 0, 16, "int64").total == 2
    tiny = np.full(1000, 1e-30, "<f4")
    assert _values.statistics(io.BytesIO(tiny.tobytes()), 0, 4000, "float32").l2 == pytest.approx(1e-30 * 1000**0.5)
    big = np.full(1000, 1e30, "<f4")
    assert _values.statistics(io.BytesIO(big.tobytes()), 0, 4000, "float32").l2 == pytest.approx(1e30 * 1000**0.5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=50))
def test_statistics_agree_with_numpy(numbers):
    data = np.array(numbers, "<f4")
    found = _values.statistics(io.BytesIO(data.tobytes()), 0, data.nbytes, "float32")
    finite = data[np.isfinite(data)].astype("f8")
    assert (found.count, found.inf, found.zeros) == (len(data), np.isinf(data).sum(), (data == 0).sum())
    assert found.l2 == pytest.approx(np.sqrt((finite**2).sum()), rel=1e-5)
    assert found.total == pytest.approx(finite.sum(), rel=1e-5, abs=1e-5 * np.abs(finite).sum())


@pytest.mark.parametrize("size", [200, 150_001])
@pytest.mark.parametrize(
    ("dtype", "view"),
    [("float16", "<f2"), ("int16", "<i2"), ("uint16", "<u2"), ("int8", "i1"), ("uint8", "u1"), ("bfloat16", "<u2")],
)
def test_statistics_of_short_types_equal_a_reference(dtype, view, size):
    bits = np.random.default_rng(size).integers(0, 256, size * np.dtype(view).itemsize, np.uint8)
    bits[:40] = 0
    data = bits.view(view)
    with np.errstate(all="ignore"):  # some of the patterns are signaling NaNs
        values = (data.astype("<u4") << 16).view("<f4") if dtype == "bfloat16" else data
        values = values.astype(np.float64)
    found = _values.statistics(io.BytesIO(bits.tobytes()), 0, len(bits), dtype)
    finite = values[np.isfinite(values)]
    assert (found.count, found.nan, found.inf) == (size, np.isnan(values).sum(), np.isinf(values).sum())
    assert (found.zeros, found.min, found.max) == ((values == 0).sum(), finite.min(), finite.max())
    assert found.total == pytest.approx(math.fsum(finite), rel=1e-12)
    assert found.l2 == pytest.approx(math.sqrt(math.fsum(finite**2)), rel=1e-12)


def test_bits_of_master_weights_round_to_nearest_even():
    # 1 + 2^-8 lies half way between two bfloat16 values and goes to the even one, 1.0 (0x3f80);
    # 1 + 3 * 2^-8 goes up to 1 + 2^-6 (0x3f82).
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8], "<f4").tobytes()
    assert _values.bit_sums(io.BytesIO(values), 0, 8, "float32", "bfloat16")[0] == 0x3F80 + 0x3F82
    assert _values.bit_sums(io.BytesIO(values), 0, 8, "float32", "int8") is None


def test_tag_files(tmp_path):
    path = tmp_path / "latest"
    for content, points_to in (("global_step20\n", "global_step20"), ("", None), ("../../etc", None), ("a\nb", None)):
        path.write_text(content)
        tables, _ = rows(checkpoint_tag, path, "c/latest")
        assert tables["checkpoint_file"][0]["points_to"] == points_to
    path.write_text("1000")
    tables, _ = rows(checkpoint_tag, path, "c/latest_checkpointed_iteration.txt")
    assert tables["checkpoint_file"][0]["points_to"] == "iter_0001000"


def test_safetensors(tmp_path):
    path = tmp_path / "model.safetensors"
    header = {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}
    raw = json.dumps(header).encode()
    whole = struct.pack("<Q", len(raw)) + raw + np.array([1, 2, 2], "<f4").tobytes()
    path.write_bytes(whole)
    tables, issues = rows(safetensors, path, "hf/model.safetensors")
    assert issues == []
    row = tables["checkpoint_tensor"][0]
    assert (row["name"], row["l2"], row["offset"]) == ("w", 3.0, 8 + len(raw))
    for bad, kind in ((whole[:-1], "truncated"), (whole[:20], "truncated"), (whole + b"x", "malformed")):
        path.write_bytes(bad)
        assert [issue.kind for issue in rows(safetensors, path)[1]] == [kind]
    overlap = {
        "a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
        "b": {"dtype": "U8", "shape": [8], "data_offsets": [4, 12]},
    }
    raw = json.dumps(overlap).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(12))
    assert [issue.kind for issue in rows(safetensors, path)[1]] == ["hostile"]
    path.write_bytes(struct.pack("<Q", 1 << 60) + b"{" * 100)
    assert [issue.kind for issue in rows(safetensors, path)[1]] == ["hostile"]
    path.write_bytes(struct.pack("<Q", 100_000) + b"[" * 100_000)
    assert [issue.kind for issue in rows(safetensors, path)[1]] == ["malformed"]


def test_distributed_checkpoint_metadata(tmp_path):
    path = tmp_path / ".metadata"
    index = b"ctorch.distributed.checkpoint.metadata\nMetadataIndex\n)\x81}" + text("fqn") + text("w") + b"sb"
    info = (
        b"ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81}("
        + text("relative_path")
        + text("__0_0.distcp")
    )
    info += text("offset") + b"K\x05" + text("length") + b"K\x07ub"
    head = b"\x80\x02ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}"
    path.write_bytes(head + text("storage_data") + b"}" + index + info + b"ssb.")
    tables, issues = rows(dcp, path, "c/.metadata")
    assert issues == []
    row = tables["checkpoint_parameter"][0]
    assert (row["name"], row["file"], row["offset"], row["bytes"]) == ("w", "__0_0.distcp", 5, 7)


# Written by torch 2.13 on two ranks: dcp.save({"w": a bfloat16 DTensor of 3 x 2, Shard(0), "lr": 1e-3}).
DCP_METADATA = (
    r"c-nna+iuf95Ovz52GU4KZ9f1BL@Jcjp;a&92}-Gole9{Uc&b)wd)!^sv5j|Kno3CU5G161>++fW1G7$2r{dx#@9a4<bI#0ut^TZ6t>RP9WRm"
    r"%;9dIEt?&T7Kw$H%7OcNf<_7EfusH9pw=*@m__4+scMK{%okW>N*xG%{a&|FkLYi6mnGl)f!onirc0e{jTrCE|fCOHTLe>{Pol)(boRJEc*?"
    r"7$17gv!n~UZ|Bx+X6C9BYs0APhzd=<N_p#=qSmhK{ci*lomjs$9kZDV5wEoJLr*j$AjMMGjh=1KYn}EKSaE16$q(4RTcaO^j+=hsW~EI(Ovj"
    r"n<WWmL%i~L-&vnzJ+&8CxYPFLv6d+OP6W4OBX^NUDQp6T!X>*S?Cmi;oh)=O>15cF_1-YjdqRbe#`er0S{IzthmeYvFF=S*m9A-0ntl6uAJv"
    r"In2VU`F>HD+m!;sCBo8H?ekSTkGIcoBCkwKNfSPZzfK{J&cj@(9F8NEm9hOs1V5#bHubYGe@MP_KZbR5Al24snWveyUm5l#U?2z`Nf161sLc"
    r"b?yDc7PpVF!8G>4&^!0(>|^g&b)JXDxNe1Y=Ut!A!OmG1DabSR=6o}&Z{|>+8^N5AQa9m&R<_X-aZjs<CyC(KCq~|_c{CeZEy`hvTU=5EuAb"
    r"!aNK3OXwxDQ;$@0|O4Z}T;`Ymv%)7skhI;}m=p{*VNCG5afxVyP&is6F^456>=VG`tMJMJsa$G(D06i=qsX*+EPW9{Dsx{??"
)


def test_metadata_that_torch_wrote(tmp_path):
    path = tmp_path / ".metadata"
    path.write_bytes(zlib.decompress(base64.b85decode(DCP_METADATA)))
    tables, issues = rows(dcp, path, "c/.metadata")
    assert issues == []
    found = {(r["name"], r["file"]): r for r in tables["checkpoint_parameter"]}
    one, two, rate = found["w", "__0_0.distcp"], found["w", "__1_0.distcp"], found["lr", "__1_0.distcp"]
    assert one["dtype"] == two["dtype"] == "bfloat16"
    assert one["shape"] == two["shape"] == [3, 2]
    assert [(r["origin"], r["piece"], r["numel"]) for r in (one, two)] == [([0, 0], [2, 2], 4), ([2, 0], [1, 2], 2)]
    assert (one["offset"], one["bytes"]) == (0, 1577)
    assert (rate["shape"], rate["piece"]) == (None, None)


def test_metadata_of_many_pieces(tmp_path):
    """A thousand ranks have a hundred thousand pieces, which is more than any other pickle may state."""
    path = tmp_path / ".metadata"
    pieces = []
    for i in range(60_000):
        index = b"ctorch.distributed.checkpoint.metadata\nMetadataIndex\n)\x81}(" + text("fqn") + text(f"w{i % 600}")
        index += text("offset") + b"K" + bytes([i // 600]) + b"\x85" + text("index") + b"Nub"
        info = b"ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81}("
        info += text("relative_path") + text("__0_0.distcp") + text("offset") + b"K\x05" + text("length") + b"K\x07"
        pieces.append(index + info + text("transform_descriptors") + b"Nub")
    head = b"\x80\x02ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}"
    path.write_bytes(head + text("storage_data") + b"}(" + b"".join(pieces) + b"usb.")
    tables, issues = rows(dcp, path, "c/.metadata")
    assert issues == []
    assert len(tables["checkpoint_parameter"]) == 60_000
    assert {row["origin"] is None for row in tables["checkpoint_parameter"]} == {True}  # no shape is stated


def test_metadata_beyond_the_limits_is_no_damage(tmp_path):
    path = tmp_path / ".metadata"
    path.write_bytes(b"\x80\x02](" + b"N" * 2_000_000 + b"e.")
    tables, issues = rows(dcp, path, "c/.metadata")
    assert [issue.kind for issue in issues] == ["limit"]
    assert tables["checkpoint_file"][0]["status"] == "complete"


def test_items_of_a_distributed_checkpoint(tmp_path):
    one = write_zip(tmp_path / "archive.pt", tensor(4), {"0": np.arange(4, dtype="<f4").tobytes()}).read_bytes()
    two = write_zip(tmp_path / "archive.pt", tensor(2), {"0": np.array([3, 4], "<f4").tobytes()}).read_bytes()
    path = tmp_path / "__0_0.distcp"
    path.write_bytes(one + two)
    tables, issues = rows(dcp, path, "c/__0_0.distcp")
    assert issues == []
    assert [(row["path"], row["max"], row["l2"]) for row in tables["checkpoint_tensor"]][1] == (str(len(one)), 4, 5)
    place = tables["checkpoint_tensor"][1]["offset"]
    bad = bytearray(one + two)
    bad[place] ^= 1
    path.write_bytes(bad)
    tables, _ = rows(dcp, path, "c/__0_0.distcp")
    file = tables["checkpoint_file"][0]
    assert (file["status"], file["offset"], file["end"]) == ("damaged", place, place + 8)
    path.write_bytes((one + two)[:-9])
    assert rows(dcp, path, "c/__0_0.distcp")[0]["checkpoint_file"][0]["status"] == "truncated"


def _overlapping(path: Path) -> None:
    write_zip(path, tensor(4), {"0": bytes(16), "1": bytes(16)})
    data = bytearray(path.read_bytes())
    first, second = (data.rfind(b"%s/data/%d" % (path.stem.encode(), i)) - 46 for i in (0, 1))
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    path.write_bytes(data)


def _lying(path: Path) -> None:
    write_zip(path, tensor(4), {"0": bytes(16)})
    data = bytearray(path.read_bytes())
    entry = data.rfind(b"%s/data/0" % path.stem.encode()) - 46
    data[entry + 20 : entry + 28] = struct.pack("<2I", 1 << 31, 1 << 31)
    path.write_bytes(data)


def _compressed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02](" + b"N" * 30_000_000 + b"e.")


HOSTILE_FILES = {
    "code": lambda path: write_zip(path, b"cos\nsystem\n(X\x02\x00\x00\x00idtR", {}),
    "long list": lambda path: write_zip(path, b"](" + b"N" * 5_000_000 + b"e", {}),
    "huge list": lambda path: write_zip(path, b"](" + b"N" * 80_000_000 + b"e", {}),
    "nesting": lambda path: write_zip(path, b"]" * 100_000 + b"a" * 99_999, {}),
    "laughs": lambda path: write_zip(path, b"]q\x00" + b"0](h\x00h\x00eq\x00" * 100 + b"0h\x00", {}),
    "overlap": _overlapping,
    "lie": _lying,
    "bomb": _compressed,
    "escape": lambda path: write_zip(path, b"N", {}, **{f"{path.stem}/../../evil": b"x"}),
    "absolute": lambda path: write_zip(path, b"N", {}, **{"/etc/passwd": b"x"}),
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_hostile_files_are_refused_in_a_sentence(tmp_path, name):
    path = tmp_path / "bad.pt"
    HOSTILE_FILES[name](path)
    start = time.process_time()
    tables, issues = rows(torch_checkpoint, path)
    assert time.process_time() - start < 5  # a guard; benchmarks/bench_hostile.py measures
    assert issues[0].kind == "hostile"
    assert issues[0].message.count(".") >= 1
    assert tables["checkpoint_file"][0]["status"] == "refused"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_bytes_give_rows_or_issues(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "x.pt"
    base = write_zip(path, b"}" + text("w") + tensor(4) + b"s", {"0": bytes(16)}).read_bytes()
    raw = bytearray(base)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    for content in (bytes(raw), data.draw(st.binary(max_size=300)), LEGACY + bytes(raw)):
        path.write_bytes(content or b"x")
        for parser in (torch_checkpoint, safetensors, dcp, checkpoint_tag):
            tables, _ = rows(parser, path)
            assert len(tables["checkpoint_file"]) == 1


def test_a_large_file_is_read_for_its_structure_only(tmp_path):
    path = write_zip(tmp_path / "big.pt", b"}" + text("w") + tensor(5 << 20) + b"s", {"0": bytes(20 << 20)})
    tables, issues = rows(torch_checkpoint, path)
    assert issues == []
    assert tables["checkpoint_file"][0]["checked"] == "structure"
    assert tables["checkpoint_tensor"][0]["nan"] is None
    tables, _ = rows(torch_checkpoint, path, checkpoints="deep")
    assert tables["checkpoint_file"][0]["checked"] == "values"
    assert tables["checkpoint_tensor"][0]["zeros"] == 5 << 20
