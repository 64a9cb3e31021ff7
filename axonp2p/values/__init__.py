"""Plain values to bytes and back: what comes back from a stranger's computer, in a form that holds data and no code.

The form is msgpack. A type that msgpack does not have is an extension (`forms`). A value has one form only, so two
results are equal when their bytes are: lengths and numbers are as short as they can be, sets are sorted, arrays are in
C order and little endian, and every NaN has the same bits. Dicts keep their order, which is part of the value; 1, 1.0
and True differ, and so do 0.0 and -0.0.

A reader looks at each length, shape and depth before it makes anything of that size (`bounds`), and refuses what is not
the one form of a value.
"""
