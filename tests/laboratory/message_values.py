"""Values of message types, drawn from the types themselves: whatever their bounds allow, the ends of the bounds first.

Ids are those of made-up keys that can sign, and what is `Signed` is truly signed, so that what is drawn gets past the
checks of form to the code behind them. Addresses are loopback's, where nothing listens.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import random
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import inspect as shapes

from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import TrackerAddress
from axonp2p.transport.messages import Address, RelayAddress
from axonp2p.transport.tunnel.messages import CallerAddress
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import Signable, Signed, sign
from axonp2p.wire.frame import pack_frame
from tests.fakes import key_of

KEYS = [key_of(f"made up {number}") for number in range(6)]
CLOSED_PORT = 9
_LETTERS = "abc XYZ09-_./#\n\0\x7fé漢\U0001f600'\"<&%"
_LONGEST = 64
"""Long texts and lists are drawn seldom: they show one more thing and cost much."""
_SEVERAL = (list, set, frozenset, *(getattr(collections.abc, name) for name in ("Iterable", "Sequence", "Collection")))


class CannotBuild(Exception):
    """Nobody has said how a value of that type is made."""


def _pattern_of(kind: Any) -> str:
    shape = shapes.type_info(kind)
    assert isinstance(shape, shapes.StrType)
    return shape.pattern or ""


class Values:
    """Draws. `chance` decides everything, so that a seed brings the same values again."""

    def __init__(self, chance: random.Random, now: float = 1_800_000_000.0) -> None:
        self.chance = chance
        self.now = now
        self.made: dict[Any, Callable[[Values], Any]] = {}
        """What no type says how to make."""
        self._longest = 9
        self._ports: list[str] = [f"127.0.0.1:{CLOSED_PORT}"]
        self._special = {
            _pattern_of(PeerId): lambda: self.key().peer_id,
            _pattern_of(CallerAddress): lambda: "127.0.0.1",
            _pattern_of(Address): lambda: self.chance.choice(self._ports),
            _pattern_of(TrackerAddress): lambda: f"https://{self.chance.choice(self._ports)}",
            _pattern_of(RelayAddress): lambda: f"https://{self.chance.choice(self._ports)}#{'a' * 52}",
        }

    def key(self) -> PrivateKey:
        """One of the made-up keys."""
        return self.chance.choice(KEYS)

    def any_of(self, hint: Any, name: str = "") -> Any:
        """A value of a Python type as annotations have it. Raises `CannotBuild`."""
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if inspect.isclass(hint) and hint in self.made:
            return self.made[hint](self)
        if hint is None:  # what a function gives that gives nothing
            return None
        if origin is Annotated or hint in (int, float, str, bytes, bool, type(None)):
            return self._plain(hint, name)
        if origin is Signed:
            return self.signed(args[0])
        if inspect.isclass(hint) and issubclass(hint, msgspec.Struct):
            return self.message(hint)
        if origin in (typing.Union, types.UnionType):
            return self.any_of(self.chance.choice(args), name)
        if origin is typing.Literal:
            return self.chance.choice(args)
        if hint is PrivateKey:
            return self.key()
        if hint is msgspec.UnsetType:
            return msgspec.UNSET
        if origin in (
            list,
            set,
            frozenset,
            collections.abc.Iterable,
            collections.abc.Sequence,
            collections.abc.Collection,
        ):
            items = [self.any_of(args[0], name) for _ in range(self.chance.choice((0, 1, 2, 7)))]
            return origin(items) if origin in (set, frozenset) else items
        if origin in (dict, collections.abc.Mapping):
            return {
                self.any_of(args[0], name): self.any_of(args[1], name) for _ in range(self.chance.choice((0, 1, 3)))
            }
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return tuple(self.any_of(args[0]) for _ in range(self.chance.choice((0, 1, 3))))
            return tuple(self.any_of(one) for one in args)
        if inspect.isclass(hint) and issubclass(hint, enum.Enum):
            return self.chance.choice(list(hint))
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            hints = typing.get_type_hints(hint, include_extras=True)
            fields = [one.name for one in dataclasses.fields(hint) if one.init]
            return hint(**{one: self.any_of(hints[one], one) for one in fields})
        if inspect.isclass(hint) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
            hints = typing.get_type_hints(hint, include_extras=True)
            return hint(**{one: self.any_of(hints[one], one) for one in hint._fields})
        if origin is collections.abc.Callable:
            back = args[-1]
            return lambda *ignored: self.any_of(back)
        if hint in self.made:
            return self.made[hint](self)
        raise CannotBuild(str(hint))

    def message(self, kind: type[Any]) -> Any:
        """A message of that type, every field within its bounds."""
        if typing.get_origin(kind) is Signed:
            return self.signed(typing.get_args(kind)[0])
        hints = typing.get_type_hints(kind, include_extras=True)
        fields: dict[str, Any] = {}
        for field in msgspec.structs.fields(kind):
            if field.required or self.chance.random() < 0.7:
                fields[field.name] = self._field(hints[field.name], field.name)
        return kind(**fields)

    def signed(self, kind: Any) -> Signed[Any]:
        """A message in an envelope, most often by the key that it names itself."""
        if not (inspect.isclass(kind) and issubclass(kind, Signable)):
            raise CannotBuild(f"Signed[{kind}]")
        key = self.key()
        message = self.message(kind)
        own = {"Row": "peer", "TrackerRow": "tracker", "Token": "issuer", "Receipt": "client", "Voiding": "client"}
        own |= {"TreeHead": "tracker", "ConsistencyProof": "tracker"}
        if (field := own.get(kind.__name__)) and self.chance.random() < 0.9:
            message = msgspec.structs.replace(message, **{field: key.peer_id})
        return sign(key, message)

    def _field(self, hint: Any, name: str) -> Any:
        if name in ("expires", "time", "until") and self.chance.random() < 0.7:
            return int(self.now) + self.chance.choice((-1, 0, 1, 60, 3600))
        if name == "frame":
            from axonp2p.verification.claims import RoundDone, SegmentRedone

            return pack_frame(self.message(self.chance.choice((RoundDone, SegmentRedone))))
        if typing.get_origin(hint) is Annotated:
            base, meta = hint.__origin__, [one for one in hint.__metadata__ if isinstance(one, msgspec.Meta)]
            most = next((one.max_length for one in meta if one.max_length is not None), None)
            least = next((one.min_length for one in meta if one.min_length is not None), 0)
            if typing.get_origin(base) in (list, tuple, dict):
                return self._several(base, least, _LONGEST if most is None else most)
            if base in (int, float, str, bytes):
                return self._plain(hint, name)
            return self._field(base, name)
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self._field(self.chance.choice(args), name)
        if origin in (list, tuple, dict):
            return self._several(hint, 0, 8)
        return self.any_of(hint, name)

    def _several(self, hint: Any, least: int, most: int) -> Any:
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        longest = most if most <= _LONGEST and self.chance.random() < 0.1 else min(most, max(least, 3))
        count = self.chance.choice((least, longest, self.chance.randint(least, longest)))
        if origin is dict:
            return {self._field(args[0], ""): self._field(args[1], "") for _ in range(count)}
        made = [self._field(args[0], "") for _ in range(count)]
        return tuple(made) if origin is tuple else made

    def _plain(self, hint: Any, name: str) -> Any:
        shape = shapes.type_info(hint)
        match shape:
            case shapes.BoolType():
                return self.chance.random() < 0.5
            case shapes.NoneType():
                return None
            case shapes.IntType():
                low = shape.ge if shape.ge is not None else (shape.gt + 1 if shape.gt is not None else 0)
                high = shape.le if shape.le is not None else (shape.lt - 1 if shape.lt is not None else 2**31)
                some = self.chance.randint(low, high)
                return self.chance.choice((low, high, some, min(high, low + 1), min(high, max(low, 3))))
            case shapes.FloatType():
                if name == "now":
                    return self.now
                low = float(shape.ge if shape.ge is not None else shape.gt if shape.gt is not None else 0.0)
                high = float(shape.le if shape.le is not None else shape.lt if shape.lt is not None else 1e9)
                some = (low, high, low / 2 + high / 2, low / 2 + high * 1e-9, self.chance.random())
                drawn = self.chance.choice(some)
                inside = min(max(drawn, low), high)
                if (shape.gt is not None and inside == low) or (shape.lt is not None and inside == high):
                    inside = low + (high - low) / 3
                return inside
            case shapes.StrType():
                return self._text(shape)
            case shapes.BytesType():
                least, most = shape.min_length or 0, shape.max_length
                most = max(least, 64) if most is None else most
                some = self.chance.randint(least, min(most, least + 64))
                lengths = (least, min(most, least + 1), max(least, min(most, 300)), some)
                length = self.chance.choice(lengths)
                return self.chance.choice((bytes(length), b"\xff" * length, self.chance.randbytes(length)))
        return self._field(hint, name) if hint is not shape else None

    def _text(self, shape: shapes.StrType) -> str:
        if shape.pattern in self._special:
            text: str = self._special[shape.pattern]()
            return text
        if shape.pattern:
            self._longest = shape.max_length or 9
            for _ in range(50):
                text = self._matching(re._parser.parse(shape.pattern))  # type: ignore[attr-defined]
                if (shape.max_length is None or len(text) <= shape.max_length) and len(text) >= (shape.min_length or 0):
                    return text
            raise CannotBuild(shape.pattern)
        least = shape.min_length or 0
        most = 64 if shape.max_length is None else shape.max_length
        length = self.chance.choice((least, min(most, max(least, 5)), most if self.chance.random() < 0.1 else least))
        return "".join(self.chance.choices(_LETTERS, k=length))

    def _matching(self, parsed: Any) -> str:
        out = []
        for kind, value in parsed:
            name = str(kind)
            if name == "LITERAL":
                out.append(chr(value))
            elif name == "IN":
                out.append(self._one_in(value))
            elif name in ("MAX_REPEAT", "MIN_REPEAT"):
                low, high, inner = value
                high = self._longest if str(high) == "MAXREPEAT" else int(high)
                counts = (low, high if high - low < 70 else low + 3, self.chance.randint(low, min(high, low + 9)))
                count = self.chance.choice(counts)
                out += [self._matching(inner) for _ in range(count)]
            elif name == "SUBPATTERN":
                out.append(self._matching(value[3]))
            elif name == "BRANCH":
                out.append(self._matching(self.chance.choice(value[1])))
            elif name != "AT":
                raise CannotBuild(name)
        return "".join(out)

    def _one_in(self, choices: Any) -> str:
        kind, value = self.chance.choice(choices)
        return chr(value if str(kind) == "LITERAL" else self.chance.randint(*value))


def as_message_types(hint: Any) -> bool:
    """Whether a message stands somewhere in a type."""
    if inspect.isclass(hint) and issubclass(hint, Message):
        return True
    origin = typing.get_origin(hint)
    return (inspect.isclass(origin) and issubclass(origin, Message)) or any(
        map(as_message_types, typing.get_args(hint))
    )
