"""PROMISE: a slot, promised to a client's key until a time.

A tracker signs a token; the peers that it names hold the slot in their calendars for the key that it names.
"""
