"""A library that CUDA needs where there is no /proc: `fopen` that opens /dev/null for the name of a thread.

The driver's library writes the names of its threads to /proc/self/task/THREAD/comm. Where it cannot open that file, it
takes this for a failure of the operating system, and does not start (error 304 of `cuInit`). A real /proc would give a
job more than that file: the owner's paths (mountinfo), and the weight of its session among those of the owner
(autogroup). So a sandbox with a card has this library in front of all others (LD_PRELOAD), and still no /proc.

It is written here byte by byte, since a peer has no compiler. The layout is that of elf(5), and of
<https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html> for the dynamic section. Pure.
"""

from __future__ import annotations

import struct

MACHINES = ("x86_64",)
"""The kinds of processor for which there is such a library, as `os.uname` names them."""

_PREFIX, _INSTEAD = b"/proc/self/task/\0", b"/dev/null\0"
_LOAD_PREFIX, _COMPARE, _LOAD_INSTEAD, _GO_ON = (
    bytes.fromhex("488d05"),  # lea rax, [rip + prefix]
    # xor ecx, ecx;  again: mov dl, [rax + rcx]; test dl, dl; je +10; cmp dl, [rdi + rcx]; jne +12; inc rcx; jmp again
    bytes.fromhex("31c98a140884d2740a3a140f750c48ffc1ebef"),
    bytes.fromhex("488d3d"),  # lea rdi, [rip + instead]
    bytes.fromhex("ff25"),  # jmp [rip + place]
)
_CODE_BYTES = 39
_SYMBOLS = (b"fopen", b"fopen64", b"_IO_fopen")
"""The first two are ours; the third is the C library's own name of both."""
_NAMES = b"\0" + b"".join(name + b"\0" for name in _SYMBOLS)

_HEADER, _PROGRAM_HEADER = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")
_SYMBOL, _RELOCATION, _TAG = struct.Struct("<IBBHQQ"), struct.Struct("<QQq"), struct.Struct("<QQ")
_SEGMENT, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_READ_RUN, _READ_WRITE = 5, 6
_PAGE = 0x1000
_GLOBAL_FUNCTION, _GLOBAL_DATA = 0x12, 6
"""STB_GLOBAL with STT_FUNC; R_X86_64_GLOB_DAT."""


def thread_names_library() -> bytes:
    """The file, for x86-64."""
    sizes = {
        "headers": _HEADER.size + 4 * _PROGRAM_HEADER.size,
        "hash": 4 * (2 + 1 + 4),
        "symbols": _SYMBOL.size * (1 + len(_SYMBOLS)),
        "relocation": _RELOCATION.size,
        "names": len(_NAMES),
        "code": _CODE_BYTES + len(_PREFIX) + len(_INSTEAD),
    }
    at: dict[str, int] = {}
    end = 0
    for part, size in sizes.items():
        at[part] = end
        end += size + -size % 8
    # The loader writes into what follows, so it lies in a page of its own.
    place, dynamic = _PAGE + end, _PAGE + end + 8
    tags = (
        (4, at["hash"]),
        (5, at["names"]),
        (6, at["symbols"]),
        (7, at["relocation"]),
        (8, _RELOCATION.size),
        (9, _RELOCATION.size),
        (10, len(_NAMES)),
        (11, _SYMBOL.size),
        (0, 0),
    )
    written = 8 + len(tags) * _TAG.size
    programs = (
        (_SEGMENT, _READ_RUN, 0, 0, 0, end, end, _PAGE),
        (_SEGMENT, _READ_WRITE, end, place, place, written, written, _PAGE),
        (_DYNAMIC, _READ_WRITE, end + 8, dynamic, dynamic, written - 8, written - 8, 8),
        # Without it all stacks would become executable.
        (_STACK, _READ_WRITE, 0, 0, 0, 0, 0, 16),
    )
    contents = {
        "headers": _header(len(programs)) + b"".join(_PROGRAM_HEADER.pack(*program) for program in programs),
        # One bucket: the chain goes from the first symbol to the second, and ends.
        "hash": struct.pack("<7I", 1, 4, 1, 0, 2, 0, 0),
        "symbols": _symbols(at["code"]),
        "relocation": _RELOCATION.pack(place, len(_SYMBOLS) << 32 | _GLOBAL_DATA, 0),
        "names": _NAMES,
        "code": _code(at["code"], place),
    }
    return b"".join(
        [
            *(contents[part] + bytes(-len(contents[part]) % 8) for part in sizes),
            bytes(8),
            *(_TAG.pack(*tag) for tag in tags),
        ]
    )


def _header(programs: int) -> bytes:
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")  # 64 bits, little endian
    shared_object, x86_64 = 3, 62
    sizes = (_HEADER.size, _PROGRAM_HEADER.size, programs, 0, 0, 0)
    return _HEADER.pack(ident, shared_object, x86_64, 1, 0, _HEADER.size, 0, 0, *sizes)


def _symbols(code: int) -> bytes:
    """The empty one, ours, and that of the C library, which the loader looks for."""
    found, own = [bytes(_SYMBOL.size)], _SYMBOLS[:-1]
    for name in _SYMBOLS:
        here = (1, code, _CODE_BYTES) if name in own else (0, 0, 0)
        found.append(_SYMBOL.pack(_NAMES.index(b"\0" + name + b"\0") + 1, _GLOBAL_FUNCTION, 0, *here))
    return b"".join(found)


def _code(begins: int, place: int) -> bytes:
    """Compares the path with the prefix, takes the other path where it begins so, and goes on in the C library."""
    found = b""

    def towards(instruction: bytes, target: int) -> bytes:
        """With a distance that counts from its end."""
        return instruction + struct.pack("<i", target - (begins + len(found) + len(instruction) + 4))

    prefix = begins + _CODE_BYTES
    found += towards(_LOAD_PREFIX, prefix)
    found += _COMPARE
    found += towards(_LOAD_INSTEAD, prefix + len(_PREFIX))
    found += towards(_GO_ON, place)
    return found + _PREFIX + _INSTEAD
