"""The part of the table that nobody owns: rows held by the peers themselves, in a Kademlia DHT over UDP.

`kademlia` and `rpcudp` stay underneath, pinned; docs/protocol/dht.md lists what our own subclasses replace in them.
One compact signed row a peer is stored unchanged under the key of its peer and under index keys that follow from the
row itself, so that every holder and every reader can check both that a row is true and that it stands where it belongs.
"""
