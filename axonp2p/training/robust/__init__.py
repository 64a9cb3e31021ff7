"""Rules that make one vector of many of which some are lies. Pure: rows in, one row out.

    rows      one for each member, all of the same length: [members, values], float32
    weights   one for each member: [members], above 0
    result    [values], float32

`aggregate` knows them all, and has those that look at each value by itself; `by_distance` has those that look at whole
rows: of these only the distances between rows matter, which are taken once. A row is what a member says of one part of
a slice, so those rules judge part by part (docs/decisions/0027).

Nothing here knows which member lies, or remembers who did. A rule bears `hostile` liars that know everything, all
others' rows too, and agree with each other on what to say.
"""
