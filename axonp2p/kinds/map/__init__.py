"""`kind = "map"`: a bag of independent calls of a function, each of which has exactly one result.

The client holds the only queue (`queue`); peers get chunks of calls, and the size of a chunk aims at a second. Values
of arguments travel as pickles that are opened in the sandbox alone; results come back as plain values, which the client
checks before it believes them. A result counts once it is in results.sqlite, in one transaction with what its peer is
owed for it. Where the job has `reduce`, calls of the same queue merge the results of others (`reduce_tree`).

    client (`driver`)                                worker (`worker`)
      PrepareCalls  ------------------------------>    loads the function once, in the process that all others
      AtWork        <------------------------------    are forked from; says what it has from an earlier life
      BeginChunk, with calls  -------------------->    keeps one running and one waiting chunk for each core
      ChunkBegun    <------------------------------    a child begins
      ResultPart, CallResults  <------------------     results of some of the calls, within bulk credit
      ChunkOver     <------------------------------    all calls have their result, or why the others have none
      EndChunk      ------------------------------>    another peer was sooner, or the calls are wanted back
"""
