"""The parts of `kind = "map"` that people see: lines in a terminal, the panel of the page and the report, `axon check`.

`story` is what the events say has happened to its calls; `lines` and `text` are its words, `lanes` and `tables` its
pictures and numbers.
"""
