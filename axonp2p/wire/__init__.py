"""SAY: which bytes two strangers exchange.

A message is a frozen `Message` struct. On the wire it is one msgpack map; every map is bounded before it is decoded
and checked against its type after. A message that must be believed later, or by others, travels as `Signed`: the
exact bytes that were signed, so that they are checked before they are decoded.
"""
