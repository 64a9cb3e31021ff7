"""Blocks of values as codes of 8, 4, 2 or 1 bits and a scale for each block. Pure.

8 bits: whole numbers to 127 times the scale, with which the block's largest value just fits. Fewer: a sign and one of
8, 2 or 1 heights times the scale. Which height is decided by the borders of the quantiser of least error for a known
distribution (Lloyd 1982, Max 1960), stretched to the block's mean magnitude; then the scale is the one of least error
for the heights decided on. Either makes |x - decoded| <= |x| for any block x, without which what error feedback adds
to the next difference might grow for ever (Karimireddy et al. 2019). One bit is the sign times the mean magnitude.

No value is squared, so nothing overflows below `LARGEST`. Decoding is one product a value, the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonp2p.tensors.bits import Bytes, pack_codes, unpacking_table

LARGEST = 2.0**100
"""The largest magnitude that can be encoded."""
LARGEST_SCALE = 2.0 * LARGEST
"""No scale is larger."""
_LEAST = float(numpy.finfo(numpy.float32).tiny)
"""Nothing is divided by less."""


class Integers:
    """Multiples of the scale, rounded to the nearest."""

    bits = 8

    def encode(self, values: Tensor, scales: Tensor, decoded: Tensor) -> Bytes:
        """The codes of `values` (blocks, values); fills in the bfloat16 `scales` (blocks, 1), and `decoded` with what
        `decode` will make of them."""
        largest = torch.amax(torch.abs(values, out=decoded), 1, keepdim=True)
        # Up to the next bfloat16, whose 16 bits are the upper ones of a float32's: no value is beyond 127.
        largest.div_(127).clamp_(min=_LEAST).view(torch.int32).add_(0xFFFF).bitwise_and_(~0xFFFF)
        scales.copy_(largest)
        # Divided, not multiplied by the inverse: what is less than half a scale must become zero.
        codes = torch.div(values, largest, out=decoded).round_().to(torch.int8)
        torch.mul(codes, largest, out=decoded)
        return codes.numpy().reshape(-1).view(numpy.uint8)

    def decode(self, codes: Bytes, scales: Tensor, decoded: Tensor) -> None:
        """Fills in `decoded` (blocks, values); the `scales` (blocks, 1) are float32."""
        whole = torch.from_numpy(codes.view(numpy.int8).copy()).view(decoded.shape)  # received bytes are read-only
        torch.mul(whole, scales, out=decoded)


@dataclass(frozen=True)
class Heights:
    """A sign and a height; `heights` and the `borders` between them are in units of the mean magnitude."""

    heights: tuple[float, ...]
    borders: tuple[float, ...]

    @cached_property
    def bits(self) -> int:
        """Of a code: the number of the height, and above it the sign."""
        return len(self.heights).bit_length()

    @cached_property
    def _table(self) -> NDArray[numpy.float32]:
        up = numpy.array(self.heights, numpy.float32)
        return unpacking_table(numpy.concatenate([up, -up]), self.bits)

    def encode(self, values: Tensor, scales: Tensor, decoded: Tensor) -> Bytes:
        """As that of `Integers`."""
        scratch = torch.abs(values)
        scale = scratch.mean(1, keepdim=True)
        codes = numpy.signbit(values.numpy()).view(numpy.uint8)
        if self.borders:
            codes *= numpy.uint8(len(self.heights))
            relative, above = scratch.div_(scale.clamp(min=_LEAST)).numpy(), numpy.empty(values.shape, numpy.bool_)
            for border in self.borders:
                codes += numpy.greater(relative, numpy.float32(border), out=above)
        packed = pack_codes(codes.reshape(-1), self.bits)
        self._unpack(packed, decoded)
        if self.borders:
            scale = torch.mul(values, decoded, out=scratch).sum(1, keepdim=True)
            scale /= torch.mul(decoded, decoded, out=scratch).sum(1, keepdim=True)
        decoded.mul_(scales.copy_(scale).float())
        return packed

    def decode(self, codes: Bytes, scales: Tensor, decoded: Tensor) -> None:
        """As that of `Integers`."""
        self._unpack(codes, decoded)
        decoded.mul_(scales)

    def _unpack(self, codes: Bytes, decoded: Tensor) -> None:
        """The heights with their signs."""
        flat = decoded.view(-1).numpy()
        whole = len(flat) * self.bits // 8
        each = 8 // self.bits
        numpy.take(self._table, codes[:whole], axis=0, out=flat[: whole * each].reshape(whole, each), mode="clip")
        if whole < len(codes):
            flat[whole * each :] = self._table[codes[whole]][: len(flat) - whole * each]


NORMAL = {
    4: Heights(
        (0.1609, 0.4863, 0.8231, 1.181, 1.5745, 2.0279, 2.5931, 3.4248),
        (0.3236, 0.6547, 1.0021, 1.3778, 1.8012, 2.3105, 3.009),
    ),
    2: Heights((0.5675, 1.893), (1.2303,)),
    1: Heights((1.0,), ()),
}
"""By their bits: of least error for values with a normal distribution."""

EXPONENTIAL = {
    4: Heights(
        (0.1753, 0.5725, 1.0305, 1.5712, 2.2313, 3.0792, 4.2665, 6.2665),
        (0.3739, 0.8015, 1.3008, 1.9012, 2.6553, 3.6729, 5.2665),
    ),
    2: Heights((0.5936, 2.5936), (1.5936,)),
    1: Heights((1.0,), ()),
}
"""The same for magnitudes with an exponential distribution, as those beyond a threshold about have."""
