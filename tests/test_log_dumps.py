"""Tables and dumps that DeepSpeed and trainers print: their numbers and settings, as rows."""

import json

import pytest
from test_log_lines import read

# DeepSpeed prints one line per value; the numbers are made up, the words are those of deepspeed/profiling and
# deepspeed/utils/comms_logging.py.
PROFILE = """
-------------------------- DeepSpeed Flops Profiler --------------------------
Profile Summary at step 5:
Notations:
data parallel size (dp_size), model parallel size(mp_size),

world size:                                                             2
params per GPU:                                                         336.25 M
params of model = params per GPU * mp_size:                             672.50 M
fwd flops per GPU:                                                      6.5 T
fwd latency:                                                            76.5 ms
fwd FLOPS per GPU = fwd flops per GPU / fwd latency:                    81.5 TFLOPS
step latency:                                                           34.5 us
samples/second:                                                         69.5
FLOPS per GPU = 3 * fwd flops per GPU / iter latency:                   102.5 TFLOPS

----------------------------- Aggregated Profile per GPU -----------------------------
"""
PLAIN = """
Comm. Op            Message Size        Count               Total Latency(ms)   Avg Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)
all_reduce
                    1.5 MB              20                  250.00              12.50               1.25                1.50
                    0 B                 3                   24.00               8.00                0.00                0.00
broadcast
                    16.0 KB             2                   1.00                0.50                1.00                1.50
"""
STRAGGLER = """
_______________________________
Breakdown with straggler effect
-------------------------------
Comm. Op            Message Size        Count               Total comm lat(ms)  Total straggler(ms) Avg comm lat(ms)    Avg straggler(ms)
all_reduce
                    1.5 MB              20                  250.00              125.00              12.50               6.25
"""


def metrics(tmp_path, text):
    rows, issues = read(tmp_path, text.encode())
    assert not issues
    return {(r["name"], r["text"]): (r["step"], r["value"]) for r in rows["metric"]}


def test_flops_profile(tmp_path):
    assert metrics(tmp_path, PROFILE) == {
        ("profile_params", "336.25 M"): (5, 336.25e6),
        ("profile_fwd_flops", "6.5 T"): (5, 6.5e12),
        ("profile_fwd_time", "76.5 ms"): (5, pytest.approx(0.0765)),
        ("profile_fwd_flops_per_second", "81.5 TFLOPS"): (5, 81.5e12),
        ("profile_step_time", "34.5 us"): (5, pytest.approx(34.5e-6)),
        ("profile_samples_per_second", "69.5"): (5, 69.5),
        ("profile_flops_per_second", "102.5 TFLOPS"): (5, 102.5e12),
    }


def test_comm_tables(tmp_path):
    found = metrics(tmp_path, PLAIN)
    assert len(found) == 15
    assert found["comm_all_reduce_count", "1.5 MB"] == (None, 20)
    assert found["comm_all_reduce_total_time", "1.5 MB"] == (None, 0.25)
    assert found["comm_all_reduce_mean_time", "0 B"] == (None, 0.008)
    assert found["comm_broadcast_bus_gbps", "16.0 KB"] == (None, 1.5)


def test_comm_table_with_the_time_spent_waiting(tmp_path):
    found = metrics(tmp_path, STRAGGLER)
    assert found["comm_all_reduce_total_wait", "1.5 MB"] == (None, 0.125)
    assert found["comm_all_reduce_mean_time", "1.5 MB"] == (None, 0.0125)


def test_arguments_of_every_rank(tmp_path):
    text = "".join(
        f"[rank{rank}]: {line}\n"
        for line in ("TrainingArguments(", "_n_gpu=1,", "fsdp_config={'a': 1},", "learning_rate=5e-05,", ")", "next=1")
        for rank in (0, 1)
    )
    rows, _ = read(tmp_path, text.encode())
    found = [(r["rank"], r["key"], r["value"]) for r in rows["config"]]
    assert sorted(found) == [
        (rank, key, value)
        for rank in (0, 1)
        for key, value in (("_n_gpu", '"1"'), ("fsdp_config", "\"{'a': 1}\""), ("learning_rate", '"5e-05"'))
    ]


def test_lines_between_the_rows_of_a_table_cost_none_of_them(tmp_path):
    head, operation, first, second, *rest = PLAIN.strip().split("\n")
    raised = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nValueError: bad token\n'
    assert metrics(tmp_path, PLAIN) == metrics(
        tmp_path, "\n".join([head, "a warning", operation, first, "done", "", second, *rest])
    )
    rows, _ = read(tmp_path, "\n".join([head, operation, first, raised, second, *rest]).encode())
    assert [(r["name"], r["message"]) for r in rows["event"]] == [("ValueError", "bad token")]
    assert ("comm_all_reduce_count", 20.0) in {(r["name"], r["value"]) for r in rows["metric"]}
    assert len(metrics(tmp_path, f"{head}\n{operation}\n{first}")) == 5


def test_a_dump_of_settings_that_is_interrupted_or_never_closed(tmp_path):
    text = '  json = {\n    "train_batch_size": 8, \na warning\n    "betas": [\n        0.9\n    ]\n}\n'
    rows, _ = read(tmp_path, text.encode())
    assert [(r["key"], r["value"]) for r in rows["config"]] == [("train_batch_size", "8"), ("betas", "[0.9]")]
    raised = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nValueError: bad token\n'
    rows, _ = read(tmp_path, ('  json = {\n    "train_batch_size": 8, \n' + raised).encode())
    assert [(r["name"], r["message"]) for r in rows["event"]] == [("ValueError", "bad token")]


def test_devices_as_nvidia_smi_describes_them(tmp_path):
    text = """==============NVSMI LOG==============

Timestamp                                 : Tue Jan  6 10:00:00 2026
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    Clocks Event Reasons
        HW Thermal Slowdown               : Active
    FB Memory Usage
        Total                             : 81920 MiB
        Used                              : 1024 MiB
    BAR1 Memory Usage
        Used                              : 4 MiB
GPU 00000000:5E:00.0
    FB Memory Usage
        Used                              : 2048 MiB
[rank 1] step 7: loss=2.5
"""
    rows, _ = read(tmp_path, text.encode())
    assert [(r["device"], r["kind"], r["bytes"], r["time"]) for r in rows["memory"]] == [
        ("00000000:3b:00.0", "device_total", 81920 << 20, 1767693600000000000),
        ("00000000:3b:00.0", "device_used", 1024 << 20, 1767693600000000000),
        ("00000000:5e:00.0", "device_used", 2048 << 20, 1767693600000000000),
    ]
    assert {r["name"]: r["value"] for r in rows["environment"]} == {
        "driver": "550.54.15", "driver_cuda": "12.4", "gpu": "NVIDIA A100-SXM4-80GB"
    }  # fmt: skip
    assert [(r["name"], json.loads(r["detail"])["pci"], r["time"]) for r in rows["event"]] == [
        ("HW Thermal Slowdown", "00000000:3b:00.0", 1767693600000000000)
    ]
    assert [(r["step"], r["value"]) for r in rows["metric"]] == [(7, 2.5)]


def test_errors_of_a_device_carry_its_address_and_section(tmp_path):
    text = """GPU 00000000:86:00.0
    Clocks Throttle Reasons
        SW Power Cap                      : Not Active
    ECC Errors
        Volatile
            DRAM Correctable              : 5
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 7
    Remapped Rows
        Uncorrectable Error               : 0
        Remapping Failure Occurred        : Yes
GPU 00000000:87:00.0
    ECC Errors
        Volatile
            DRAM Uncorrectable            : 0
"""
    rows, _ = read(tmp_path, text.encode())
    assert [(r["kind"], r["role"], r["line"], r["message"], r["time"]) for r in rows["event"]] == [
        ("ecc", "symptom", 7, "device 00000000:86:00.0: DRAM Uncorrectable: 2 (Volatile)", None),
        ("ecc", "symptom", 9, "device 00000000:86:00.0: DRAM Uncorrectable: 7 (Aggregate)", None),
        ("ecc", "symptom", 12, "device 00000000:86:00.0: Remapping Failure Occurred: Yes (Remapped Rows)", None),
    ]
    rows, _ = read(tmp_path, b"        HW Slowdown                       : Active\n")  # one line of it, found with grep
    assert [(r["kind"], r["message"]) for r in rows["event"]] == [("throttle", "HW Slowdown: Active")]
