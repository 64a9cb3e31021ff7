"""Two tensors with the same bytes share the pages of one file, and what is written to one is not seen in the other."""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path

import pytest
import torch

from axonp2p.tensors.shared_pages import share_pages, write_pages

VALUES = 2**18


def counted(count=VALUES):
    """A tensor that begins where a page begins, as those of the same sizes in two forks begin at the same place."""
    memory = mmap.mmap(-1, count * 4, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(memory, dtype=torch.float32).copy_(torch.arange(count))


def private_kib(tensor):
    """Memory of the mapping that holds the middle of a tensor and belongs to this process alone."""
    inside = tensor.data_ptr() + tensor.numel() * 2
    for mapping in re.split(r"\n(?=[0-9a-f]+-)", Path("/proc/self/smaps").read_text()):
        begin, end = (int(word, 16) for word in mapping.split()[0].split("-"))
        if begin <= inside < end:
            return int(re.search(r"Anonymous:\s+(\d+)", mapping)[1])
    pytest.fail("mapped nowhere")


@pytest.fixture
def file(tmp_path):
    with (tmp_path / "pages").open("w+b") as file:
        yield file.fileno()


def test_equal_tensors_share_pages_until_one_is_written_to(file):
    first, second = counted(), counted()
    view = second[5:]
    write_pages(file, [first])
    assert share_pages(file, [second]) >= VALUES * 4 - 2 * 4096
    assert private_kib(first) == private_kib(second) == 0
    assert torch.equal(first, counted())
    assert torch.equal(second, counted())
    second[VALUES // 2] = -1
    assert view[VALUES // 2 - 5] == -1
    assert torch.equal(first, counted())
    assert private_kib(second) == 4


def test_tensors_that_differ_or_are_small_or_lie_apart_keep_their_own_memory(file):
    rows = counted().view(512, 512)
    mine = [counted(10), counted(), rows.t(), counted().add_(1)]
    write_pages(file, mine)
    theirs = [counted(10), counted().add_(2), rows.clone().t(), counted().add_(1)]
    assert 0 < share_pages(file, theirs) <= VALUES * 4
    assert torch.equal(theirs[1], counted() + 2)
    assert torch.equal(theirs[3], counted() + 1)


def test_a_file_without_room_is_an_error_and_changes_no_tensor(file, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    mine = counted()
    with pytest.raises(OSError, match="No space"):
        write_pages(file, [mine])
    assert torch.equal(mine, counted())


def test_where_there_is_no_room_for_all_no_room_is_kept_for_a_part(file, monkeypatch):
    left, write = VALUES * 4 + 2**19, os.pwrite

    def until_full(file, data, offset):
        nonlocal left
        if not left:
            raise OSError(28, "No space left on device")
        written = write(file, data[:left], offset)
        left -= written
        return written

    monkeypatch.setattr("os.pwrite", until_full)
    mine = [counted(), counted().add_(1)]
    with pytest.raises(OSError, match="No space"):
        write_pages(file, mine)
    assert os.fstat(file).st_size <= VALUES * 4 + 2 * 4096
    assert torch.equal(mine[0], counted())
    assert torch.equal(mine[1], counted().add_(1))
    theirs = [counted(), counted().add_(1)]
    assert 0 < share_pages(file, theirs) <= VALUES * 4
    assert torch.equal(theirs[1], counted().add_(1))
