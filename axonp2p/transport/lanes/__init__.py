"""Connections for bulk alone, one a direction, of two daemons that have a session: TLS on blocking sockets, in threads.

    caller                              listener
      | --- AskLane (session) ------------> |   where the caller wants to send
      | <-- LaneOffer(token) (session) ---- |   also unasked, where the listener wants to send
      | --- "AXONLANE", then TLS ---------> |   on the same port, to the pinned certificate
      | --- token ------------------------> |   32 bytes, once, within ten seconds
      | <-- one byte ---------------------- |
      | --- LaneBegins (session) ---------> |   by whoever sends, after the last of its bulk on the session
      | === parts ========================> |   or the other way; each 4 bytes of length, and its bytes
      | <-- LaneTook(received) (session) -- |   now and then
      | <-- LaneEnded(received) (session) - |   once, whatever ended it: more comes on the session, after that one

The session is whose the lane is: it proves both keys, tells the one that calls what to prove, and cuts the lane when it
ends itself. The lane carries bytes of parts and nothing else; whoever sends decides before each part whether it may go.
"""
