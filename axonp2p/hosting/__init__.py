"""Jobs that a host carries on for a client who goes away: the host's side, and what a client says to it.

A client whose computer will be off hands its job to a host that is always on. The host runs the same coordinator that
the client would have run, in a process of its own, on a folder that is laid out as the client's; and whoever proves the
client's key may look at that folder, copy what is new of it, and steer the job. The host runs no code of the job's: it
coordinates, and the task runs at the peers.

The host is given the bundle and a key that is good for this one job (`job_key`). The client's own key never
leaves its computer.

    client                                            host               (a session: both have proved their keys)
      | HostJob(job, key, blob) + the manifest -----> |  may it come? (`admission`)
      | <-------------- BlobHave(pieces)              |  what is there from before a cut
      | BlobPiece(number) + bytes ------------------> |  each of the others, checked by its hash
      | <-------------- JobHosted                     |  the process has begun

      | AskJobs ------------------------------------> |
      | <-------------- HostedJobs                    |  those of this client
      | AskFolder(job) -----------------------------> |
      | <-------------- FolderState + job.json        |  which files there are (`folder_files` knows all names)
      | AskPart(job, name, offset) -----------------> |
      | <-------------- HostedFilePart + bytes        |
      | TellJob(job, wish) -------------------------> |
      | <-------------- JobTold                       |

A second host may keep a copy of what the first one has (`copying`). The client hands the job over to both; the second
begins nothing, and asks the first again and again for what is new.
"""
