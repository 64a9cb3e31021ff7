"""How a job stands: one word, one sentence, and what to do about it where something is to be done. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.client.events.events import JobFinished, JobPaused
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.plain_text import plural
from client_cli.report.kind_report import report_of
from client_cli.report.story import PeerStory, Story
from client_cli.text.event_text import waits_for_workers
from client_cli.text.kind_text import Command, KindWords, text_of
from client_cli.text.render import duration_text

LOST_TOLD = 3
_BEFORE_TRAINING = {
    JobState.SUBMITTED: "is submitted",
    JobState.FINDING: "looks for peers and measures their round trips",
    JobState.RESERVING: "reserves peers",
    JobState.SENDING: "sends the bundle",
}


@dataclass(frozen=True)
class View:
    """A job's folder at one moment."""

    record: JobRecord
    story: Story
    at_work: bool
    """Whether some program works on the job."""
    now: float
    """Unix seconds."""
    folder: str
    fetched: bool = False
    """Whether its result and logs were copied there already."""

    @property
    def words(self) -> KindWords:
        """Of its kind of job."""
        return text_of(self.record.kind).words

    @property
    def over(self) -> bool:
        """Whether nothing more will happen by itself."""
        return is_over(self.record.state) or not self.at_work


@dataclass(frozen=True)
class JobBanner:
    """`kind`: "bad", "warn" or "good". `fix`: a command, or empty; `or_else`: in words."""

    kind: str
    title: str
    text: str
    fix: str = ""
    or_else: str = ""


@dataclass(frozen=True)
class JobSummary:
    """`look` is one of `signs`' states; `word` names it."""

    look: str
    word: str
    sentence: str
    banners: tuple[JobBanner, ...] = ()


def summary_of(view: View, command: Command) -> JobSummary:
    """How the job stands."""
    record = view.record
    if record.state is JobState.FINISHED:
        return _finished(view, command)
    if record.state is JobState.FAILED:
        return _failed(view, command)
    if record.state is JobState.PAUSED:
        return _paused(view, command)
    if record.state is JobState.CANCELLED:
        sentence = f"cancelled {view.words.after(record.done, record.units)}"
        return JobSummary("cancelled", "CANCELLED", sentence, (_cancelled(view, command),))
    if not view.at_work:
        return _interrupted(view, command)
    return _at_work(view, command)


def _cancelled(view: View, command: Command) -> JobBanner:
    record = view.record
    if record.kept and KINDS[record.kind].write_round:
        text = f"It cannot continue. {plural(record.kept, view.words.unit)} {_are(record.kept)} kept."
        fetch = command("fetch", record.id, "--round", "last", "-o", "OUT")
        return JobBanner("warn", "The job was cancelled", text, fetch, "brings the weights of the last one.")
    return JobBanner("warn", "The job was cancelled", "Nothing of it is kept to continue from.",
                     command("submit", record.folder), "does it from the beginning.")  # fmt: skip


def _finished(view: View, command: Command) -> JobSummary:
    record, last = view.record, view.story.last
    took = f" in {duration_text(last.seconds)}" if isinstance(last, JobFinished) else ""
    fetch = "" if view.fetched else command("fetch", record.id, "-o", "OUT")
    title = f"The {view.words.result} are here"
    get = JobBanner("good", title, f"They are in {view.folder}.", fetch, view.words.fetching)
    banners: tuple[JobBanner, ...] = (get,)
    if short := report_of(record.kind).shortfall(view.story, record.id, command):
        banners = (JobBanner("bad", short.title, short.text, short.fix, short.or_else), get)
    return JobSummary("finished", "FINISHED", f"{view.words.finished(record)}{took}", banners)


def _failed(view: View, command: Command) -> JobSummary:
    record = view.record
    if record.error is None:
        fix = command("resume", record.id)
        return JobSummary("failed", "FAILED", "the job failed", (JobBanner("bad", "The job failed", "", fix),))
    error = record.error
    kept = f" {plural(record.kept, view.words.unit)} {_are(record.kept)} kept." if record.kept else ""
    fix, _, words = error.fix.partition("      ")
    cause = f"{error.cause}{'.' if error.cause else ''}{kept}".strip()
    fix = fix or command("resume", record.id)
    banner = JobBanner("bad", f"{error.code}: {error.message}", cause, fix, words.strip())
    return JobSummary("failed", "FAILED", f"{error.message} ({view.words.after(record.done, record.units)})", (banner,))


def _paused(view: View, command: Command) -> JobSummary:
    record, last = view.record, view.story.last
    reason = last.reason if isinstance(last, JobPaused) else ""
    title = "Too few peers stayed" if reason else "The job is paused"
    kept = f"{plural(record.kept, view.words.unit)} {_are(record.kept)} kept, and not done again."
    if not record.kept:
        kept = f"No {view.words.unit} was kept: it starts from the beginning."
    text = f"{_stop(reason)} {kept}" if reason else kept
    banner = JobBanner("warn", title, text, command("resume", record.id), "continues it.")
    return JobSummary("paused", "PAUSED", f"paused {view.words.after(record.done, record.units)}", (banner,))


def _interrupted(view: View, command: Command) -> JobSummary:
    record = view.record
    kept = f"{plural(record.kept, view.words.unit)} {_are(record.kept)} kept." if record.kept else ""
    banner = JobBanner(
        "bad", "No program works on this job any more",
        f"It is not over, but what worked on it was killed, or its computer stopped. {kept}".strip(),
        command("resume", record.id), "continues it.",
    )  # fmt: skip
    return JobSummary("failed", "INTERRUPTED", f"interrupted {view.words.during(record.done, record.units)}", (banner,))


def _at_work(view: View, command: Command) -> JobSummary:
    record, story = view.record, view.story
    present = [peer for peer in story.peers.values() if peer.state in ("works", "paused", "behind", "hired")]
    during = view.words.during(record.done, record.units)
    if record.waits_for:
        return _waiting(record, present, during, _peers_told(story))
    if record.state in _BEFORE_TRAINING:
        again = f" again, to continue {view.words.after(record.kept, record.units)}" if record.kept else ""
        return JobSummary("preparing", record.state.upper(), f"{_BEFORE_TRAINING[record.state]}{again}", ())
    resumed = f", resumed {view.words.after(story.lives[-1].from_round, record.units)}" if len(story.lives) > 1 else ""
    works = sum(peer.state == "works" for peer in present)
    starting = [peer.name for peer in present if peer.state == "hired" and not peer.late]
    sentence = f"{view.words.at_work(record, works)}{resumed}"
    if starting and not works:
        since = story.sent_at or story.lives[-1].began
        sentence = f"{waits_for_workers(starting)}: {duration_text(max(0.0, view.now - since))}{resumed}"
    elif not works and not present:
        sentence = f"looks for peers{resumed}"
    return JobSummary("running", "RUNNING", sentence, () if record.done >= record.units else _peers_told(story))


def _waiting(record: JobRecord, present: list[PeerStory], during: str, others: tuple[JobBanner, ...]) -> JobSummary:
    names = ", ".join(record.waits_for)
    why = "; ".join(f"{peer.name}: {peer.why}" for peer in present if peer.name in record.waits_for and peer.why)
    text = (
        f"{_stop(why)} Fewer peers than the job needs would be left, so it pauses and loses nothing. "
        "It continues by itself as soon as their owners allow it."
        if why
        else "What is done is kept. Axon keeps looking for peers, and the job continues by itself when they come."
    )
    banner = JobBanner("warn", f"The job waits for {names}", text)
    return JobSummary("waiting", "WAITING", f"waits {during}: it cannot continue without {names}", (banner, *others))


def _peers_told(story: Story) -> tuple[JobBanner, ...]:
    """The peers that are gone or stand still while the others go on: nothing has to be done, but one wants to know."""
    this_life = story.lives[-1].began if story.lives else 0.0
    lost_now = {mark.peer for mark in story.marks if mark.kind == "lost" and mark.at >= this_life}
    lost = [peer for peer in story.peers.values() if peer.state == "lost" and peer.name in lost_now]
    still = [peer for peer in story.peers.values() if peer.state in ("paused", "behind")]
    after = "What is done is kept, and another peer is looked for. Nothing has to be done."
    found = [
        JobBanner("warn", f"{peer.name} is gone", f"{_stop(peer.why)} {_others(story)} {after}")
        for peer in lost[-LOST_TOLD:]
    ]
    if still and not story.waits_for:
        names = ", ".join(peer.name for peer in still)
        whys = " ".join(_whole(peer) for peer in still)
        word = "is" if len(still) == 1 else "are"
        text = f"{whys} The others continue; they come back by themselves." if len(still) > 1 else (
            f"{whys} The others continue; it comes back by itself.")  # fmt: skip
        found.append(JobBanner("warn", f"{names} {word} not working now", text))
    return tuple(found)


def _others(story: Story) -> str:
    left = sum(peer.state in ("works", "paused", "behind") for peer in story.peers.values())
    return f"The {plural(left, 'other')} {'goes' if left == 1 else 'go'} on." if left else "No peer is left."


def _whole(peer: PeerStory) -> str:
    return _stop(f"{peer.name}: {peer.why}") if peer.why else ""


def _stop(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
