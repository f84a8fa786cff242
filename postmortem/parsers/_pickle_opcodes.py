"""Opcodes of the pickle stack machine, protocols 0 to 5 (Lib/pickletools.py of python/cpython)."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from typing import Any

from postmortem.parsers._inert import Inert, Refused
from postmortem.parsers._pickle_machine import Handler, Machine, admit_key

_MAX_INT = 256  # bytes of one integer; larger ones only burn time

DISPATCH: list[Handler | None] = [None] * 256


def _opcode(codes: bytes) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for code in codes:
            DISPATCH[code] = handler
        return handler

    return register


@_opcode(b"\x80")
def _proto(m: Machine) -> None:
    m.take(1)


@_opcode(b"\x95")
def _frame(m: Machine) -> None:
    m.take(8)


@_opcode(b"(")
def _mark(m: Machine) -> None:
    m.marks.append(len(m.stack))


@_opcode(b"0")
def _pop(m: Machine) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.stack.pop()


@_opcode(b"1")
def _pop_mark(m: Machine) -> None:
    m.popmark()


@_opcode(b"2")
def _dup(m: Machine) -> None:
    m.stack.append(m.stack[-1])


@_opcode(b"N")
def _none(m: Machine) -> None:
    m.stack.append(None)


@_opcode(b"\x88\x89")
def _bool(m: Machine) -> None:
    m.stack.append(m.code == 0x88)


@_opcode(b"K")
def _int1(m: Machine) -> None:
    m.stack.append(m.data[m.pos])
    m.pos += 1


@_opcode(b"M")
def _int2(m: Machine) -> None:
    m.stack.append(m.number("<H"))
    m.charge(28)


@_opcode(b"J")
def _int4(m: Machine) -> None:
    m.stack.append(m.number("<i"))
    m.charge(28)


@_opcode(b"\x8a\x8b")
def _long(m: Machine) -> None:
    size = m.number("<B" if m.code == 0x8A else "<i")
    if size > _MAX_INT:
        raise Refused("hostile", f"an integer has more than {_MAX_INT} bytes")
    m.charge(32 + size)
    m.stack.append(int.from_bytes(m.take(size), "little", signed=True))


@_opcode(b"IL")
def _decimal(m: Machine) -> None:
    text = m.line().rstrip(b"L")
    if len(text) > 2 * _MAX_INT:
        raise Refused("hostile", f"an integer has more than {2 * _MAX_INT} digits")
    m.stack.append(text == b"01" if m.code == 0x49 and text in (b"00", b"01") else int(text))


@_opcode(b"F")
def _float_text(m: Machine) -> None:
    m.stack.append(float(m.line()))


@_opcode(b"G")
def _float(m: Machine) -> None:
    m.charge(24)
    m.stack.append(struct.unpack(">d", m.take(8))[0])


@_opcode(b"S")
def _string_text(m: Machine) -> None:
    m.stack.append(codecs.escape_decode(m.line()[1:-1])[0].decode("latin-1"))


@_opcode(b"V")
def _unicode_text(m: Machine) -> None:
    m.stack.append(m.line().decode("raw-unicode-escape", "replace"))


@_opcode(b"X")
def _unicode4(m: Machine) -> None:
    m.stack.append(m.counted("<I").decode("utf-8", "replace"))


@_opcode(b"\x8c")
def _unicode1(m: Machine) -> None:
    m.stack.append(m.counted("<B").decode("utf-8", "replace"))


@_opcode(b"\x8d")
def _unicode8(m: Machine) -> None:
    m.stack.append(m.counted("<Q").decode("utf-8", "replace"))


@_opcode(b"UT")
def _string(m: Machine) -> None:
    m.stack.append(m.counted("<B" if m.code == 0x55 else "<i").decode("utf-8", "replace"))


@_opcode(b"BC\x8e\x96")
def _bytes(m: Machine) -> None:
    m.stack.append(m.counted({0x42: "<I", 0x43: "<B"}.get(m.code, "<Q")))


@_opcode(b"]\x8f")
def _empty_list(m: Machine) -> None:
    m.charge(96)
    m.stack.append([])


@_opcode(b"}")
def _empty_dict(m: Machine) -> None:
    m.charge(104)
    m.stack.append({})


@_opcode(b")")
def _empty_tuple(m: Machine) -> None:
    m.stack.append(())


@_opcode(b"\x85\x86\x87")
def _short_tuple(m: Machine) -> None:
    m.charge(88)
    size = m.code - 0x84
    if len(m.stack) < size:
        raise IndexError
    value = tuple(m.stack[-size:])
    del m.stack[-size:]
    m.stack.append(value)


@_opcode(b"t\x91")
def _tuple(m: Machine) -> None:
    value = tuple(m.popmark())
    m.charge(48 + 8 * len(value))
    m.stack.append(value)


@_opcode(b"l")
def _list(m: Machine) -> None:
    value = m.popmark()
    m.charge(64 + 8 * len(value))
    m.stack.append(value)


@_opcode(b"d")
def _dict(m: Machine) -> None:
    flat = m.popmark()
    target: dict[Any, Any] = {}
    _store(m, target, flat)
    m.stack.append(target)


def _store(m: Machine, target: Any, flat: list[Any]) -> None:
    m.charge(56 * len(flat))
    if len(flat) % 2:
        raise ValueError
    pairs = zip(flat[::2], flat[1::2], strict=True)
    if isinstance(target, dict):
        target.update((admit_key(key), value) for key, value in pairs)
    elif isinstance(target, Inert):
        target.pairs = target.pairs or []
        target.pairs.extend(pairs)
    else:
        raise TypeError


@_opcode(b"su")
def _set_items(m: Machine) -> None:
    flat = m.popmark() if m.code == 0x75 else [m.stack.pop(-2), m.stack.pop()]
    _store(m, m.stack[-1], flat)


@_opcode(b"ae\x90")
def _append(m: Machine) -> None:
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


def _remember(m: Machine, index: int) -> None:
    m.charge(60)
    m.memo[index] = m.stack[-1]


@_opcode(b"q")
def _put1(m: Machine) -> None:
    _remember(m, m.data[m.pos])
    m.pos += 1


@_opcode(b"r")
def _put4(m: Machine) -> None:
    _remember(m, m.number("<I"))


@_opcode(b"p")
def _put_text(m: Machine) -> None:
    _remember(m, int(m.line()[:20]))


@_opcode(b"\x94")
def _memoize(m: Machine) -> None:
    _remember(m, len(m.memo))


@_opcode(b"h")
def _get1(m: Machine) -> None:
    m.stack.append(m.memo[m.data[m.pos]])
    m.pos += 1


@_opcode(b"j")
def _get4(m: Machine) -> None:
    m.stack.append(m.memo[m.number("<I")])


@_opcode(b"g")
def _get_text(m: Machine) -> None:
    m.stack.append(m.memo[int(m.line()[:20])])


@_opcode(b"c")
def _global(m: Machine) -> None:
    module, name = m.line(), m.line()
    m.stack.append(m.name(module.decode("utf-8", "replace"), name.decode("utf-8", "replace")))


@_opcode(b"\x93")
def _stack_global(m: Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise TypeError
    m.stack.append(m.name(module, name))


@_opcode(b"R\x81")
def _reduce(m: Machine) -> None:
    args, function = m.stack.pop(), m.stack.pop()
    m.stack.append(m.call(function, args))


@_opcode(b"\x92")
def _newobj_ex(m: Machine) -> None:
    kwargs, args, function = m.stack.pop(), m.stack.pop(), m.stack.pop()
    made = m.call(function, args)
    if isinstance(made, Inert):
        made.state = kwargs
    m.stack.append(made)


@_opcode(b"i")
def _inst(m: Machine) -> None:
    _global(m)
    function = m.stack.pop()
    m.stack.append(m.call(function, tuple(m.popmark())))


@_opcode(b"o")
def _obj(m: Machine) -> None:
    function, *args = m.popmark()
    m.stack.append(m.call(function, tuple(args)))


@_opcode(b"b")
def _build(m: Machine) -> None:
    state, target = m.stack.pop(), m.stack[-1]
    if isinstance(target, Inert):
        target.state = state


@_opcode(b"Q")
def _binpersid(m: Machine) -> None:
    _persistent(m, m.stack.pop())


@_opcode(b"P")
def _persid(m: Machine) -> None:
    _persistent(m, m.line().decode("ascii", "replace"))


def _persistent(m: Machine, identity: Any) -> None:
    if m.persistent is None:
        raise Refused("malformed", "it refers to something outside of itself")
    m.charge(200)
    m.stack.append(m.persistent(identity))
