"""Was the work done that is told of? Short pieces of it, chosen after the fact, are done again by somebody else.

While a member takes its local steps it commits by hash to where they have come to (`trainer.marks`). Once a round
counts, the coordinator draws a few (member, segment) by chance (`verification.rates`), and has another member fetch the
start of the segment, take the same steps on the same data with the same seeds (`worker.redo_server`), and say where
they lead. Where that is not what was committed to, others are asked too, and it is judged by how far their ends lie
apart (`verification.judgement`).

This room is the coordinator's part, pure and free of torch: whom to ask (`scheduler`), what is open (`open_checks`),
what fits together (`commitments`).
"""
