"""What must not leave the house: secrets never, names of hosts, users, addresses and paths on request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MASK = "[secret]"

_WORDS = r"(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|(?:wandb|account|signing|encryption|license|ssh)[_-]?key|credentials?|auth)"
_SECRET_KEY = re.compile(rf"(?i)(?:^|[_.\-]){_WORDS}(?:$|[_.\-])|(?:password|passwd|apikey|accesskey)$")
# Words that hold "token" or "key" and are settings of training, not secrets.
_HARMLESS = re.compile(
    r"(?i)tokens|tokeniz|max_.*token|token_(?:id|type|len|count|embed)|(?:bos|eos|pad|unk|mask|sep|cls)_token"
)
# Shapes that issuers document: AWS, GitHub, GitLab, Hugging Face, Slack, Google, OpenAI and Anthropic, npm, Docker,
# Weights & Biases, PyPI, JWT.
_SHAPES = (
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}\b",
    r"\bgithub_pat_\w{20,}\b",
    r"\bglpat-[\w\-]{16,}",
    r"\bhf_[A-Za-z0-9]{20,}\b",
    r"\bxox[abprse]-[\w\-]{10,}",
    r"\bAIza[\w\-]{30,}",
    r"\bsk-[\w\-]{20,}",
    r"\bnpm_[A-Za-z0-9]{30,}\b",
    r"\bdckr_pat_[\w\-]{20,}",
    r"\bwandb_v\d_\w{20,}",
    r"\bpypi-[\w\-]{30,}",
    r"\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*",
)
_SHAPE = re.compile("|".join(_SHAPES))
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_URL_LOGIN = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]{0,20}://)[^\s/@:'\"]*:[^\s/'\"]{1,256}@")
_HEADER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~\-]{8,}")
_COOKIE = re.compile(r"(?i)\b((?:set-)?cookie\s{0,3}:)[^\n'\"]+")
# Query parameters of signed addresses: AWS and Google (X-Amz-Signature, X-Goog-Signature), Azure (sig).
_SIGNED = re.compile(r"(?i)([?&](?:sig|[\w\-]{0,16}signature|[\w\-]{0,16}security-token)=)[^&\s'\"]+")
# Bare keys of 40 hexadecimal digits look like commits; behind these words they are keys.
_LOGIN_KEY = re.compile(r"(?i)\b((?:wandb\s{1,3}login|password)\b[^\n]{0,40}?\s)[0-9a-f]{40}\b")
# key=value, key: value, "key": "value", --key value, '--key', 'value'; lengths are bounded to stay linear
_PAIR = re.compile(
    r"(?i)(?<![\w.\-])(?P<key>[\w.\-]{0,64}"
    + _WORDS
    + r"[\w.\-]{0,64})(?P<sep>['\"]?\s{0,3}[=:]\s{0,3}|['\"],\s{0,3}(?=['\"])|\s{1,3}(?=[^\s\-]))"
    r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s,;'\"}\])&]+)"
)
_PLAIN_VALUE = re.compile(r"(?i)['\"]?(?:true|false|null|none|-?\d{1,9}(?:\.\d+)?)?['\"]?$")


def is_secret(key: str) -> bool:
    """Whether a setting of this name holds a secret (api_key, WANDB_API_KEY, db.password, ...)."""
    return bool(_SECRET_KEY.search(key)) and not _HARMLESS.search(key)


def secrets(text: str) -> str:
    """Mask passwords, keys, tokens and URL logins in a text; everything else stays as it is."""
    text = _PEM.sub(MASK, text)
    text = _URL_LOGIN.sub(rf"\1{MASK}@", text)
    text = _HEADER.sub(rf"\1 {MASK}", text)
    text = _COOKIE.sub(rf"\1 {MASK}", text)
    for shape in (_SIGNED, _LOGIN_KEY):
        text = shape.sub(rf"\1{MASK}", text)
    return _PAIR.sub(_mask_pair, _SHAPE.sub(MASK, text))


def _mask_pair(match: re.Match[str]) -> str:
    key, sep, value = match["key"], match["sep"], match["value"]
    flag = not set(sep) & {"=", ":"}  # "--token abc": only for command-line switches, prose stays
    plain = _PLAIN_VALUE.match(value) or value.startswith(MASK[:-1])
    if plain or not is_secret(key.lstrip("-")) or (flag and not key.startswith("--")):
        return match[0]
    quote = value[0] if value[0] in "'\"" else ""
    return f"{key}{sep}{quote}{MASK}{quote}"


_USER = re.compile(r"(?<=/home/)[\w.\-]+|(?<=/Users/)[\w.\-]+|(?<=\\Users\\)[\w.\-]+")
_EMAIL = re.compile(r"(?<![\w.+\-])[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,6}")
_IPV4 = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_IPV6 = re.compile(
    r"(?i)(?<![\w:.])(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6})(?![\w:])"
)
_MAC = re.compile(r"(?i)\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b")
# Endings that Python modules do not have; hosts under other endings are replaced when the run names them.
_DOMAIN = r"(?:\.[a-z0-9\-]{1,63}){0,6}\.(?:com|net|org|edu|gov|local|internal|lan|corp|cluster|cloud)\b"
_FQDN = re.compile(rf"(?i)(?<![\w.\-])[a-z0-9\-]{{1,63}}{_DOMAIN}")
_AWS_HOST = re.compile(rf"(?i)\b(ip(?:-\d{{1,3}}){{4}})\b(?:{_DOMAIN})?")
_LOGIN = re.compile(r"(?<![\w.@\-])([A-Za-z_][\w.\-]{0,31})@([A-Za-z][\w\-]{0,62})(?![\w@]|\.\w)")
_PATH = re.compile(
    r"(?:(?<![\w./<])|(?<=file://))/(?:[\w.@+\-]+/)+[\w.@+\-]*"
    r"|\b[A-Za-z]:\\{1,2}(?:[^\\\s'\"]+\\{1,2})*[^\\\s'\"]+"
    r"|(?<![\\\w])\\\\{1,2}[\w.\-]+(?:\\{1,2}[\w.$\-]+)+"
)
_HOST_SETTING = re.compile(
    r"(?i)\b(?:master[_-]?addr(?:ess)?|rdzv[_-]?endpoint|hostname|nodename|slurmd_nodename|slurm_launch_node_ipaddr)"
    r"['\"]?\s{0,3}(?:[=:\s]|,\s?\"(?:before|after|value)\":)\s{0,3}['\"]?([a-z][\w\-]{1,62})"
)
_PUBLIC = re.compile(
    r"/(?:(?:site|dist)-packages|lib/python[\d.]+)/"
)  # what stands behind it is the library's own layout
_NO_HOST = {"localhost", "localhost.localdomain", ""}


class Redactor:
    """Gives every host, user, address and path one alias, the same wherever it occurs.

    Args:
        hosts: host names of the runs; they are replaced as whole words, longest first.
        users: account names, likewise.
        names: False masks secrets only (what every report does).
    """

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = (), *, names: bool = True) -> None:
        self.names = names
        self._alias: dict[tuple[str, str], str] = {}
        known = {h.lower(): "host" for h in hosts if h not in _NO_HOST}
        known |= {u: "user" for u in users if len(u) > 1 and u.lower() not in known}
        self._known = known
        machines, people = (_either(word for word in known if known[word] == kind) for kind in ("host", "user"))
        self._machines = re.compile(rf"(?i)(?<![a-z0-9])({machines})(?![a-z0-9])(?:{_DOMAIN})?")
        self._people = re.compile(rf"(?<![A-Za-z0-9])(?:{people})(?![A-Za-z0-9])")
        for word in sorted(known):
            self.alias(known[word], word)

    def alias(self, kind: str, original: str) -> str:
        """The stand-in of one name: host-1, user-2, ..."""
        key = (kind, original)
        if key not in self._alias:
            self._alias[key] = f"{kind}-{sum(k == kind for k, _ in self._alias) + 1}"
        return self._alias[key]

    def text(self, text: str) -> str:
        """One text without secrets and, where asked, without names."""
        text = secrets(text)
        if not self.names:
            return text
        text = _PATH.sub(self._path, text)
        text = _EMAIL.sub(lambda m: self.alias("mail", m[0]), text)
        text = _MAC.sub(lambda m: self.alias("address", m[0]), text)
        text = _IPV4.sub(lambda m: self.alias("address", m[0]), text)
        text = _IPV6.sub(lambda m: self.alias("address", m[0]), text)
        text = _LOGIN.sub(self._login, text)
        text = self._machines.sub(lambda m: self.alias("host", m[1].lower()), text)
        text = self._people.sub(lambda m: self.alias("user", m[0]), text)
        text = _AWS_HOST.sub(lambda m: self.alias("host", m[1].lower()), text)
        return _FQDN.sub(lambda m: self.alias("host", m[0]), text)

    def _login(self, match: re.Match[str]) -> str:
        return f"{self.alias('user', match[1])}@{self.alias('host', match[2].lower())}"

    def _path(self, match: re.Match[str]) -> str:
        path = match[0]
        public = _PUBLIC.search(path)
        if public:
            return self.alias("/path", path[: public.start()]) + path[public.start() :]
        stem, dot, extension = path.rpartition(".")
        known = dot and extension.isalnum() and len(extension) <= 5
        return self.alias("/path", stem if known else path) + (f".{extension}" if known else "")

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it redacted; values of secret settings are masked whole."""
        return _walk(value, self.text)


def _walk(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return _mapping(value, change)
    if isinstance(value, list | tuple):
        return [_walk(item, change) for item in value]
    return value


def _mapping(value: Mapping[Any, Any], change: Callable[[str], str]) -> dict[str, Any]:
    # A change of a setting is {"what": key, "before": value, "after": value}: its name decides for both values.
    named = next((str(value[k]) for k in ("what", "key", "name") if isinstance(value.get(k), str)), "")
    out = {}
    for key, item in value.items():
        holds = is_secret(str(key)) or (key in {"before", "after", "value"} and is_secret(named))
        out[change(str(key))] = MASK if holds and isinstance(item, str | int | float) else _walk(item, change)
    return out


def _either(words: Iterable[str]) -> str:
    """A pattern of any of the words, longest first; it never matches where there are none."""
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word))) or r"(?!)"


def hosts_in(texts: Iterable[str]) -> set[str]:
    """Host names that settings in the texts give away (MASTER_ADDR=..., --rdzv_endpoint=...:29400)."""
    return {match[1] for text in texts for match in _HOST_SETTING.finditer(text)}


def users_in(texts: Iterable[str]) -> set[str]:
    """Account names that home directories in the texts give away."""
    return {match[0] for text in texts for match in _USER.finditer(text)}
