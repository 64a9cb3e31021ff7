"""SHOW: the status page of the volunteer's daemon, on loopback only; one glance says what runs, why not, what it earned.

`guard` says who is let in, `token` keeps the secret that allows changes, `picture` draws, `words` and `render` write the
page, `app` serves it. What the page may ask and order is `control.server`'s, the same as the command line's.
"""
