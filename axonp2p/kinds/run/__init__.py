"""One command on N peers: `kind = "run"`.

A job has `copies` copies of one command, each with its own index. `section` reads its keys in job.toml, `command` makes
the words and variables of one copy. `copies` decides which copy starts at which peer, which one again, and which one a
second time because it stands still. `messages` is what the client and the `worker` say to each
other: the worker starts the command as its child, reports its end, and hands out its files (`outputs`) when it is
asked for them. `results` keeps them on the client's disk: files first, then a line in results.csv, and only the line
makes them a result. `events` is what a person sees.

    client                                       worker of a peer
      | ReportCopy ---------------------------->  |  to a worker that waited for its client
      | <--------- CopyStarted, CopyExited, NoCopy |
      | BeginCopy(index, attempt, command) ---->  |  starts the command in /job
      | <------------------------- CopyStarted    |
      | <------------------------- CopyExited     |  its code, and what it used
      | SendOutputs --------------------------->  |  after a good end
      | <------ OutputPart ..., OutputFile, ...   |  file after file
      | <------------------------- OutputsSent    |
      | EndCopy ------------------------------->  |  another peer was sooner: the command is killed
"""
