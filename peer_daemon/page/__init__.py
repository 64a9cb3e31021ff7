"""SHOW: the status page of the volunteer's daemon, on loopback only; a glance says what runs, why not, what it earned.

`guard` says who is let in, `token` keeps the secret that allows changes, `picture` draws, `words`, `banners` and
`render` write the page, `app` serves it. What the page asks and orders goes the same way as the command line's.
"""
