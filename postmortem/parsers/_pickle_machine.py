"""The stack machine under the inert unpickler: reading, limits, names and calls; opcodes: `_pickle_opcodes`."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from postmortem.parsers._inert import Global, Inert, Refused

Buffer: TypeAlias = bytes | bytearray | memoryview
Handler: TypeAlias = Callable[["Machine"], None]

_MAX_KEY = 64  # items of a tuple used as a key
GRANTED_ITEMS, GRANTED_MEMORY = 64, 2000
"""What the limits grow by with every object of a class that the caller expects in any number: opcodes, and bytes."""

# Reaching any of these is an attack, whatever the call. The list only names the attack: nothing is ever called.
_DANGEROUS = re.compile(
    r"""(os|posix|nt|subprocess|_posixsubprocess|sys|importlib|imp|runpy|shutil|socket|ctypes|pty|pdb|bdb|code
    |codeop|commands|popen2|webbrowser|multiprocessing|asyncio|signal|threading|_thread|operator|_operator
    |pickle|_pickle|marshal|dill|cloudpickle|joblib|shelve|timeit|trace|profile|cProfile|pip|pkgutil
    |zipimport|site|platform|tempfile|glob|urllib|http|ftplib|smtplib|requests|httplib|aiohttp|pydoc|inspect|gc
    |atexit|logging|linecache|distutils|setuptools|ensurepip|venv|__main__)(\..*)?
    |builtins\.(?!(bool|int|float|complex|str|bytes|bytearray|list|tuple|dict|set|frozenset|slice|range|object
    |type|Ellipsis|NotImplemented|NoneType|Exception|long|unicode)$).*
    |torch\.(hub|utils\.collect_env)\..*|torch\.((jit|serialization)\.)?(load|compile)|numpy\.(load|.*runstring)
    |types\.(?!SimpleNamespace$|MappingProxyType$).*
    |pathlib\.(?!(Pure)?(Posix|Windows)?Path$).*""",
    re.VERBOSE,
)


def _ordered(args: tuple[Any, ...]) -> dict[Any, Any]:
    pairs = args[-1] if args and isinstance(args[-1], list | tuple | dict) else ()
    if isinstance(pairs, dict):
        return dict(pairs)
    good = [p for p in pairs if isinstance(p, list | tuple) and len(p) == 2]
    return {admit_key(key): value for key, value in good}


def _sequence(args: tuple[Any, ...]) -> list[Any]:
    return list(args[0]) if args and isinstance(args[0], list | tuple) else []


def _encode(args: tuple[Any, ...]) -> bytes:
    # How protocols below 3 spell bytes: _codecs.encode(text, "latin1").
    return args[0].encode("latin-1", "replace") if args and isinstance(args[0], str) else b""


# Calls that make plain containers. Everything else stays Inert.
_PLAIN: Mapping[str, Callable[[tuple[Any, ...]], Any]] = {
    "collections.OrderedDict": _ordered,
    "collections.defaultdict": lambda _args: {},
    "builtins.dict": _ordered,
    "builtins.bytes": _encode,
    "builtins.set": _sequence,
    "builtins.list": _sequence,
    "builtins.frozenset": lambda args: tuple(_sequence(args)),
    "builtins.tuple": lambda args: tuple(_sequence(args)),
    "torch.Size": lambda args: tuple(_sequence(args)),
    "_codecs.encode": _encode,
}


def admit_key(key: Any) -> Any:
    """Admit a key whose hash is cheap: hashing nested tuples can take exponential time and overflow the C stack."""
    kind = type(key)
    if kind is str:
        return key
    if kind is int:
        good = -(1 << 61) < key < (1 << 61)  # larger ones can be made to collide
    elif kind is tuple:
        good = len(key) <= _MAX_KEY and not any(isinstance(k, tuple | list | dict | bytearray) for k in key)
    else:
        good = kind in (bool, bytes, float, type(None), Inert, Global)
    if not good:
        raise Refused("hostile", f"a {kind.__name__} that is too large, nested or mutable is used as a key")
    return key


class Machine:
    """The pickle stack machine."""

    __slots__ = (
        "budget",
        "code",
        "data",
        "dispatch",
        "end",
        "expected",
        "inert",
        "items",
        "marks",
        "memo",
        "memory",
        "persistent",
        "pos",
        "stack",
    )

    def __init__(
        self,
        dispatch: Sequence[Handler | None],
        data: Buffer,
        start: int,
        inert: bool,
        persistent: Callable[[Any], Any] | None,
        max_memory: int,
        expected: frozenset[str] = frozenset(),
    ) -> None:
        self.dispatch = dispatch
        self.data = bytes(data) if isinstance(data, bytearray | memoryview) else data
        self.pos = start
        self.end = len(data)
        self.code = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.memory = self.budget = max_memory
        self.items = 0
        self.expected = expected
        self.inert = inert
        self.persistent = persistent

    def run(self, max_items: int, max_bytes: int) -> Any:
        start, self.end = self.pos, min(self.end, self.pos + max_bytes)
        cut = self.end < len(self.data)
        try:
            return self._loop(max_items)
        except Refused as refused:
            refused.offset, refused.left = self.pos, self.stack
            if cut and refused.kind == "truncated":
                raise Refused("limit", f"the pickle is larger than {max_bytes} bytes", start) from None
            raise
        except (
            IndexError,
            TypeError,
            ValueError,
            struct.error,
            OverflowError,
            AttributeError,
            KeyError,
        ) as error:
            found = Refused("malformed", f"opcode {self.code:#04x} does not fit what precedes it", self.pos)
            if self.pos >= self.end:
                found = Refused("truncated", "the pickle ends too early", self.pos)
            found.left = self.stack
            raise found from error

    def _loop(self, max_items: int) -> Any:
        data, dispatch = self.data, self.dispatch
        self.items, done = max_items, 0
        while done < self.items:
            more = self.items - done
            for _ in range(more):
                if self.pos >= self.end:
                    raise Refused("truncated", "the pickle ends too early")
                code = self.code = data[self.pos]
                self.pos += 1
                if code == 0x2E:  # STOP
                    return self.stack.pop()
                handler = dispatch[code]
                if handler is None:
                    raise Refused("malformed", f"byte {code:#04x} is no opcode that data needs")
                handler(self)
            done += more
        raise Refused("limit", f"the pickle has more than {self.items} opcodes")

    def charge(self, size: int) -> None:
        self.memory -= size
        if self.memory < 0:
            raise Refused("limit", f"the pickle needs more than {self.budget >> 20} MiB of objects")

    def take(self, size: int) -> bytes:
        if size < 0:
            raise Refused("malformed", "a length is negative")
        start, stop = self.pos, self.pos + size
        if stop > self.end:
            raise Refused("truncated", "the pickle ends too early")
        self.pos = stop
        return self.data[start:stop]

    def number(self, code: str) -> int:
        return int(struct.unpack(code, self.take(struct.calcsize(code)))[0])

    def counted(self, code: str) -> bytes:
        size = self.number(code)
        self.charge(size + 50)
        return self.take(size)

    def line(self) -> bytes:
        stop = self.data.find(b"\n", self.pos, self.end)
        if stop < 0:
            raise Refused("truncated", "the pickle ends too early")
        text = self.data[self.pos : stop]
        self.pos = stop + 1
        self.charge(len(text) + 50)
        return text

    def popmark(self) -> list[Any]:
        mark = self.marks.pop()
        items = self.stack[mark:]
        del self.stack[mark:]
        return items

    def name(self, module: str, name: str) -> Global:
        module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)
        full = f"{module}.{name}"
        if not self.inert:
            raise Refused("hostile", f"it names {full[:80]}, and plain data needs no class")
        if "." in name or _DANGEROUS.fullmatch(full):
            raise Refused("hostile", f"unpickling it would run or reach {full[:80]}")
        self.charge(100)
        return Global(full)

    def call(self, function: Any, args: Any) -> Any:
        if not isinstance(function, Global) or not isinstance(args, tuple):
            raise Refused("malformed", "something is called that is no class or function")
        self.charge(200)
        if function.name in self.expected:
            self.items += GRANTED_ITEMS
            self.memory += GRANTED_MEMORY
            self.budget += GRANTED_MEMORY
        if function.name == "copyreg._reconstructor" and args and isinstance(args[0], Global):
            return Inert(args[0].name, ())
        plain = _PLAIN.get(function.name)
        if plain is None:
            return Inert(function.name, args)
        self.charge(16 * sum(len(a) for a in args if isinstance(a, list | tuple | dict | str)))
        return plain(args)
