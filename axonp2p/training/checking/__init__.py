"""Was the work done that is told of? Short pieces of it, chosen after the fact, are done again by somebody else.

While a member takes its local steps it commits by hash to where they have come to (`marks`). Once a round counts, the
coordinator draws a few (member, segment) by chance (`rates`), and has another member fetch the start of the segment,
take the same steps on the same data with the same seeds (`redo`), and say where they lead. Where that is not what was
committed to, others are asked too, and it is judged by how far their ends lie apart (`opinions`).

Everything but `marks`, `redo`, `sketch` is free of torch: the client's coordinator decides with it.
"""
