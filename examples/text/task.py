"""The next byte of Python source code, by a small transformer that reads bytes."""

import hashlib
import sysconfig
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

import axonp2p

CONTEXT = 128
"""How many bytes the model looks back."""
WIDTH = 128
LAYERS = 5
HEADS = 4

FILES = 120
"""How many files of the standard library are read: enough to learn from, and quick to load."""
TEST_WINDOWS = 16
"""Enough to see progress; evaluating after each round should cost little beside training."""


class Task:
    """What Axon asks of a task; plain PyTorch but for the optimiser."""

    def model(self):
        """About a million parameters."""
        return ByteModel()

    def data(self, split, shard, shards):
        """Windows of source code: one byte longer than the context, so that each byte has a next one."""
        windows = torch.cat([cut(path) for path in sources() if is_held_out(path) == (split == "test")])
        if split == "test":
            windows = windows[:: max(1, len(windows) // TEST_WINDOWS)][:TEST_WINDOWS]
        return TensorDataset(windows[shard::shards])

    def loss(self, model, batch):
        """How surprised the model is by the next byte, in nats."""
        (windows,) = batch
        codes = windows.long()
        guesses = model(codes[:, :-1])
        return nn.functional.cross_entropy(guesses.flatten(0, 1), codes[:, 1:].flatten())

    def optimizer(self, model):
        """Muon for the matrices of the blocks, AdamW for the tables, biases and norms."""
        return axonp2p.muon(model, lr=8e-3)


class ByteModel(nn.Module):
    """A transformer that sees only what came before."""

    def __init__(self):
        super().__init__()
        self.bytes = nn.Embedding(256, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        for table in (self.bytes, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, codes):
        """For each place, how likely each byte is to come next (logits)."""
        seen = self.bytes(codes) + self.places.weight[: codes.shape[1]]
        # The same table reads bytes and guesses them.
        return self.norm(self.blocks(seen)) @ self.bytes.weight.T


class Block(nn.Module):
    """Look back, then think about it."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.question = nn.Linear(WIDTH, 3 * WIDTH)
        self.answer = nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, seen):
        """The same shape, with what was found added."""
        batch, length, _ = seen.shape
        parts = self.question(self.norm(seen)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        seen = seen + self.answer(found.transpose(1, 2).reshape(batch, length, WIDTH))
        return seen + self.think(seen)


def sources():
    """Some files of Python's standard library, the same on every machine with the same Python."""
    library = Path(sysconfig.get_path("stdlib"))
    files = [
        path for folder in ("", "asyncio", "email", "json", "unittest") for path in (library / folder).glob("*.py")
    ]
    return sorted(files, key=lambda path: name_hash(path))[:FILES]


def is_held_out(path):
    """One file in ten is never trained on."""
    return name_hash(path)[-1] % 10 == 0


def name_hash(path):
    """Chance that is the same everywhere: a hash of the folder's and the file's names."""
    return hashlib.sha256(f"{path.parent.name}/{path.name}".encode()).digest()


def cut(path):
    """The windows of a file, one after the other."""
    content = path.read_bytes()
    count = len(content) // (CONTEXT + 1)
    whole = torch.frombuffer(bytearray(content), dtype=torch.uint8)[: count * (CONTEXT + 1)]
    return whole.view(count, CONTEXT + 1)
