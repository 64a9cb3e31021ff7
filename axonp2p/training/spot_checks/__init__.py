"""The coordinator's checks of members' work: whom to ask, what is open, what fits together. Pure."""
