"""SHOW: the status page of the volunteer's daemon, on loopback only; a glance says what runs, why not, what it earned.

`guard` says who is let in, `token` keeps the secret that allows changes, `picture` draws, `words`, `banners` and
`render` write the page, `app` serves it. The page's questions and orders go the same way as the command line's.
"""
