"""Files of trainers and monitors: each value is the one that stands in the file."""

import json

from postmortem import schema
from postmortem.parsers import (
    csv_monitor,
    ds_config,
    error_json,
    metrics_csv,
    nvidia_smi,
    parsers,
    trainer_log,
    trainer_state,
)
from postmortem.records import Batch, Issue, Source


def read(parser, tmp_path, data: bytes, name: str):
    file = tmp_path / "file"
    file.write_bytes(data)
    assert parser.sniff(name, data[:65536]), name
    others = [
        n
        for n, p in parsers().items()
        if p is not parser and not getattr(p, "FALLBACK", False) and p.sniff(name, data[:65536])
    ]
    assert others == [], name
    source = Source("run", name, file, parser.FORMAT, len(data), "0", None, 1)
    rows, issues = {}, []
    for item in parser.parse(source):
        if isinstance(item, Issue):
            issues.append(item)
        else:
            assert isinstance(item, Batch)
            rows.setdefault(item.table, []).extend(schema.tables()[item.table].conform(item, "run", name).to_pylist())
    return rows, issues


def test_trainer_state_keeps_nan_and_every_digit(tmp_path):
    state = b'{"best_metric": null, "epoch": 1.0, "global_step": 2, "max_steps": 9, "log_history": [{"epoch": 0.1, "loss": 2.3130001, "grad_norm": NaN, "step": 1}, {"loss": 1.5, "step": 2}]}'
    rows, issues = read(trainer_state, tmp_path, state, "checkpoint-2/trainer_state.json")
    got = {(r["step"], r["name"]): r["value"] for r in rows["metric"]}
    assert got[1, "loss"] == 2.3130001
    assert got[1, "grad_norm"] != got[1, "grad_norm"]
    assert got[2, "total_steps"] == 9
    assert issues == []


def test_trainer_log_lines(tmp_path):
    data = b'{"current_steps": 5, "total_steps": 10, "loss": 0.5, "elapsed_time": "0:00:32"}\nbroken\n{"current_steps": 6, "loss": 0.25}\n'
    rows, issues = read(trainer_log, tmp_path, data, "trainer_log.jsonl")
    assert [(r["line"], r["step"], r["name"], r["value"]) for r in rows["metric"]] == [
        (1, 5, "total_steps", 10.0), (1, 5, "loss", 0.5), (1, 5, "elapsed", 32.0), (3, 6, "loss", 0.25),
    ]  # fmt: skip
    assert [i.dropped for i in issues] == [1]


def test_lightning_metrics_have_empty_cells(tmp_path):
    data = b"epoch,step,train_loss,val_loss\n0,10,0.5,\n0,20,,0.25\nbad\n"
    rows, issues = read(metrics_csv, tmp_path, data, "lightning_logs/version_0/metrics.csv")
    assert [(r["step"], r["name"], r["value"]) for r in rows["metric"] if r["name"] != "epoch"] == [
        (10, "loss", 0.5),
        (20, "val_loss", 0.25),
    ]
    assert [i.dropped for i in issues] == [1]


def test_of_two_columns_of_the_training_loss_the_one_of_single_steps_counts(tmp_path):
    data = b"step,train/loss_epoch,train/loss_step,loss_of_router\n9,,0.5,1\n9,0.7,,\n"
    rows, _ = read(metrics_csv, tmp_path, data, "metrics.csv")
    assert [(r["name"], r["value"]) for r in rows["metric"]] == [
        ("loss", 0.5), ("loss_of_router", 1.0), ("train_loss_epoch", 0.7),
    ]  # fmt: skip


def test_csv_monitor_counts_restarts_and_scales_milliseconds(tmp_path):
    data = b"step,lr\n32,0.001\n64,0.002\nstep,lr\n32,0.001\n"
    rows, _ = read(csv_monitor, tmp_path, data, "job/Train_Samples_lr.csv")
    assert [(r["attempt"], r["samples"], r["name"], r["value"]) for r in rows["metric"]] == [
        (0, 32, "lr", 0.001), (0, 64, "lr", 0.002), (1, 32, "lr", 0.001),
    ]  # fmt: skip
    data = b"step,elapsed_time_ms_backward\n32,1.5\n"
    rows, _ = read(csv_monitor, tmp_path, data, "job/Train_Samples_elapsed_time_ms_backward.csv")
    assert [(r["samples"], r["phase"], r["duration"], r["rank"]) for r in rows["phase_time"]] == [
        (32, "bwd", 1_500_000, 0)
    ]


def test_ds_config_is_flattened_and_secrets_stay_out(tmp_path):
    config = {"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 2}, "wandb": {"api_key": "abc"}}
    rows, _ = read(ds_config, tmp_path, json.dumps(config).encode(), "ds_config.json")
    assert {r["key"]: r["value"] for r in rows["config"]} == {
        "train_micro_batch_size_per_gpu": "8", "zero_optimization.stage": "2", "wandb.api_key": '"(secret)"',
    }  # fmt: skip


def test_error_json_is_an_exception(tmp_path):
    data = b'{"message": {"message": "ValueError: bad token", "extraInfo": {"py_callstack": "...", "timestamp": "1796194199"}}}'
    rows, _ = read(error_json, tmp_path, data, "x/attempt_2/1/error.json")
    (row,) = rows["event"]
    assert (row["name"], row["message"], row["role"], row["time"], row["local_rank"], row["attempt"]) == (
        "ValueError", "bad token", "root", 1796194199 * 10**9, 1, 2,
    )  # fmt: skip
    assert row["code"] is None
    data = b'{"message": {"message": "ValueError: bad token", "extraInfo": {}, "errorCode": 17}}'
    assert [r["code"] for r in read(error_json, tmp_path, data, "error.json")[0]["event"]] == [17]


def test_nvidia_smi_query_with_units(tmp_path):
    data = (
        b"timestamp, index, utilization.gpu [%], memory.used [MiB], clocks_event_reasons.hw_thermal_slowdown\n"
        b"2020/11/12 13:48:11.412, 3, 99 %, 30994 MiB, Active\n2020/11/12 13:48:12.412, 3, [N/A], [Not Supported], Not Active\n"
    )
    rows, issues = read(nvidia_smi, tmp_path, data, "smi.csv")
    assert [(r["device"], r["kind"], r["bytes"], r["time"]) for r in rows["memory"]] == [
        ("3", "device_used", 30994 << 20, 1605188891412000000)
    ]
    assert [(r["name"], r["value"]) for r in rows["metric"]] == [("device_utilization_gpu", 99.0)]
    assert [(r["kind"], r["name"]) for r in rows["event"]] == [("throttle", "hw_thermal_slowdown")]
    assert issues == []


def test_nvidia_smi_says_why_clocks_are_low(tmp_path):
    """Bits as in nvml.h: 0x1 idle, 0x4 power cap, 0x8 slowdown, 0x40 heat; -o DT and -s v of dmon."""
    query = (
        b"timestamp, index, pci.bus_id, driver_version, clocks_event_reasons.active\n"
        b"2026/03/28 10:00:00.000, 0, 00000000:1B:00.0, 535.104.05, 0x0000000000000001\n"
        b"2026/03/28 10:00:00.000, 1, 00000000:3B:00.0, 535.104.05, 0x0000000000000048\n"
    )
    rows, issues = read(nvidia_smi, tmp_path, query, "smi.csv")
    assert [(r["name"], json.loads(r["detail"])) for r in rows["event"]] == [
        ("hw_slowdown", {"device": "1", "pci": "00000000:3B:00.0"}),
        ("hw_thermal_slowdown", {"device": "1", "pci": "00000000:3B:00.0"}),
    ]
    assert [(r["name"], r["value"]) for r in rows["environment"]] == [("driver", "535.104.05")]
    assert not rows.get("metric")  # an address begins with digits, and is no number
    assert issues == []
    dmon = (
        b"#Date       Time        gpu    pwr  pviol  tviol\n#YYYYMMDD   HH:MM:SS    Idx      W      %   bool\n"
        b" 20260328   10:00:00      0    400      0      0\n 20260328   10:00:00      1    280      0      1\n"
    )
    rows, issues = read(nvidia_smi, tmp_path, dmon, "dmon.txt")
    assert [(r["name"], json.loads(r["detail"])) for r in rows["event"]] == [("thermal_violation", {"device": "1"})]
    assert issues == []


def test_nvidia_smi_dmon_with_missing_values(tmp_path):
    data = b"# gpu    pwr  gtemp     sm    mem     fb\n# Idx      W      C      %      %     MB\n    0     60     35      -      0   1024\n"
    rows, _ = read(nvidia_smi, tmp_path, data, "dmon.txt")
    assert [(r["device"], r["bytes"]) for r in rows["memory"]] == [("0", 1024 << 20)]
    assert {r["name"]: r["value"] for r in rows["metric"]} == {
        "device_pwr": 60.0,
        "device_gtemp": 35.0,
        "device_mem": 0.0,
    }
