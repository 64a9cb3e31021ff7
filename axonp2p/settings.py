"""Settings: one home folder a program, one config.toml in it, read once at start.

A flag wins over the environment (`AXON_<SECTION>_<KEY>`), which wins over `config.toml`, which wins over the default.
A section within a section is named in full: `AXON_PEER_IN_USE_CORES`.
`AXON_HOME` (or `--home`) moves everything; without it the folders are the desktop's usual ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import platformdirs

from axonp2p.errors import SettingsError
from axonp2p.settings_check import add_environment, checked_file

Mebibytes = Annotated[int, msgspec.Meta(extra={"unit": "MiB"})]
Mbits = Annotated[int, msgspec.Meta(extra={"unit": "Mbit/s"})]
Rate = Annotated[float, msgspec.Meta(extra={"unit": "Mbit/s"})]
Seconds = Annotated[int, msgspec.Meta(extra={"unit": "s"})]
Minutes = Annotated[float, msgspec.Meta(extra={"unit": "min"})]
Days = Annotated[float, msgspec.Meta(extra={"unit": "d"})]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    pass


class ClientSettings(_Section, frozen=True):
    """`[client]`"""

    trackers: list[str] = []
    """Addresses of trackers, as `axon-tracker run` prints them."""
    dht: bool = True
    """Whether the DHT is asked when trackers are slow or dead."""
    dht_contacts: list[str] = []
    """HOST:PORT (UDP) of DHT nodes to begin with, beside those that trackers and the last run name."""
    lan: bool = True
    """Whether it looks for peers and trackers on the local network (zeroconf) when nobody else is known."""


class UseSettings(_Section, frozen=True):
    """`[peer.in-use]` and `[peer.not-in-use]`: what holds while somebody sits at the machine, and while nobody does."""

    run: bool = True
    """Whether jobs run at all."""
    cores: int = 0
    """Cores for each job; 0: as many as `cores` of `[peer]` says. Fewer are held to at once."""
    memory_mb: Mebibytes = 0
    """Memory for all jobs together, in MiB; over it they are handed back. 0: as each job's own limit says."""
    others_cpu: int = 25
    """Percent of all cores: jobs wait while other programs use more. 100: never wait for that."""


class PeerSettings(_Section, frozen=True):
    """`[peer]`"""

    trackers: list[str] = []
    """Addresses of trackers, as `axon-tracker run` prints them."""
    listen: str = "0.0.0.0:7071"
    """HOST:PORT that other peers and clients dial; port 0 takes a free one."""
    name: str = ""
    """The name that people see; made from the key when empty."""
    cores: int = 0
    """Cores for each job; 0 means half of the machine's, shared among the slots."""
    memory_mb: Mebibytes = 0
    """Memory for each job in MiB; 0 means half of the machine's, shared among the slots."""
    disk_mb: Mebibytes = 2048
    """Disk for each job in MiB: bundle, what the job is brought besides, log and /tmp."""
    slots: int = 1
    """How many jobs at a time."""
    kinds: list[str] = []
    """Which kinds of job may run here, such as "train"; empty: all."""
    standby: bool = True
    """Whether a worker that has loaded PyTorch, and nothing of a job, waits for the next one: some 150 MiB."""
    priority: str = "idle"
    """When jobs have their turn beside other programs: "idle" (when none wants one), "low" or "normal"."""
    wheels: str = "any"
    """Which packages jobs may bring along: "any", "listed" (in wheels.txt in the home), or "none"."""
    wheels_mb: Mebibytes = 2048
    """MiB of disk in which such packages are kept for later jobs, and the most that one job may bring, unpacked; 0:
    none are taken."""
    gpu: bool = False
    """Whether jobs may have this machine's GPUs, one card a job. It opens the card's driver to strangers' code."""
    gpu_memory_mb: Mebibytes = 0
    """MiB of a card that its job may use; 0: all of it."""
    gpu_power_percent: int = 0
    """Percent of the power that a card usually may draw, while a job has it; only root may set that. 0: as it is."""
    check_client_address: bool = True
    """Whether a client must call from the address in its token."""
    issue_tokens: bool = True
    """Whether this peer signs tokens for itself, so that work goes on when no tracker lives."""
    dht: bool = True
    """Whether it takes part in the DHT: as a node when others can reach it, else only by asking."""
    dht_contacts: list[str] = []
    """HOST:PORT (UDP) of DHT nodes to begin with, beside those that trackers and the last run name."""
    lan: bool = True
    """Whether it tells the local network of itself and looks for others there (zeroconf)."""
    datasets: dict[str, str] = {}
    """Folders of this machine that jobs may ask to read, by the names under which they are offered."""
    upload_mbit: Mbits = 0
    """Mbit/s that this machine sends; 0 when you do not want to say."""
    download_mbit: Mbits = 0
    """Mbit/s that this machine receives; 0 when you do not want to say."""
    upload_limit_mbit: Rate = 0.0
    """Mbit/s that all jobs together may send; 0: no limit."""
    download_limit_mbit: Rate = 0.0
    """Mbit/s that all jobs together may receive; 0: no limit."""
    hours: list[str] = []
    """When jobs may run, such as "Mon-Fri 18:00-08:00" or "Sat,Sun"; local time. Empty: at any time."""
    on_battery: bool = False
    """Whether jobs run on battery."""
    idle_minutes: Minutes = 3.0
    """Without keyboard or mouse for so long, the machine counts as not in use, where that can be read."""
    yield_to: list[str] = []
    """Programs that have the machine for themselves while they run, such as "blender"."""
    others_mbit: Mbits = 0
    """Mbit/s of other programs' traffic above which jobs wait; 0: do not look."""
    metered: bool = False
    """Whether jobs run on a network that costs by the byte, where that can be read."""
    hottest_c: int = 90
    """Degrees Celsius of the processor above which jobs wait, where that can be read; 0: do not look."""
    keep_memory_free_mb: Mebibytes = 512
    """Jobs are handed back when programs can get less than this, in MiB."""
    keep_disk_free_mb: Mebibytes = 1024
    """No job begins while less than this is free, in MiB."""
    hand_back_minutes: Minutes = 2.0
    """Jobs that have waited for so long are handed back."""
    map_port: bool = True
    """Whether the router is asked to forward the port (UPnP), where axonp2p[upnp] is installed."""
    relay: bool = False
    """Whether it carries connections to peers that nobody can dial, while others can dial this one."""
    relay_mbit: Rate = 5.0
    """Mbit/s of all that it carries together; 0: no limit."""
    relay_hourly_mb: Mebibytes = 512
    """MiB that it carries to and from one peer in an hour, and the same for one caller; 0: no limit."""
    page: str = "127.0.0.1:7072"
    """HOST:PORT of the status page, on loopback only; empty: none."""
    in_use: UseSettings = UseSettings()
    not_in_use: UseSettings = UseSettings()


class TrackerSettings(_Section, frozen=True):
    """`[tracker]`"""

    listen: str = "0.0.0.0:7070"
    """HOST:PORT that peers and clients reach; port 0 takes a free one."""
    public_address: str = ""
    """HOST:PORT that others are told, when it is not what `listen` says: behind a port forward, say."""
    certificate: str = ""
    """File of a certificate (PEM, the tracker's own first) for which an authority vouches; empty: one of its own, which
    its address pins."""
    certificate_key: str = ""
    """File of that certificate's key (PEM, without a password)."""
    trusted_proxies: list[str] = []
    """Networks of TCP proxies, such as "127.0.0.1" or "192.0.2.0/24", that say by the PROXY protocol who calls."""
    page_listen: str = "127.0.0.1:7073"
    """HOST:PORT of the operator's page, on loopback only; empty: none."""
    metrics_listen: str = "127.0.0.1:7074"
    """HOST:PORT of the metrics for Prometheus, without TLS; empty: none."""
    trackers: list[str] = []
    """Addresses of other trackers to share the table with; more are learnt from them."""
    vouches_for: list[str] = []
    """Addresses of trackers that peers and clients which trust this one shall trust as well; it shares the table with
    them too. At most 16."""
    announce_every: Seconds = 300
    """Seconds between a peer's announces (60 to 1200); a row is valid for twice that."""
    owing: str = "open"
    """The most a client may owe: "open": any amount; "limited": `owing-credits`; "earned": what it earned itself."""
    owing_credits: float = 0.0
    """Credits that a client may owe more than it earned, with owing = "limited"."""
    vouched_clients: list[str] = []
    """Ids of clients that the operator vouches for: they may owe any amount, and what they give counts as earned."""
    datagrams: bool = True
    """Whether it takes announces by UDP datagram as well, at the port of `listen`."""
    relay: bool = True
    """Whether it carries connections to peers that nobody can dial."""
    relay_mbit: Rate = 100.0
    """Mbit/s of all that it carries together; 0: no limit."""
    relay_hourly_mb: Mebibytes = 4096
    """MiB that it carries to and from one peer in an hour, and the same for one caller; 0: no limit."""
    hosted_jobs: int = 4
    """How many jobs of clients that went away it holds at once; 0: none."""
    hosted_jobs_of_one: int = 2
    """How many of those may be of one client, or come from one IP address."""
    hosted_disk_mb: Mebibytes = 4096
    """Disk for each of them in MiB: bundle, states, weights."""
    hosted_days: Days = 14.0
    """Days for which one may run, and again for which it is kept when it is over."""


class Settings(_Section, frozen=True):
    """The whole of config.toml."""

    client: ClientSettings = ClientSettings()
    peer: PeerSettings = PeerSettings()
    tracker: TrackerSettings = TrackerSettings()


T = TypeVar("T", bound=_Section)
CONFIG = "config.toml"


class ToldSetting(msgspec.Struct, frozen=True):
    """One setting as it holds, and where it comes from: a variable of the environment, config.toml, or the default."""

    name: str
    value: Any
    source: str


def told_settings(home: Path, section: str, kind: type[_Section]) -> list[ToldSetting]:
    """All settings of one section. Raises `SettingsError`."""
    holds, path = getattr(read_settings(home), section), home / CONFIG
    named = msgspec.toml.decode(path.read_bytes()).get(section, {}) if path.exists() else {}
    found = []
    for field in msgspec.structs.fields(kind):
        variable, value = f"AXON_{section}_{field.name}".upper(), getattr(holds, field.name)
        source = variable if variable in os.environ else CONFIG if field.encode_name in named else "default"
        found.append(ToldSetting(field.encode_name, value, source))
    return found


def home_path(program: str, flag: Path | None, environment: Mapping[str, str] = os.environ) -> Path:
    """Where `program` ("client", "peer" or "tracker") keeps key, settings and state, whether or not it is there."""
    if flag is not None:
        home = flag
    elif environment.get("AXON_HOME"):
        home = Path(environment["AXON_HOME"])
    else:
        home = Path(platformdirs.user_data_dir("axon", appauthor=False)) / program
    return home.expanduser().absolute()


def home_folder(program: str, flag: Path | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder at `home_path`; made, for its owner alone. Raises `SettingsError`."""
    home = home_path(program, flag, environment)
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SettingsError(
            f"cannot make the folder {home}: {error.strerror}", fix="choose another with --home DIR"
        ) from error
    return home


def read_settings(home: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings in `home/config.toml`, overridden by the environment. Raises `SettingsError`."""
    path = home / CONFIG
    try:
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise SettingsError(f"{path}: {error}") from error
    return parse_settings(content, path, environment)


def parse_settings(content: bytes, path: Path, environment: Mapping[str, str]) -> Settings:
    """The settings in the TOML text `content`, called `path`, overridden by the environment. Raises `SettingsError`."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}, line {line}: not UTF-8 text", fix="save the file as UTF-8") from error
    plain = checked_file(text, path, Settings)
    add_environment(plain, environment, Settings, may_hold_spaces=_MAY_HOLD_SPACES)
    # strict=False turns the environment's text into numbers and truth values; all of it was looked at by now.
    return msgspec.convert(plain, Settings, strict=False)


_MAY_HOLD_SPACES = frozenset({"hours", "yield_to"})
"""Lists whose entries stand apart by semicolons in a variable, not by spaces."""


def with_flags(section: T, **flags: Any) -> T:
    """`section` with the flags that were given (None means: not given)."""
    return msgspec.structs.replace(section, **{name: value for name, value in flags.items() if value not in (None, ())})
