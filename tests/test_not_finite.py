"""Values that are not finite, from the folder to the diagnosis: who began it, at which step, and the likeliest cause."""

import pytest
from evidence import stored

from postmortem.diagnosis import diagnose
from postmortem.query import Session

NAN = float("nan")


def loss(step):
    return 3 + 0.001 * (step * 7 % 11)


def chat(ranks, until, value):
    """Lines of a training loop, one per rank and step."""
    return [f"[rank {r}] step {s}: loss={value(s, r):.4f}" for s in range(1, until + 1) for r in range(ranks)]


def megatron(until, skipped=lambda _: 0, norm=lambda _: 0.8):
    """megatron/training.py, training_log."""
    for s in range(1, until + 1):
        yield (
            f" iteration {s:8d}/{1000:8d} | consumed samples: {s * 256:12d} | elapsed time per iteration (ms): 1000.0 | "
            f"learning rate: 1.000E-04 | global batch size:   256 | lm loss: {loss(s):.6E} | loss scale: 1.0 | "
            f"grad norm: {norm(s):.3f} | number of skipped iterations: {skipped(s):3d} | number of nan iterations:   0 |"
        )


def overflow(step, scale, skipped):
    line = f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale // 2}"
    return [line, f"[Rank 0] step={step}, skipped={skipped}, lr=[0.0001], mom=[(0.9, 0.999)]"]


def asserted(rank):
    said = "found NaN in local grad norm in backward pass before data-parallel communication collective."
    traceback = f'Traceback (most recent call last):\n  File "train.py", line 9, in main\nAssertionError: Rank {rank}: {said} Device: 0, node: n1'
    return [f"[rank{rank}]: {line}" for line in traceback.split("\n")]


def stated(pipeline):
    return [
        f"using world size: 8, data-parallel-size: 8, tensor-model-parallel size: 1, pipeline-model-parallel size: {pipeline} "
    ]


def huggingface(step):
    """transformers/trainer.py, log: no step, and its filter prints 0.0 for a loss that is not finite."""
    return str({"loss": loss(step) if step < 50 else 0.0, "grad_norm": 0.9 if step < 50 else NAN, "epoch": step / 100})


GAVE_UP = "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."
UNSCALED = "[deepspeed] OVERFLOW! Skipping step. Gradients are non-finite, weights were not updated."
START = "[2026-03-28 10:00:00,000] [INFO] [launch.py:146:main] WORLD INFO DICT: {'n1': [0, 1, 2, 3]}"

# What is in train.log, and (fault, ranks, step, likeliest cause), or None for a healthy run.
CASES = {
    "one rank's loss turns a step before its peers'": (
        chat(4, 80, lambda s, r: NAN if s > 40 or (s == 40 and r == 3) else loss(s)),
        ("nan_inf", [3], 40, "bad_data"),
    ),
    "the loss left its course long before it turned": (
        [f"[rank 0] step {s}: loss={loss(s) * (1.0 if s < 60 else 1.5 ** (s - 60) if s < 90 else NAN)}" for s in range(1, 121)],
        ("nan_inf", [], 90, "divergence"),
    ),
    "the loss scale falls until the trainer gives up": (
        [*chat(4, 59, lambda s, _: loss(s)), "[Rank 0] step=59, skipped=0, lr=[0.0001], mom=[(0.9, 0.999)]", *(x for i in range(17) for x in overflow(60 + i, 65536 >> i, 1 + i)), GAVE_UP],
        ("nan_inf", [], 60, "loss_scale_collapse"),
    ),
    "a search for a loss scale at the start": (
        [x for s in range(1, 100) for x in ([*overflow(s, 2 ** (33 - s), s), *chat(1, s, lambda s, _: loss(s))[-1:]] if s < 17 else chat(1, s, lambda s, _: loss(s))[-1:])],
        None,
    ),
    "bf16 steps are skipped to the end": (
        [x for s in range(1, 101) for x in ([UNSCALED] if s >= 50 else []) + [f"[rank 0] step {s}: loss={loss(s)}"]],
        ("nan_inf", [], 50, None),
    ),
    "a trainer that prints no steps and hides the loss": (
        [huggingface(s) for s in range(1, 101)],
        ("nan_inf", [], None, None),
    ),
    "a rank of a data-parallel job finds it in its own gradients": (
        [*stated(1), *megatron(50), *asserted(3)],
        ("nan_inf", [3], 51, "bad_data"),
    ),
    "a rank of a pipeline may have been given it": (
        [*stated(2), *megatron(50), *asserted(3)],
        ("nan_inf", [], 51, None),
    ),
    "all ranks find it": (
        [*stated(1), *megatron(50), *(line for rank in range(8) for line in asserted(rank))],
        ("nan_inf", [], 51, None),
    ),
    "the next attempt passes the step": (
        [START, *chat(4, 60, lambda s, _: loss(s) if s < 50 else NAN), START, *chat(4, 90, lambda s, _: loss(s))],
        ("nan_inf", [], 50, "divergence"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return stored(
        tmp_path_factory.mktemp("not_finite"), [{"train.log": "\n".join(lines) + "\n"} for lines, _ in CASES.values()]
    )


@pytest.mark.parametrize("number", range(len(CASES)), ids=list(CASES))
def test_who_when_and_why(store, number):
    found, wanted = diagnose(Session(store, [f"run{number}"])), list(CASES.values())[number][1]
    if wanted is None:
        assert found["primary"] is None
        return
    first, causes = found["primary"], found["faults"][0]["causes"]
    assert (first["fault"], first["culprit_ranks"], first["onset_step"]) == wanted[:3]
    if wanted[3] is not None:
        assert causes[0]["id"] == wanted[3]
        assert causes[0]["for"]
