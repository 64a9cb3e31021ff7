"""The three questions of `axon-peer setup`: `answers` understands them, `config_text` writes them, `look` finds out."""
