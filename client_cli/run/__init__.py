"""SHOW: what people see of a job that runs copies of one command, beside what they see of every job.

`client_cli.kinds` names its parts. `lines` says its events, `text` how it stands and what it came to; `story`,
`lanes`, `tables` and `report` make its part of the report; `check` tries its command in the sandbox (`trial`).
"""
