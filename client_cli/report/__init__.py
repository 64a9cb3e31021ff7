"""SHOW: a job's page while it runs, and the same as one file, `report.html`, that opens anywhere without a network.

Both are made of the job's folder alone, so they say the same. `folding` makes a `story` of events.jsonl, `lanes` says
what each peer did when; `chart` and `..._picture` draw (SVG as text), `tables` holds the numbers behind the pictures,
`job_summary` says how the job stands and what to do about it, `document` puts the whole page together. These decide;
`folder_view` reads the folder, `server` and `serving` show the page on loopback, `files` writes the report, and
`beside` does both while this program works on a job, and tells loggers.
"""
