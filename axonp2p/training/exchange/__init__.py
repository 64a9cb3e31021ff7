"""One exchange of differences among the members of a round: a butterfly of slices, without I/O.

`terms` says who takes part and how, `slices` who owns what. `slice_exchange` is one member's side of it, `own_slice`
what it does as an owner: it waits no longer than `arrivals` has learnt. `error_feedback` is what a member holds
back from one exchange to the next, `reorder_buffer` what came before its time.

    member                                owner of a slice
      | SlicePart(gather, own values) ----> |  decodes, waits for all, or until its deadline for half
      | <---- SlicePart(result, the mean) - |  to all members and listeners, with who was left out of it

Nothing is lost on the way: what a coding drops stays in the sender's leftover, what the coding of a mean drops goes
into its owner's, and what came too late goes back into its sender's. So after every exchange, whatever happened in it,

    sum of weight * sending = sum of weights in the mean * mean applied + sum of weight * leftover
"""
