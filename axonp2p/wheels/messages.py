"""The messages to the daemon of the sandboxed program that unpacks one wheel: headers of frames, each in a `Control`.

    sandbox                                  daemon
      | UnpackedFile(path) ----------------> |  checks the name, makes the file
      | UnpackedPart + bytes --------------> |  counts and writes them
      | ... the next file                    |
      | WheelUnpacked(files) --------------> |  as many as came?
      | or WheelBad(reason) ---------------> |

The daemon makes every file itself, so there is no link, no device and no right in what comes of a wheel that it did not
give.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.jobs.file_names import LONGEST_NAME
from axonp2p.wheels.bundled import MOST_UNPACKED_FILES
from axonp2p.wire.codec import Message

PART_BYTES = 256 * 1024
"""The most bytes of one `UnpackedPart`."""
LONGEST_REASON = 500


class UnpackedFile(Message, tag=True, frozen=True):
    """A file of the wheel follows."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
    """Relative, with forward slashes."""
    executable: bool
    """Whether its owner may execute it, as the wheel says."""


class UnpackedPart(Message, tag=True, frozen=True):
    """The next bytes of the file, as payload."""


class WheelUnpacked(Message, tag=True, frozen=True):
    """That was all of it."""

    files: Annotated[int, msgspec.Meta(ge=0, le=MOST_UNPACKED_FILES)]
    """How many there were."""


class WheelBad(Message, tag=True, frozen=True):
    """It cannot be unpacked."""

    reason: Annotated[str, msgspec.Meta(max_length=LONGEST_REASON)]
    """In a sentence without a subject: "has no RECORD"."""


FromUnpacker = UnpackedFile | UnpackedPart | WheelUnpacked | WheelBad
