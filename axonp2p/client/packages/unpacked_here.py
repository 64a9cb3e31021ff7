"""Wheels of a job, unpacked on this computer, where `axon check` tries the job before it is sent.

They come from the index of this computer's owner, as pip would install them here; peers unpack them behind their wall.
"""

from __future__ import annotations

from pathlib import Path

from axonp2p.errors import AxonError, PackagesWrong
from axonp2p.jobs.bundle import Bundle
from axonp2p.wheels.bundled import MOST_UNPACKED_BYTES, wheels_among
from axonp2p.wheels.unpacker import NoWheel, ToldFiles, unpack
from axonp2p.wheels.wheel_writer import WheelWriter


def unpack_wheels(bundle: Bundle, into: Path) -> None:
    """Unpack the wheels of the bundle below the folder `into`, as they lie in a sandbox.

    Raises `PackagesWrong` for what peers would not take either. Blocks.
    """
    sources = {file.path: file.source for file in bundle.files}
    for wheel in wheels_among(bundle.blob.files):
        folder = into / wheel.unpacked
        folder.mkdir(parents=True)
        for above in (folder, *folder.parents[:2]):
            above.chmod(0o755)  # a worker of root's is another user
        writer = WheelWriter(wheel.title, folder, MOST_UNPACKED_BYTES)
        try:
            unpack(sources[wheel.path], ToldFiles(lambda message, payload=b"", to=writer: to.hear(message, payload)))
        except NoWheel as error:
            raise PackagesWrong(f"{wheel.title} {error}", fix="bring another version of it") from error
        except AxonError as error:
            raise PackagesWrong(error.message, fix="bring another version of it") from error
        finally:
            writer.close()
