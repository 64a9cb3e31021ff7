"""A picture of the Mandelbrot set in tiles, each one a call: python mandelbrot.py

The picture grows in picture.png of the job's folder, where the job's page shows it, and is copied to --out in the end.
"""

import argparse
import pathlib
import shutil
import struct
import zlib
from concurrent.futures import as_completed

TILE = 64
"""Pixels of a side of a tile."""
ACROSS = 3.0
"""The width of the picture, in the complex plane; its centre is CENTRE."""
CENTRE = -0.7 + 0.0j
MOST_STEPS = 255


def tile(left, top, width, height):
    """What a peer is called with: a byte a pixel, after how many steps its point has gone off; 0: after none."""
    import numpy

    step = ACROSS / width
    across = (numpy.arange(left, left + TILE) - width / 2) * step + CENTRE.real
    down = (numpy.arange(top, top + TILE) - height / 2) * step + CENTRE.imag
    points = across[None, :] + 1j * down[:, None]
    values, steps = numpy.zeros_like(points), numpy.zeros(points.shape, numpy.uint8)
    for number in range(1, MOST_STEPS):
        values = values * values + points
        gone = numpy.abs(values) > 2
        steps[gone & (steps == 0)] = number
        values[gone] = points[gone] = 0
    return steps.tobytes()


class Picture:
    """Pixels, three bytes each."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.rows = [bytearray(b"\x30" * 3 * width) for _ in range(height)]

    def put(self, left, top, steps):
        """A tile as a peer computed it. It is data of a stranger: its length is checked, and nothing is made of it but
        colours.
        """
        if not isinstance(steps, bytes) or len(steps) != TILE * TILE:
            raise ValueError(f"the tile at {left}, {top} is no tile")
        colours = b"".join(COLOURS[step] for step in steps)
        for row in range(TILE):
            self.rows[top + row][3 * left : 3 * (left + TILE)] = colours[3 * TILE * row : 3 * TILE * (row + 1)]

    def write(self, path):
        """As a PNG. The file is whole at every moment."""
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + row for row in self.rows), 6)
        parts = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b"")]
        new = path.with_suffix(".new")
        new.write_bytes(b"".join(parts))
        new.replace(path)


def chunk(name, data):
    """Of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def colour(step):
    """From blue over white to brown; the set itself is black."""
    share = (step / MOST_STEPS) ** 0.4
    if step == 0:
        return bytes(3)
    if share < 0.5:
        return bytes([int(510 * share), int(510 * share), int(110 + 290 * share)])
    return bytes([int(255 - 240 * (share - 0.5)), int(255 - 400 * (share - 0.5)), int(255 - 480 * (share - 0.5))])


COLOURS = [colour(step) for step in range(256)]


def main():
    import axonp2p

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracker", action="append", default=[], help="as axon-tracker run prints it")
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--size", type=int, nargs=2, default=[12, 8], help="tiles across and down")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("picture.png"))
    told = parser.parse_args()
    width, height = (TILE * tiles for tiles in told.size)
    picture = Picture(width, height)
    places = [(left, top) for top in range(0, height, TILE) for left in range(0, width, TILE)]
    with axonp2p.Executor(told.peers, told.tracker, name="mandelbrot", need={"memory": "512 MB"}) as executor:
        print("page", executor.job.page, flush=True)
        growing = executor.job.folder / "picture.png"
        calls = {executor.submit(tile, *place, width, height): place for place in places}
        for done in as_completed(calls):
            picture.put(*calls[done], done.result())
            picture.write(growing)
    shutil.copy(growing, told.out)
    print("wrote", told.out)


if __name__ == "__main__":
    main()
