"""Secrets are masked, names get one alias each, and what is neither stays as it was."""

from __future__ import annotations

import time

import pytest

from postmortem.redact import MASK, Redactor, is_secret, secrets, users_in


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("WANDB_API_KEY=abc123def", f"WANDB_API_KEY={MASK}"),
        ('password: "a b"', f'password: "{MASK}"'),
        ("https://bob:pw@host/x", f"https://{MASK}@host/x"),
        ("Authorization: Bearer abcdefghijk", f"Authorization: Bearer {MASK}"),
        ("aws_secret_access_key = AAAA/BBB+CC", f"aws_secret_access_key = {MASK}"),
        ('{"token": "abc", "x": 1}', f'{{"token": "{MASK}", "x": 1}}'),
        ("--wandb_token abcdef --lr 1", f"--wandb_token {MASK} --lr 1"),
        ("'--hub_token', 'abcdef'", f"'--hub_token', '{MASK}'"),
        ("see hf_abcdefghijklmnopqrstuvwx here", f"see {MASK} here"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----", MASK),
    ],
)
def test_secrets_are_masked(text: str, masked: str) -> None:
    assert secrets(text) == masked
    assert secrets(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "tokens: 500", "max_tokens=12", "eos_token_id=2", "pad_token=<pad>", "use_auth_token=True", "author: Jim",
        "tokenizer: gpt2", "secret of the trade", "lr=1 key: 3", "tokens/s=123.4", "0000:17:00.0",
        "2026-12-02 07:56:05,774 [INFO] loss=1.5",
    ],
)  # fmt: skip
def test_settings_of_training_are_no_secrets(text: str) -> None:
    assert secrets(text) == text


def test_names_get_one_alias_wherever_they_occur() -> None:
    hide = Redactor(["node-a17", "node-a1"], ["jim"])
    assert hide.text("node-a17 and node-a1 in /home/jim/x/train.py line 3") == "host-2 and host-1 in /path-1.py line 3"
    assert hide.text("logs/node-a17_rank3.log") == "logs/host-2_rank3.log"
    assert hide.text("10.1.2.3:29500 at 12:34:56") == "address-1:29500 at 12:34:56"
    assert hide.text("again 10.1.2.3, jim@corp.com, fe80::1:2") == "again address-1, mail-1, address-2"
    assert hide.text("/home/jim/x/train.py") == "/path-1.py"
    assert hide.text("/opt/x/lib/python3.10/site-packages/torch/nn/a.py").endswith(
        "/lib/python3.10/site-packages/torch/nn/a.py"
    )
    assert hide.text("torch.nn.io s/it 3/4 0000:17:00.0") == "torch.nn.io s/it 3/4 0000:17:00.0"


def test_values_of_secret_settings_are_masked_by_the_name_beside_them() -> None:
    change = {"what": "wandb.api_key", "before": "abc", "after": None, "n": 3}
    assert Redactor(names=False).value(change) == {
        "what": "wandb.api_key",
        "before": MASK,
        "after": None,
        "n": 3,
    }
    assert Redactor(names=False).value({"hf_token": "x", "list": ["token=abc"]}) == {
        "hf_token": MASK,
        "list": [f"token={MASK}"],
    }
    assert is_secret("db.password")
    assert not is_secret("optimizer.params.eps")


def test_a_long_line_takes_linear_time() -> None:
    began = time.perf_counter()
    for line in ("token" * 100_000, "a." * 200_000, "/a" * 200_000, "1:" * 200_000, "x" * 500_000):
        Redactor().text(line)
    assert time.perf_counter() - began < 10


def test_users_are_found_in_home_directories() -> None:
    assert users_in(["/home/jim/a /Users/eve/b", "/opt/x"]) == {"jim", "eve"}
