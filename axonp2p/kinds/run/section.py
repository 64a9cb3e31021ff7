"""`[run]` of job.toml: one command, how many copies of it, and what becomes of those that end badly. Pure."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any

import msgspec

from axonp2p.jobs.file_names import why_bad_name
from axonp2p.jobs.job_file_keys import Wrong, list_of, measured, one_of, shown, whole, wrong_value, yes_or_no
from axonp2p.jobs.section import Section
from axonp2p.jobs.spec import JobSpec
from axonp2p.kinds.run.messages import (
    LONGEST_PATTERN,
    LONGEST_TIMEOUT_S,
    LONGEST_VALUE,
    MOST_COPIES,
    MOST_PATTERNS,
    MOST_VARIABLES,
    MOST_WORDS,
    VARIABLE,
    BeginCopy,
    Patterns,
    Restart,
    Timeout,
    Variables,
)

LONGEST_COMMAND = 2000
"""Characters: with all its variables it must fit the header of one frame."""
MOST_ATTEMPTS = 100
PYTHON = "python"
"""The command's first word for the interpreter of the sandbox."""
_EXAMPLE = '"python work.py --seed {index}"'

_OF_EACH_COPY = re.compile(r"AXON_.*|RANK|WORLD_SIZE|LOCAL_RANK")
_CHANGES_LOADING = re.compile(
    r"LD_.*|PATH|HOME|TMPDIR|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|OPENSSL_(?:CONF|ENGINES|MODULES)"
    r"|PYTHON(?:PATH|STARTUP|HOME|PLATLIBDIR|USERBASE|EXECUTABLE|INSPECT|BREAKPOINT|WARNINGS|SAFEPATH|CASEOK"
    r"|NOUSERSITE|PYCACHEPREFIX|MALLOC.*)"
)
"""Variables by which another program, library or module would be loaded than the command names."""


class RunSection(msgspec.Struct, frozen=True, kw_only=True):
    """`[run]`: what is run, and how often."""

    command: Annotated[str, msgspec.Meta(max_length=LONGEST_COMMAND)] = ""
    """As it stands in the file; `words_of` makes the words of one copy."""
    copies: Annotated[int, msgspec.Meta(ge=1, le=MOST_COPIES)] = 1
    env: Variables = {}
    """Variables that each copy finds beside its own."""
    outputs: Patterns = []
    """Names or patterns of the files in AXON_OUT that come home."""
    restart: Restart = "on-failure"
    attempts: Annotated[int, msgspec.Meta(ge=1, le=MOST_ATTEMPTS)] = 3
    """How often a copy may end by itself before its result is that it failed (`always`: in all)."""
    timeout: Timeout = 0
    """Seconds that one attempt may take; 0: as long as it takes."""
    together: bool = False
    """Whether all copies run at once, or none."""


def order_for(job: str, section: RunSection, index: int, attempt: int) -> BeginCopy:
    """The order to a worker to begin."""
    return BeginCopy(
        job=job,
        index=index,
        copies=section.copies,
        attempt=attempt,
        command=words_of(section, index, attempt),
        env=section.env,
        timeout=section.timeout,
    )


def words_of(section: RunSection, index: int, attempt: int) -> list[str]:
    """The command in words, with this copy's own numbers in them."""
    numbers = {"{index}": index, "{copies}": section.copies, "{attempt}": attempt}
    words = shlex.split(section.command)
    for placeholder, number in numbers.items():
        words = [word.replace(placeholder, str(number)) for word in words]
    return words


def _command(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_value(f"expected str, {shown(value)}", _EXAMPLE)
    if len(value) > LONGEST_COMMAND:
        raise wrong_value(f"expected at most {LONGEST_COMMAND} characters, got {len(value)}", _EXAMPLE)
    if "\0" in value:
        raise wrong_value("a command has no character 0", _EXAMPLE)
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise wrong_value(f"its quotes do not close: {str(error).lower()}", _EXAMPLE) from None
    if not words:
        raise wrong_value("there is nothing to run", _EXAMPLE)
    if len(words) > MOST_WORDS:
        raise wrong_value(f"expected at most {MOST_WORDS} words, got {len(words)}", _EXAMPLE)
    if words[0] != PYTHON and (reason := why_bad_name(_in_the_bundle(words[0]))):
        problem = f'"{words[0][:60]}" is neither python nor a file of the job\'s folder: {reason}'
        raise wrong_value(f"{problem}; there is no shell", _EXAMPLE)
    for name in _files_of(words):
        if reason := why_bad_name(name):
            raise wrong_value(f'"{name[:60]}" is no file of the job\'s folder: {reason}', _EXAMPLE)
    return value


def _variables(value: Any) -> dict[str, str]:
    example = '{SEED = "7"}'
    if not isinstance(value, dict):
        raise wrong_value(f"expected a table of names and texts, {shown(value)}", example)
    if len(value) > MOST_VARIABLES:
        raise wrong_value(f"expected at most {MOST_VARIABLES} variables, got {len(value)}", example)
    return {_variable(name): _variable_value(name, text) for name, text in value.items()}


def _variable(name: str) -> str:
    if not re.fullmatch(VARIABLE, name):
        problem = f'"{name[:60]}": expected a name of at most 64 letters, digits and _, no digit first'
        raise wrong_value(problem, '{SEED = "7"}')
    if _OF_EACH_COPY.fullmatch(name):
        raise wrong_value(f"{name} is set for each copy by itself", '{SEED = "7"}')
    if _CHANGES_LOADING.fullmatch(name):
        raise wrong_value(f"{name} changes which programs or modules are loaded", '{SEED = "7"}')
    return name


def _variable_value(name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or "\0" in value:
        raise wrong_value(f"{name}: expected a text, {shown(value)}", f'{{{name} = "7"}}')
    if len(value) > LONGEST_VALUE:
        problem = f"{name}: expected at most {LONGEST_VALUE} characters, got {len(value)}"
        raise wrong_value(problem, f'{{{name} = "7"}}')
    return value


def _pattern(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_value(f"expected str, {shown(value)}", '"*.json"')
    if len(value) > LONGEST_PATTERN:
        raise wrong_value(f"expected at most {LONGEST_PATTERN} characters, got {len(value)}", '"*.json"')
    if reason := why_bad_name(value):
        raise wrong_value(f'"{value[:60]}" fits no file below AXON_OUT: {reason}', '"*.json"')
    return value


class RunJob(JobSpec, frozen=True, kw_only=True):
    """The whole of job.toml."""

    run: RunSection = RunSection()


def _check_together(spec: RunJob) -> None:
    need, section = spec.need, spec.run
    if not section.command:
        raise Wrong("run", "command", "a job of this kind needs a command", f"command = {_EXAMPLE}")
    if section.together and section.copies > need.peers:
        problem = f"{section.copies} copies at once need as many peers, and peers is {need.peers}"
        raise Wrong("run", "together", problem, f"peers = {section.copies}")


def _files(spec: RunJob) -> list[str]:
    return _files_of(shlex.split(spec.run.command))


def _files_of(words: list[str]) -> list[str]:
    """The program and, where that is Python, the script that it is to run; none where its name differs by copy."""
    if words[:1] != [PYTHON]:
        named = words[:1]
    else:
        # An option that stands apart from its value is followed by no script that we could tell.
        options = 1
        while options < len(words) and re.fullmatch(r"-[bBdEiIOPqsSuvx]+", words[options]):
            options += 1
        named = [word for word in words[options : options + 1] if not word.startswith("-")]
    return [_in_the_bundle(name) for name in named if "{" not in name]


def _in_the_bundle(word: str) -> str:
    return word.removeprefix("./")


SECTION = Section(
    name="run",
    spec=RunJob,
    struct=RunSection,
    rules={
        "command": _command,
        "copies": whole(1, MOST_COPIES, 8),
        "env": _variables,
        "outputs": list_of(_pattern, MOST_PATTERNS, "*.json"),
        "restart": one_of("never", "on-failure", "always"),
        "attempts": whole(1, MOST_ATTEMPTS, 3),
        "timeout": measured("s", 0, LONGEST_TIMEOUT_S, "2 h"),
        "together": yes_or_no,
    },
    above={},
    foreign={},
    check_together=_check_together,
    files=_files,
)
"""The keys of a job of this kind in its own section of job.toml."""
