"""SHOW: what people see of a training, beside what they see of every job: `client_cli.kinds` names its parts.

`lines` says its events, `text` how it stands and what it came to; `story`, `lanes`, `curves_picture`, `tables` and
`report` make its part of the report; `check` tries its task in the sandbox of a peer or in a plain process (`trial`);
`alone` trains and judges for the demo.
"""
