"""A model as one flat float32 vector, which comes back to the model without a digit lost.

Members exchange this vector. Its sections, in this order, differ in what an exchange and an outer step do to them:

    parameters       float32, float16, bfloat16, complex64: coded in few bits, and the outer step
    rows             those with sparse gradients: exactly, the mean of the members that changed a value
    by hand          parameters with gradients that no optimiser has: exactly, the plain mean, as all that follows
    float buffers    BatchNorm's statistics
    bits             what float32 cannot count with (infinity, nan, 1e300): its bits, which no member may change
    small integers   of 16 bits at most, bool: the mean, rounded
    frozen           of all parameters without gradients only the name of their file (`frozen_name`)
    wide floats      float64, parameters too: three values each (`wide`), the mean
    wide integers    three values each, the mean, rounded

Tied parameters stand in it once; buffers that are not in the state dict are left out, because the model's code makes
them again. A value that the state dict makes up (`get_extra_state`) stands in it as buffers do, and must stay as it is.
A complex number is two values.

The vector always lies in the processor's memory. A model on a card is copied from there, and to it, in one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn, optim
from torch.nn.parameter import is_lazy

from axonp2p.tensors import wide
from axonp2p.tensors.dense import largest_magnitude, values_to_bytes
from axonp2p.tensors.frozen import FrozenTensors, has_own_memory
from axonp2p.tensors.frozen_name import name_of, values_of
from axonp2p.tensors.layout import SECTIONS, HeldTensor, Layout, Section, unit_of
from axonp2p.tensors.levels import LARGEST

_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64)
_SMALL = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16)
_WIDE = (torch.int64, torch.int32, torch.uint32, torch.uint64)


def layout_of(model: nn.Module, optimizers: Sequence[optim.Optimizer] = ()) -> Layout:
    """The layout of a model's vector; without optimisers all parameters count as trained that are not frozen.

    Raises `ValueError`, with the tensor's name, for what cannot be exchanged.
    """
    trained = {id(parameter) for parameter in _trained(model, optimizers)}
    rows = {id(parameter) for parameter in _by_rows(model, optimizers)}
    own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    tensors = _tensors(model)
    found = [
        HeldTensor(
            name,
            tensor.dtype,
            _section(name, tensor, id(tensor) in trained, id(tensor) in rows, id(tensor) in own),
            tensor.numel(),
            made_up=id(tensor) not in own,
        )
        for name, tensor in tensors.items()
    ]
    found.sort(key=lambda held: SECTIONS.index(held.section))
    sizes = {section: sum(held.values for held in found if held.section == section) for section in SECTIONS}
    return Layout(
        parameters=sizes["parameters"],
        float_buffers=sizes["float buffers"],
        integer_buffers=sizes["small integers"],
        lengths=tuple(held.elements for held in found),
        rows=sizes["rows"],
        by_hand=sizes["by hand"],
        bits=sizes["bits"],
        frozen=FrozenTensors({held.name: tensors[held.name] for held in found if held.section == "frozen"}).pieces,
        wide_floats=sizes["wide floats"],
        wide_integers=sizes["wide integers"],
        tensors=tuple(found),
    )


def read(model: nn.Module, layout: Layout) -> Tensor:
    """A new vector with the model's values. Raises `ValueError` when the model has changed its shape."""
    with torch.no_grad():
        found = _found(model, layout)
        flats = [_values(tensor, held) for tensor, held in found if _is_narrow(held)]
        home = _home(model)
        if flats and home.type != "cpu":
            flats = [torch.cat([one.to(home) for one in flats]).cpu()]
            if layout.values == len(flats[0]):
                return flats[0]
        if layout.name_values:
            flats.append(torch.tensor(values_of(layout.frozen_name)))
        if layout.wide_floats:
            flats.append(wide.split_floats(_joined(found, "wide floats")))
        if layout.wide_integers:
            flats.append(wide.split_integers(_joined(found, "wide integers")))
        return torch.cat(flats)


def write(vector: Tensor, model: nn.Module, layout: Layout) -> None:
    """Put a vector's values into the model.

    Raises `ValueError` when the model has changed its shape, or the vector is of other frozen parameters.
    """
    if frozen_name(vector, layout) != layout.frozen_name:
        raise ValueError("these weights belong to other frozen parameters than the model has")
    with torch.no_grad():
        found = _found(model, layout)
        narrow = [(tensor, held) for tensor, held in found if _is_narrow(held)]
        home = _home(model)
        chunks = torch.split(vector[: layout.bounds["frozen"].start].to(home), [held.values for _, held in narrow])
        for (tensor, held), chunk in zip(narrow, chunks, strict=True):
            _put(chunk, tensor, held)
        bounds = layout.bounds
        _put_wide(wide.joined_floats(vector[bounds["wide floats"]]).to(home), found, "wide floats")
        _put_wide(wide.joined_integers(vector[bounds["wide integers"]]).to(home), found, "wide integers")


def minus(vector: Tensor, taken: Tensor, layout: Layout) -> Tensor:
    """A new vector: `vector` less `taken`. The same bits on every machine."""
    rest = vector - taken
    if layout.wide_floats or layout.wide_integers:
        rest[layout.wide] = less_wide(vector[layout.wide], taken[layout.wide], layout)
    return rest


def less_wide(lanes: Tensor, taken: Tensor, layout: Layout) -> Tensor:
    """The same of the values in `layout.wide` alone."""
    return wide.less(lanes, taken, layout.wide_floats // wide.LANES)


def frozen_name(vector: Tensor, layout: Layout) -> bytes:
    """The name of the file of the frozen parameters to which these weights belong; empty where there are none.

    Raises `MalformedMessage` for a vector without one.
    """
    return name_of(values_to_bytes(vector[layout.bounds["frozen"]])) if layout.name_values else b""


def frozen_tensors(model: nn.Module, layout: Layout) -> dict[str, Tensor]:
    """The frozen parameters, in the order of their file. Raises `ValueError` when the model has changed its shape."""
    return {held.name: tensor for tensor, held in _found(model, layout) if held.section == "frozen"}


@dataclass(frozen=True)
class Place:
    """Where a tensor of the state dict stands in the vector, or in the file of the frozen parameters."""

    tensor: Tensor
    coding: Literal["values", "bits", "wide", "frozen"]
    """One float32 for each number (two for a complex one), one for each part of its bits, three for each number; or its
    own bytes, in that file."""
    begin: int
    """In values, or in bytes of that file."""
    apart: int
    """Of a wide tensor, how far the values are apart that are one number."""


def places(model: nn.Module, layout: Layout) -> dict[str, Place]:
    """Where each tensor of the model's state dict stands, by all its names.

    Raises `ValueError` for a model whose state dict does not hold its tensors as they are.
    """
    here = {id(tensor): held for tensor, held in _found(model, layout)}
    made_up = {held.name: held for held in layout.tensors if held.made_up}
    begins = {held.name: begin for held, (begin, _) in layout.places()}
    saved = {name: tensor for name, tensor in model.state_dict(keep_vars=True).items() if isinstance(tensor, Tensor)}
    found = {name: here.get(id(tensor)) or made_up.get(name) for name, tensor in saved.items()}
    if {held.name for held in found.values() if held} != begins.keys():
        raise ValueError("state_dict() has other tensors than the model: its file could not be written from a state")
    apart = {"wide floats": layout.wide_floats // wide.LANES, "wide integers": layout.wide_integers // wide.LANES}
    kinds: dict[Section, Literal["bits", "wide", "frozen"]]
    kinds = {"bits": "bits", "wide floats": "wide", "wide integers": "wide", "frozen": "frozen"}
    return {
        name: Place(saved[name], kinds.get(held.section, "values"), begins[held.name], apart.get(held.section, 0))
        for name, held in found.items()
        if held
    }


def difference(start: Tensor, model: nn.Module, layout: Layout) -> Tensor:
    """`start`, which is taken over, less what the model holds now.

    Raises `ValueError`, with the tensor's name, for a change of which members could take no mean.
    """
    end = read(model, layout)
    lanes = less_wide(start[layout.wide], end[layout.wide], layout)
    moved = start.sub_(end)
    moved[layout.wide] = lanes
    if layout.bits and bool(moved[layout.bounds["bits"]].any()):
        name, dtype = _first_wrong(moved, layout, "bits")
        raise ValueError(
            f"{name} ({dtype}) held numbers that float32 has no room for (infinite, nan or too large) when model() "
            f"made it, and has changed: register it with persistent=False, or let it hold finite numbers"
        )
    try:
        fits = largest_magnitude(moved) <= LARGEST
    except ValueError:
        fits = False
    if not fits:
        name, dtype = _first_wrong(moved, layout, "")
        raise ValueError(f"{name} ({dtype}) became nan, infinite or too large for float32")
    return moved


def parameters(vector: Tensor, model: nn.Module, layout: Layout) -> list[tuple[Tensor, Tensor]]:
    """The model's parameters that take the outer step, each with its piece of the vector, complex ones as pairs.

    Raises `ValueError` when the model has changed.
    """
    found = [(tensor, held) for tensor, held in _found(model, layout) if held.section == "parameters"]
    pieces = torch.split(vector[: layout.parameters].to(_home(model)), [held.values for _, held in found])
    flat = [_real(tensor.detach()) if tensor.is_complex() else tensor for tensor, _ in found]
    return [(tensor, piece.view(tensor.shape)) for tensor, piece in zip(flat, pieces, strict=True)]


def _section(name: str, tensor: Tensor, trained: bool, by_rows: bool, own: bool) -> Section:
    if is_lazy(tensor):
        raise ValueError(f"{name} has no size yet: run one batch through lazy modules in model()")
    if tensor.layout is not torch.strided or tensor.is_meta:
        kind = "is on no device" if tensor.is_meta else f"is laid out as {tensor.layout}"
        raise ValueError(f"{name} {kind}: members exchange plain tensors; a buffer may have persistent=False")
    if tensor.dtype not in (*_SMALL, *_WIDE, *_FLOATS, torch.float64):
        raise ValueError(
            f"{name} holds {tensor.dtype}, which no model file has room for: keep it as complex64 or in real numbers; "
            "a buffer may have persistent=False"
        )
    if own and isinstance(tensor, nn.Parameter) and not tensor.requires_grad:
        return "frozen"
    if tensor.dtype in _SMALL or tensor.dtype in _WIDE:
        return "small integers" if tensor.dtype in _SMALL else "wide integers"
    if tensor.dtype == torch.float64:
        return "wide floats" if trained or (wide.holds(tensor.detach().cpu()) and _countable(tensor)) else "bits"
    if trained:
        return "rows" if by_rows else "parameters"
    if not _countable(tensor):
        return "bits"
    return "by hand" if isinstance(tensor, nn.Parameter) else "float buffers"


def _trained(model: nn.Module, optimizers: Sequence[optim.Optimizer]) -> Iterable[Tensor]:
    """Those that an optimiser has. Codings of few bits know no zero: what must not change is not to be among them."""
    own = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [group for one in optimizers for group in one.param_groups]
    given = {id(parameter) for group in groups for parameter in group["params"]}
    # An optimiser of optimisers may say of none what it has: then nothing is known, and all count.
    return [parameter for parameter in own if id(parameter) in given] or own


def sparse_tables(model: nn.Module) -> Iterable[Tensor]:
    """The weights of tables that were made with sparse gradients."""
    for module in model.modules():
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse:
            yield module.weight


def _by_rows(model: nn.Module, optimizers: Sequence[optim.Optimizer]) -> Iterable[Tensor]:
    """Parameters with sparse gradients: of tables that were made so, and those of an optimiser that takes no others."""
    yield from sparse_tables(model)
    for one in optimizers:
        if isinstance(one, optim.SparseAdam):
            yield from (parameter for group in one.param_groups for parameter in group["params"])


def _countable(tensor: Tensor) -> bool:
    """Whether differences of its values have room in float32."""
    numbers = _real(tensor.detach())
    try:
        return largest_magnitude(numbers.reshape(-1).float().cpu()) <= LARGEST
    except ValueError:
        return False


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    """All tensors that a model file holds, by name: parameters, buffers, and those that the state dict makes up."""
    saved = {name: tensor for name, tensor in model.state_dict(keep_vars=True).items() if isinstance(tensor, Tensor)}
    found: dict[str, Tensor] = dict(model.named_parameters())
    found |= {name: buffer for name, buffer in model.named_buffers() if name in saved}
    here = {id(tensor) for tensor in found.values()}
    return found | {name: tensor for name, tensor in saved.items() if name not in found and id(tensor) not in here}


def _found(model: nn.Module, layout: Layout) -> list[tuple[Tensor, HeldTensor]]:
    here = _tensors(model)
    if here.keys() != {held.name for held in layout.tensors} or any(
        here[held.name].numel() != held.elements for held in layout.tensors
    ):
        raise ValueError("the model's parameters or buffers have changed in number or size since model() built it")
    for held in layout.tensors:
        if here[held.name].dtype != held.dtype:
            raise ValueError(f"{held.name} held {held.dtype} when model() built it, and holds {here[held.name].dtype}")
    return [(here[held.name], held) for held in layout.tensors]


def _home(model: nn.Module) -> torch.device:
    """Where its parameters are; what `state_dict()` makes up may be elsewhere."""
    return next((tensor.device for tensor in model.parameters()), torch.device("cpu"))


def _is_narrow(held: HeldTensor) -> bool:
    """Whether its values stand side by side, before the name of the frozen ones."""
    return held.section != "frozen" and not held.section.startswith("wide")


def _values(tensor: Tensor, held: HeldTensor) -> Tensor:
    if held.section == "bits":
        unit = unit_of(held.dtype)
        parts = tensor.resolve_conj().resolve_neg().reshape(-1).contiguous().view(unit).to(torch.int32)
        # Fractions below 1, so that sketches of the vector still see the weights beside them.
        return parts.bitwise_and(2 ** (8 * unit.itemsize) - 1).float().div(2 ** (8 * unit.itemsize))
    return _real(tensor).reshape(-1).to(torch.float32)


def _put(chunk: Tensor, tensor: Tensor, held: HeldTensor) -> None:
    if held.section == "bits":
        unit = unit_of(held.dtype)
        parts = (chunk * 2 ** (8 * unit.itemsize)).to(torch.int32).to(unit)
        numbers = parts.view(held.dtype)
    elif held.section == "small integers":
        numbers = chunk.round()
    elif tensor.is_complex():
        numbers = torch.view_as_complex(chunk.view(-1, 2).clone())  # it begins anywhere
    else:
        numbers = chunk
    _copy(numbers.view(tensor.shape), tensor, held)


def _copy(numbers: Tensor, tensor: Tensor, held: HeldTensor) -> None:
    if has_own_memory(tensor) and not held.made_up:
        tensor.copy_(numbers)
    elif not torch.equal(tensor, numbers.to(tensor)):
        raise ValueError(
            f"{held.name} is made up by state_dict() and has changed: members exchange parameters and buffers"
            if held.made_up
            else f"{held.name} shares its memory with itself (.expand()) and has changed: make it .contiguous()"
        )


def _joined(found: list[tuple[Tensor, HeldTensor]], section: Section) -> Tensor:
    kind = torch.float64 if section == "wide floats" else torch.int64
    return torch.cat(
        [
            (tensor.view(kind) if held.dtype == torch.uint64 else tensor.to(kind)).reshape(-1).cpu()
            for tensor, held in found
            if held.section == section
        ]
    )


def _put_wide(numbers: Tensor, found: list[tuple[Tensor, HeldTensor]], section: Section) -> None:
    wanted = [(tensor, held) for tensor, held in found if held.section == section]
    for (tensor, held), chunk in zip(wanted, torch.split(numbers, [held.elements for _, held in wanted]), strict=True):
        kept = chunk.view(torch.uint64) if held.dtype == torch.uint64 else chunk
        _copy(kept.view(tensor.shape), tensor, held)


def _first_wrong(moved: Tensor, layout: Layout, section: Section | Literal[""]) -> tuple[str, torch.dtype]:
    """The first tensor whose change is not one; of `section`, whose change is not zero."""
    changes = torch.zeros(layout.values)
    bad = moved != 0 if section else ~(moved.abs() <= LARGEST)
    changes[bad] = 1.0
    for held, (begin, end) in layout.places():
        if held.section == (section or held.section) != "frozen" and bool(changes[begin:end].any()):
            return held.name, held.dtype
    # A wide number's second and third values stand behind the first ones of all.
    return next((held.name, held.dtype) for held in layout.tensors if held.section.startswith("wide"))


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
