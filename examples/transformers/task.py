"""The next byte of Python source code, by GPT-2 as Hugging Face's transformers build it: small, and from its config."""

import hashlib
import sysconfig
from pathlib import Path

import torch
from torch.utils.data import TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel

CONTEXT = 64
"""How many bytes the model looks back."""
FILES = 60
"""How many files of the standard library are read."""
TEST_WINDOWS = 16


class Task:
    """What Axon asks of a task; plain PyTorch."""

    def model(self):
        """About 450,000 parameters. `from_pretrained` would need a network: weights of your own go into `data`."""
        config = GPT2Config(
            vocab_size=256,
            n_positions=CONTEXT,
            n_embd=128,
            n_layer=2,
            n_head=4,
            # Nothing here ends a text: each window is as long as the model can look back.
            bos_token_id=None,
            eos_token_id=None,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
        return GPT2LMHeadModel(config)

    def data(self, split, shard, shards):
        """Windows of source code, as transformers name them: the model makes its own targets of them."""
        windows = torch.cat([cut(path) for path in sources() if is_held_out(path) == (split == "test")])
        if split == "test":
            windows = windows[:: max(1, len(windows) // TEST_WINDOWS)][:TEST_WINDOWS]
        return TensorDataset(windows[shard::shards])

    def loss(self, model, batch):
        """How surprised the model is by the next byte, in nats."""
        (windows,) = batch
        codes = windows.long()
        return model(input_ids=codes, labels=codes, use_cache=False).loss

    def optimizer(self, model):
        """AdamW with a step that suits a transformer of this size."""
        return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))


def sources():
    """Some files of Python's standard library, the same on every machine with the same Python."""
    library = Path(sysconfig.get_path("stdlib"))
    return sorted(library.glob("*.py"), key=name_hash)[:FILES]


def is_held_out(path):
    """One file in ten is never trained on."""
    return name_hash(path)[-1] % 10 == 0


def name_hash(path):
    """Chance that is the same everywhere: a hash of the file's name."""
    return hashlib.sha256(path.name.encode()).digest()


def cut(path):
    """The windows of a file, one after the other."""
    content = path.read_bytes()
    count = len(content) // CONTEXT
    whole = torch.frombuffer(bytearray(content), dtype=torch.uint8)[: count * CONTEXT]
    return whole.view(count, CONTEXT)
