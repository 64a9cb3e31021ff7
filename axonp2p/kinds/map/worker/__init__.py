"""The programs in the sandbox, three deep: the worker, the warm process that has the function loaded, those of calls.

    worker_main  (threads: one hears the daemon, a core_runner for each core)
      |-- warm_process  (one thread; loads the function, forks)
            |-- call_process  (one for each core; makes the calls of one chunk after the other)

A process of calls speaks with its core's thread by a link of its own, so nothing that a function prints, or does to its
descriptors, reaches the daemon's channel. It is killed when its calls are not needed, and forked again after a crash.
"""
