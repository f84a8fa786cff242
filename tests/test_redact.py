"""Secrets are masked, names get one alias each, and what is neither stays as it was."""

from __future__ import annotations

import time

import pytest

from postmortem.redact import MASK, Redactor, hosts_in, is_secret, secrets, users_in


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
        ("wandb login --relogin " + "0123abcd" * 5, f"wandb login --relogin {MASK}"),
        ("postgres://u:p@ss@db:5432/x", f"postgres://{MASK}@db:5432/x"),
        ("https://x.net/c?sv=1&sig=ab%2Bc&se=2", f"https://x.net/c?sv=1&sig={MASK}&se=2"),
        ("s3/k?X-Amz-Signature=abc&x=1", f"s3/k?X-Amz-Signature={MASK}&x=1"),
        ("AccountKey=abcd==;x", f"AccountKey={MASK};x"),
        ("{'wandb_key': 'abc'}", f"{{'wandb_key': '{MASK}'}}"),
        ("Cookie: session=abc; x=y", f"Cookie: {MASK}"),
        ("dckr_pat_abcdefghijklmnopqrstu", MASK),
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
        "2026-12-02 07:56:05,774 [INFO] loss=1.5", "commit 0123abcd0123abcd0123abcd0123abcd0123abcd",
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


def test_names_are_found_in_every_form() -> None:
    hide = Redactor(["node-a17"], ["jim"])
    assert hide.text("NODE-A17 is node-a17.cluster.internal") == "host-1 is host-1"
    assert hide.text("ssh eve@node-b02 -> node-a17:/data/x") == "ssh user-2@host-2 -> host-1:/path-1"
    assert (
        hide.text(r"C:\Users\jim\a.py C:/Users/jim/a.py C:\\Users\\jim\\a.py") == "/path-2.py C:/path-3.py /path-4.py"
    )
    assert hide.text(r"\\server\share\x") == "/path-5"
    assert hide.text("file:///home/jim/x.py") == "file:///path-6.py"
    assert hide.text("ip-10-0-12-34.ec2.internal is ip-10-0-12-34") == "host-3 is host-3"
    assert hide.text("recall@10 and loss @ 5") == "recall@10 and loss @ 5"


def test_hosts_are_found_in_settings() -> None:
    said = ["MASTER_ADDR=node-b2 --rdzv_endpoint=head01:29400", '{"what": "MASTER_ADDR", "before": "n7"}']
    assert hosts_in(said) == {"node-b2", "head01", "n7"}


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
