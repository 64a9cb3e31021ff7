"""ALL JOBS: those of this computer on one page (`axon page`), each with a link to its own page.

`listed` says what a job's row shows, which rows come first and which page has them; `document` makes HTML of them.
These decide. `home_view` reads what changed in the folders, and `server` shows both kinds of pages on loopback. How a
page is guarded and kept as new as its folder is in `client_cli.report`.
"""
