"""Any byte of any file of a job's folder may be wrong: only errors of the family come of it, and nothing is lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.client.events.events import Event, FileDamaged
from axonp2p.client.hosted.hosted_mark import HostedMark, is_at_work, read_mark, write_mark
from axonp2p.client.leasing.kept_leases import kept_leases
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.storage.event_feed import EventTail
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import NumberedReceipts, new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.client.storage.kept_bundle import kept_bundle, spec_of
from axonp2p.errors import AxonError, JobFileWrong, PeerMisbehaved, SettingsError
from axonp2p.jobs.bundle import collect
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import RoundFinished, StateDamaged
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.kinds.train.record import AheadRound
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.kinds.train.section import TrainJob
from axonp2p.tensors.checkpoint_file import Model
from tests.fakes import AtOnce, ManualClock, key_of
from tests.unit.client.ledger.test_receipts import done
from tests.unit.kinds.train.test_round_commits import bytes_after, state_after
from tests.unit.training.conversation import round_done

JOB, OTHER = "line-1a2b", "line-other"
ROUNDS = 3
MODEL = Model(10, 10)
CLIENT, OTTER = key_of("client"), key_of("otter")
UUID = "7" * 36
SPEC = TrainJob(name="line", task="task.py", data=["data.bin"])


def books_of(folder: JobFolder, told: list[Event]) -> RoundCommits:
    journal = JobJournal(folder, folder.read(), ManualClock(), told.append, AtOnce())
    return RoundCommits(journal, folder.checkpoints(2))


def accept(books: RoundCommits, number: int) -> None:
    finished = RoundFinished(
        round=number, rounds=9, loss=1.0 / (number + 1), metrics={"accuracy": 0.5}, samples=80, samples_per_second={},
        seconds=1.25, wire_bytes=100 * (number + 1), credits=0.5, eta_s=1.0,
    )  # fmt: skip
    reports = {0: round_done(number, 0, state_after(number + 1))}
    state = state_after(number + 1)
    books.accepted(AheadRound(finished=finished, state=state.hex(), round_bytes=100, reports=reports))
    room = books.checkpoints.room(number + 1, state, MODEL)
    room.data[:] = bytes_after(number + 1)
    room.put()


def write_job(home: Path, job: str = JOB) -> JobFolder:
    """A job that was killed with three rounds in its books, the state of a fourth here, and two receipts open."""
    source = home / "source"
    source.mkdir(exist_ok=True)
    (source / "task.py").write_text("class Task: ...\n")
    (source / "data.bin").write_bytes(bytes(range(200)))
    (source / "job.toml").write_text('name = "line"\n')
    bundle = collect(source, SPEC)
    record = new_record(job, SPEC, str(source), 1.0, bundle.blob.name)
    folder = JobStore(home).create(msgspec.structs.replace(record, state=JobState.RUNNING))
    folder.keep_bundle([(file.path, file.source) for file in bundle.files], bundle.blob.encoded)
    books, receipts = books_of(folder, []), ReceiptBook(CLIENT, job)
    for number in range(ROUNDS):
        accept(books, number)
        receipts.write(UUID, OTTER.peer_id, done(number), 1.0)
        books.book(number, state_after(number + 1), {"otter": 0.5}, receipts.keep())
    accept(books, ROUNDS)
    folder.leases.write_bytes(b"[]")
    folder.add_log("otter", b"hello\n")
    return folder


def prepare(folder: JobFolder) -> tuple[int, list[Event]]:
    """All that resuming the job does before it needs a network; after how many rounds it goes on."""
    told: list[Event] = []
    folder.read()
    told += folder.mend()
    record = folder.read()
    kept_bundle(folder, record, spec_of(record))
    book = ReceiptBook(CLIENT, record.id, record.receipts)
    books = books_of(folder, told)

    def pay(ahead: AheadRound) -> list[NumberedReceipts]:
        return book.keep()

    good = books.open(pay)
    books.go_on(good.rounds if good else 0, [])
    kept_leases(folder.leases)
    list(EventTail(folder).fresh())
    rows = [int(row["round"]) for row in MetricsFile(folder.metrics).rows()]
    assert rows == list(range(1, folder.read().round + 1))
    return (good.rounds if good else 0), told


def files_of(folder: JobFolder) -> list[Path]:
    return sorted(path for path in folder.path.rglob("*") if path.is_file() and path.name != ".held")


def contents(folder: JobFolder) -> list[bytes]:
    return [path.read_bytes() for path in files_of(folder)]


def flip(data: bytearray, chance: random.Random) -> bytearray:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def cut(data: bytearray, chance: random.Random) -> bytearray:
    return data[: chance.randrange(len(data))]


def garble(data: bytearray, chance: random.Random) -> bytearray:
    start = chance.randrange(len(data))
    data[start : start + 40] = chance.randbytes(40)
    return data


def empty(data: bytearray, chance: random.Random) -> bytearray:
    return bytearray()


def zero(data: bytearray, chance: random.Random) -> bytearray:
    return bytearray(len(data))


def nest(data: bytearray, chance: random.Random) -> bytearray:
    return bytearray(b"[" * 100_000)


NAMES = [
    "job.json", "job.json.bak", "metrics.csv", "events.jsonl", "leases.json", "bundle.manifest", "bundle/task.py",
    "bundle/data.bin", "bundle/job.toml", "logs/otter.log", "states/0", "states/1", "states/2",
]  # fmt: skip


def place_of(folder: JobFolder, name: str) -> Path:
    return sorted(folder.states.iterdir())[int(name[-1])] if name.startswith("states/") else folder.path / name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_any_damage_of_any_file_is_named_or_mended_and_loses_nothing(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    for number, harm in enumerate([flip] * 8 + [cut, cut, garble, garble, empty, zero, nest]):
        home = tmp_path / str(number)
        home.mkdir()
        folder = write_job(home)
        write_job(home, OTHER)
        before = {path: path.read_bytes() for path in files_of(folder)}
        place = place_of(folder, name)
        place.write_bytes(harm(bytearray(place.read_bytes()), chance))
        harmed = place.read_bytes()
        records, _ = JobStore(home).all()
        assert OTHER in [record.id for record in records]
        if name.startswith("bundle/"):
            with pytest.raises(JobFileWrong) as caught:
                prepare(folder)
            assert caught.value.fix
        else:
            # The newest state is good unless it was the one that was harmed.
            assert prepare(folder)[0] >= (ROUNDS if name == "states/2" else ROUNDS + 1), (harm, number)
        left = contents(folder)
        assert harmed in left or name in ("events.jsonl", "metrics.csv", "leases.json", "states/0")
        # The last two states are there still: nothing is removed because of what another file says.
        for path, content in before.items():
            if path in sorted(before)[-2:] and path != place:
                assert content in left


def test_bytes_of_a_record_come_from_its_copy_and_the_damaged_one_is_kept(tmp_path: Path) -> None:
    folder = write_job(tmp_path)
    good = folder.read()
    text = folder.record_file.read_text()
    folder.record_file.write_text(text.replace('"round": 3', '"round": 1').replace(good.kept_state, "0" * 64))
    harmed = folder.record_file.read_bytes()
    assert folder.read() == good
    rounds, told = prepare(folder)
    assert rounds == ROUNDS + 1
    (damaged,) = (event for event in told if isinstance(event, FileDamaged))
    assert (damaged.name, Path(damaged.file).read_bytes()) == ("job.json", harmed)


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_bytes(b"\xff\xfe{")])
def test_a_record_of_which_nothing_is_left_is_named_with_what_to_do(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    folder = write_job(tmp_path)
    write_job(tmp_path, OTHER)
    harm(folder.record_file)
    assert folder.read().round == ROUNDS
    folder.path.joinpath("job.json.bak").write_bytes(b"{")
    with pytest.raises(SettingsError, match=r"job\.json cannot be read") as caught:
        folder.read()
    assert "states stay in" in caught.value.fix
    records, unreadable = JobStore(tmp_path).all()
    assert [record.id for record in records] == [OTHER]
    assert list(unreadable) == [JOB]


def test_a_record_of_an_older_program_that_names_another_job_is_not_taken_for_this_one(tmp_path: Path) -> None:
    folder = write_job(tmp_path)
    (folder.path / "job.json.bak").unlink()
    text, _, _ = folder.record_file.read_text().partition(',\n  "sha256"')
    folder.record_file.write_text(text + "\n}\n")
    assert folder.read().id == JOB
    folder.record_file.write_text(text.replace(JOB, "line-0000", 1) + "\n}\n")
    with pytest.raises(SettingsError, match="it is the record of line-0000"):
        folder.read()


def test_damaged_metrics_are_made_again_and_what_was_there_is_kept(tmp_path: Path) -> None:
    folder = write_job(tmp_path)
    good = folder.metrics.read_bytes()
    harmed = good.replace(b"\n2,", b"\nx,")
    folder.metrics.write_bytes(harmed)
    _, told = prepare(folder)
    (damaged,) = (event for event in told if isinstance(event, FileDamaged))
    assert (damaged.name, Path(damaged.file).read_bytes()) == ("metrics.csv", harmed)
    assert folder.metrics.read_bytes().startswith(good)


def test_an_old_copy_of_the_record_does_not_cost_newer_states(tmp_path: Path) -> None:
    folder = write_job(tmp_path)
    old = msgspec.structs.replace(folder.read(), round=1, kept_round=0, kept_state="", ahead=None, last=None)
    folder.write(old)
    rounds, _ = prepare(folder)
    assert rounds == ROUNDS
    assert (folder.read().round, folder.read().receipts) == (ROUNDS, [])
    # The fourth was never told as done, so nothing goes on from it; it is there all the same.
    assert bytes_after(ROUNDS + 1) in b"".join(contents(folder))


def test_a_state_that_the_books_do_not_name_is_put_aside_not_removed(tmp_path: Path) -> None:
    folder = write_job(tmp_path)
    folder.write(msgspec.structs.replace(folder.read(), ahead=None, kept_state="0" * 64))
    rounds, told = prepare(folder)
    assert rounds == ROUNDS - 1
    assert [event.round for event in told if isinstance(event, StateDamaged)] == [ROUNDS + 1, ROUNDS]
    assert bytes_after(ROUNDS) in b"".join(contents(folder))


def test_a_file_of_the_bundle_that_has_changed_is_named(tmp_path: Path) -> None:
    folder = write_job(tmp_path)
    (folder.bundle / "task.py").write_text("class Task:\n    learning_rate = 9.0\n")
    with pytest.raises(JobFileWrong, match=r"not what was submitted: task\.py changed") as caught:
        prepare(folder)
    assert "axon submit" in caught.value.fix
    folder.manifest.unlink()
    with pytest.raises(JobFileWrong, match="one of its files has changed"):
        prepare(folder)


def test_a_damaged_open_receipt_of_an_older_record_accuses_nobody(tmp_path: Path) -> None:
    (kept,) = write_job(tmp_path).read().receipts
    for index in range(len(kept.open[0])):
        data = bytearray(kept.open[0])
        data[index] ^= 1
        harmed: Any = msgspec.structs.replace(kept, open=[bytes(data), *kept.open[1:]])
        book = ReceiptBook(CLIENT, JOB, [harmed])
        assert book.unsigned >= ROUNDS - 1


@pytest.mark.parametrize("content", [b"", b"\xff", b"{", b"[" * 100_000, b'{"tracker": 5}'])
def test_a_damaged_mark_of_a_host_is_named(tmp_path: Path, content: bytes) -> None:
    folder = write_job(tmp_path)
    write_mark(folder, HostedMark(tracker="https://127.0.0.1:7070", host=OTTER.peer_id))
    (folder.path / "hosted.json").write_bytes(content)
    for look in (read_mark, is_at_work):
        with pytest.raises(SettingsError) as caught:
            look(folder)
        assert caught.value.fix


def test_the_errors_of_a_damaged_folder_are_this_computers() -> None:
    assert not issubclass(SettingsError, PeerMisbehaved)
    assert issubclass(SettingsError, AxonError)
