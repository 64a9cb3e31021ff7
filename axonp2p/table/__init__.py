"""FIND: the table of peers. A row is what one peer says of itself, signed by its key.

The higher sequence number wins; an expired row is no row; a withdrawal is a row without a capability.
The content of a capability is the `peers` room's business: here it is a bounded map that travels unread.
"""
