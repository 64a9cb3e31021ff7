"""The judgement of redone steps, and evidence that anybody can examine. Pure."""
