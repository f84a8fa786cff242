"""Reads pickles without resolving, importing or calling anything that they name.

A machine of our own instead of `pickle.Unpickler`, because that one can be made to allocate without bound
by 6 bytes (LONG_BINPUT with a large index, Modules/_pickle.c of python/cpython) and to overflow the C stack
by hashing nested tuples. Opcodes: Lib/pickletools.py of python/cpython, protocols 0 to 5.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

MAX_ITEMS = 1_500_000  # opcodes; about 50,000 tensors, read in well under a second
MAX_BYTES = 1 << 26  # of one pickle
MAX_MEMORY = 64 << 20  # bytes of Python objects, estimated
MAX_DEPTH = 200  # nested containers, for readers that walk the result
_MAX_INT = 256  # bytes of one integer; larger ones only burn time
_MAX_KEY = 64  # items of a tuple used as a key

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


class Refused(Exception):  # noqa: N818 - it is a verdict on the input, not a defect
    """A pickle that is not read.

    Attributes:
        kind: "hostile", "limit", "malformed" or "truncated" (kinds of table issue).
        message: what is wrong, a clause without a full stop.
        offset: byte in the given buffer.
        left: values that had been read but not yet put into a container, outermost first.
    """

    def __init__(self, kind: str, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.offset = offset
        self.left: list[Any] = []


@dataclass(frozen=True, slots=True)
class Global:
    """A class or function that the pickle names; it is never looked up."""

    name: str


@dataclass(slots=True, eq=False)
class Inert:
    """What a call or instance would have been: the name, its arguments and its state, nothing behind them."""

    name: str
    args: tuple[Any, ...]
    state: Any = None
    items: list[Any] | None = None
    pairs: list[tuple[Any, Any]] | None = None

    def attributes(self) -> Mapping[str, Any]:
        """Give the instance's attributes as far as its state is a dict, or a (dict, slots dict) pair."""
        parts = self.state if isinstance(self.state, tuple) else (self.state,)
        return {k: v for part in parts if isinstance(part, dict) for k, v in part.items() if isinstance(k, str)}


def load(
    data: Buffer,
    *,
    start: int = 0,
    classes: Literal["refuse", "inert"] = "refuse",
    persistent: Callable[[Any], Any] | None = None,
    max_items: int = MAX_ITEMS,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    max_memory: int = MAX_MEMORY,
) -> tuple[Any, int]:
    """Read the pickle that begins at `start`.

    Sets come back as lists, frozensets as tuples, OrderedDict and defaultdict as dict, torch.Size as tuple.

    Args:
        data: the bytes; the pickle may be followed by others.
        start: offset of the pickle's first opcode.
        classes: "refuse" any global, or turn it into `Global` and calls of it into `Inert`.
        persistent: turns a persistent id into a value; None refuses persistent ids.
        max_items: limit of opcodes.
        max_bytes: limit of bytes of the pickle.
        max_depth: limit of containers inside containers in the result.
        max_memory: limit of the estimated size of the Python objects, B.

    Returns:
        The value, and the offset after the pickle.

    Raises:
        Refused: it is hostile, larger than a limit, malformed or ends too early.
    """
    machine = _Machine(data, start, classes == "inert", persistent, max_memory)
    value = machine.run(max_items, max_bytes)
    check_depth(value, max_depth)
    return value, machine.pos


def check_depth(value: Any, limit: int) -> None:
    """Refuse a value with more than `limit` nested containers, or one that contains itself."""
    level, work = [value], 4 * MAX_ITEMS
    for _ in range(limit):
        work -= sum(map(_size, level))
        if work < 0:
            raise Refused("hostile", "containers refer to each other too often")
        level = list({id(child): child for parent in level for child in _children(parent)}.values())
        if not level:
            return
    raise Refused("hostile", f"containers are nested more than {limit} deep")


def _size(value: Any) -> int:
    if isinstance(value, Inert):
        return 4 + len(value.args) + len(value.items or ()) + len(value.pairs or ())
    return 1 + len(value) if isinstance(value, list | tuple | dict) else 1


def _children(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [v for v in value if isinstance(v, _CONTAINERS)]
    if isinstance(value, dict):
        return [v for v in value.values() if isinstance(v, _CONTAINERS)] + [k for k in value if isinstance(k, _KEYS)]
    pairs = [v for pair in value.pairs or () for v in pair] if isinstance(value, Inert) else []
    parts = [*value.args, value.state, *(value.items or ()), *pairs] if isinstance(value, Inert) else []
    return [v for v in parts if isinstance(v, _CONTAINERS)]


_CONTAINERS = (list, tuple, dict, Inert)
_KEYS = (tuple, Inert)


def _ordered(args: tuple[Any, ...]) -> dict[Any, Any]:
    pairs = args[-1] if args and isinstance(args[-1], list | tuple | dict) else ()
    if isinstance(pairs, dict):
        return dict(pairs)
    good = [p for p in pairs if isinstance(p, list | tuple) and len(p) == 2]
    return {_key(key): value for key, value in good}


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


def _key(key: Any) -> Any:
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


_Handler: TypeAlias = Callable[["_Machine"], None]
_DISPATCH: list[_Handler | None] = [None] * 256


def _opcode(codes: bytes) -> Callable[[_Handler], _Handler]:
    def register(handler: _Handler) -> _Handler:
        for code in codes:
            _DISPATCH[code] = handler
        return handler

    return register


class _Machine:
    """The pickle stack machine."""

    __slots__ = (
        "budget",
        "code",
        "data",
        "end",
        "inert",
        "marks",
        "memo",
        "memory",
        "persistent",
        "pos",
        "stack",
    )

    def __init__(
        self,
        data: Buffer,
        start: int,
        inert: bool,
        persistent: Callable[[Any], Any] | None,
        max_memory: int,
    ) -> None:
        self.data = bytes(data) if isinstance(data, bytearray | memoryview) else data
        self.pos = start
        self.end = len(data)
        self.code = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.memory = self.budget = max_memory
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
        data, dispatch = self.data, _DISPATCH
        for _ in range(max_items):
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
        raise Refused("limit", f"the pickle has more than {max_items} opcodes")

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
        if function.name == "copyreg._reconstructor" and args and isinstance(args[0], Global):
            return Inert(args[0].name, ())
        plain = _PLAIN.get(function.name)
        if plain is None:
            return Inert(function.name, args)
        self.charge(16 * sum(len(a) for a in args if isinstance(a, list | tuple | dict | str)))
        return plain(args)


@_opcode(b"\x80")
def _proto(m: _Machine) -> None:
    m.take(1)


@_opcode(b"\x95")
def _frame(m: _Machine) -> None:
    m.take(8)


@_opcode(b"(")
def _mark(m: _Machine) -> None:
    m.marks.append(len(m.stack))


@_opcode(b"0")
def _pop(m: _Machine) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.stack.pop()


@_opcode(b"1")
def _pop_mark(m: _Machine) -> None:
    m.popmark()


@_opcode(b"2")
def _dup(m: _Machine) -> None:
    m.stack.append(m.stack[-1])


@_opcode(b"N")
def _none(m: _Machine) -> None:
    m.stack.append(None)


@_opcode(b"\x88\x89")
def _bool(m: _Machine) -> None:
    m.stack.append(m.code == 0x88)


@_opcode(b"K")
def _int1(m: _Machine) -> None:
    m.stack.append(m.data[m.pos])
    m.pos += 1


@_opcode(b"M")
def _int2(m: _Machine) -> None:
    m.stack.append(m.number("<H"))
    m.charge(28)


@_opcode(b"J")
def _int4(m: _Machine) -> None:
    m.stack.append(m.number("<i"))
    m.charge(28)


@_opcode(b"\x8a\x8b")
def _long(m: _Machine) -> None:
    size = m.number("<B" if m.code == 0x8A else "<i")
    if size > _MAX_INT:
        raise Refused("hostile", f"an integer has more than {_MAX_INT} bytes")
    m.charge(32 + size)
    m.stack.append(int.from_bytes(m.take(size), "little", signed=True))


@_opcode(b"IL")
def _decimal(m: _Machine) -> None:
    text = m.line().rstrip(b"L")
    if len(text) > 2 * _MAX_INT:
        raise Refused("hostile", f"an integer has more than {2 * _MAX_INT} digits")
    m.stack.append(text == b"01" if m.code == 0x49 and text in (b"00", b"01") else int(text))


@_opcode(b"F")
def _float_text(m: _Machine) -> None:
    m.stack.append(float(m.line()))


@_opcode(b"G")
def _float(m: _Machine) -> None:
    m.charge(24)
    m.stack.append(struct.unpack(">d", m.take(8))[0])


@_opcode(b"S")
def _string_text(m: _Machine) -> None:
    m.stack.append(codecs.escape_decode(m.line()[1:-1])[0].decode("latin-1"))


@_opcode(b"V")
def _unicode_text(m: _Machine) -> None:
    m.stack.append(m.line().decode("raw-unicode-escape", "replace"))


@_opcode(b"X")
def _unicode4(m: _Machine) -> None:
    m.stack.append(m.counted("<I").decode("utf-8", "replace"))


@_opcode(b"\x8c")
def _unicode1(m: _Machine) -> None:
    m.stack.append(m.counted("<B").decode("utf-8", "replace"))


@_opcode(b"\x8d")
def _unicode8(m: _Machine) -> None:
    m.stack.append(m.counted("<Q").decode("utf-8", "replace"))


@_opcode(b"UT")
def _string(m: _Machine) -> None:
    m.stack.append(m.counted("<B" if m.code == 0x55 else "<i").decode("utf-8", "replace"))


@_opcode(b"BC\x8e\x96")
def _bytes(m: _Machine) -> None:
    m.stack.append(m.counted({0x42: "<I", 0x43: "<B"}.get(m.code, "<Q")))


@_opcode(b"]\x8f")
def _empty_list(m: _Machine) -> None:
    m.charge(96)
    m.stack.append([])


@_opcode(b"}")
def _empty_dict(m: _Machine) -> None:
    m.charge(104)
    m.stack.append({})


@_opcode(b")")
def _empty_tuple(m: _Machine) -> None:
    m.stack.append(())


@_opcode(b"\x85\x86\x87")
def _short_tuple(m: _Machine) -> None:
    m.charge(88)
    size = m.code - 0x84
    if len(m.stack) < size:
        raise IndexError
    value = tuple(m.stack[-size:])
    del m.stack[-size:]
    m.stack.append(value)


@_opcode(b"t\x91")
def _tuple(m: _Machine) -> None:
    value = tuple(m.popmark())
    m.charge(48 + 8 * len(value))
    m.stack.append(value)


@_opcode(b"l")
def _list(m: _Machine) -> None:
    value = m.popmark()
    m.charge(64 + 8 * len(value))
    m.stack.append(value)


@_opcode(b"d")
def _dict(m: _Machine) -> None:
    flat = m.popmark()
    target: dict[Any, Any] = {}
    _store(m, target, flat)
    m.stack.append(target)


def _store(m: _Machine, target: Any, flat: list[Any]) -> None:
    m.charge(56 * len(flat))
    if len(flat) % 2:
        raise ValueError
    pairs = zip(flat[::2], flat[1::2], strict=True)
    if isinstance(target, dict):
        target.update((_key(key), value) for key, value in pairs)
    elif isinstance(target, Inert):
        target.pairs = target.pairs or []
        target.pairs.extend(pairs)
    else:
        raise TypeError


@_opcode(b"su")
def _set_items(m: _Machine) -> None:
    flat = m.popmark() if m.code == 0x75 else [m.stack.pop(-2), m.stack.pop()]
    _store(m, m.stack[-1], flat)


@_opcode(b"ae\x90")
def _append(m: _Machine) -> None:
    items = [m.stack.pop()] if m.code == 0x61 else m.popmark()
    m.charge(9 * len(items))
    target = m.stack[-1]
    if isinstance(target, Inert):
        target.items = target.items or []
        target.items.extend(items)
    elif isinstance(target, list):
        target.extend(items)
    else:
        raise TypeError


def _remember(m: _Machine, index: int) -> None:
    m.charge(60)
    m.memo[index] = m.stack[-1]


@_opcode(b"q")
def _put1(m: _Machine) -> None:
    _remember(m, m.data[m.pos])
    m.pos += 1


@_opcode(b"r")
def _put4(m: _Machine) -> None:
    _remember(m, m.number("<I"))


@_opcode(b"p")
def _put_text(m: _Machine) -> None:
    _remember(m, int(m.line()[:20]))


@_opcode(b"\x94")
def _memoize(m: _Machine) -> None:
    _remember(m, len(m.memo))


@_opcode(b"h")
def _get1(m: _Machine) -> None:
    m.stack.append(m.memo[m.data[m.pos]])
    m.pos += 1


@_opcode(b"j")
def _get4(m: _Machine) -> None:
    m.stack.append(m.memo[m.number("<I")])


@_opcode(b"g")
def _get_text(m: _Machine) -> None:
    m.stack.append(m.memo[int(m.line()[:20])])


@_opcode(b"c")
def _global(m: _Machine) -> None:
    module, name = m.line(), m.line()
    m.stack.append(m.name(module.decode("utf-8", "replace"), name.decode("utf-8", "replace")))


@_opcode(b"\x93")
def _stack_global(m: _Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise TypeError
    m.stack.append(m.name(module, name))


@_opcode(b"R\x81")
def _reduce(m: _Machine) -> None:
    args, function = m.stack.pop(), m.stack.pop()
    m.stack.append(m.call(function, args))


@_opcode(b"\x92")
def _newobj_ex(m: _Machine) -> None:
    kwargs, args, function = m.stack.pop(), m.stack.pop(), m.stack.pop()
    made = m.call(function, args)
    if isinstance(made, Inert):
        made.state = kwargs
    m.stack.append(made)


@_opcode(b"i")
def _inst(m: _Machine) -> None:
    _global(m)
    function = m.stack.pop()
    m.stack.append(m.call(function, tuple(m.popmark())))


@_opcode(b"o")
def _obj(m: _Machine) -> None:
    function, *args = m.popmark()
    m.stack.append(m.call(function, tuple(args)))


@_opcode(b"b")
def _build(m: _Machine) -> None:
    state, target = m.stack.pop(), m.stack[-1]
    if isinstance(target, Inert):
        target.state = state


@_opcode(b"Q")
def _binpersid(m: _Machine) -> None:
    _persistent(m, m.stack.pop())


@_opcode(b"P")
def _persid(m: _Machine) -> None:
    _persistent(m, m.line().decode("ascii", "replace"))


def _persistent(m: _Machine, identity: Any) -> None:
    if m.persistent is None:
        raise Refused("malformed", "it refers to something outside of itself")
    m.charge(200)
    m.stack.append(m.persistent(identity))
