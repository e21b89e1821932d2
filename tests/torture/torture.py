"""Kills, damaged bytes and full disks, at every kind of file that roarfast writes; a table at the end.

    python tests/torture/torture.py --kills 100 --damage 200 --disks 20 --seed 1

What must hold: the finished result equals the undisturbed one, whatever happened before; no run fails for ever; what is
noticed is said with the name of the file. Exits with 1 if something does not.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from disks import full_disk, may_mount
from lives import End, kill, live
from subjects import Kind, MergeSubject, PackSubject, ResponsesSubject, StudySubject

WHOM = {
    "study, parent": 0.58,
    "study, worker": 0.06,
    "study, all": 0.06,
    "responses": 0.12,
    "pack": 0.12,
    "merge and report": 0.06,
}
"""Which part of the kills hits whom."""


class Torture:
    """One torture: folders, what happened, what must not have."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.table: dict[str, Counter[str]] = {}
        self.failures: list[str] = []
        self.wanted: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.finished: dict[str, Path] = {}

    def count(self, row: str, what: str) -> None:
        self.table.setdefault(row, Counter())[what] += 1

    def undisturbed(self, subject: Any) -> None:
        """Makes a subject once in peace: what all others must equal, and how long it takes."""
        folder = self.folder / "undisturbed" / subject.name
        folder.mkdir(parents=True)
        subject.prepare(folder)
        begun = time.monotonic()
        end = live(subject.work(folder, keep=True), self.folder / "log")
        assert end.code == 0, end.said
        self.seconds[subject.name] = time.monotonic() - begun
        self.wanted[subject.name], self.finished[subject.name] = subject.result(folder), folder

    def fresh(self, subject: Any) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        subject.prepare(folder)
        return folder

    def check(self, subject: Any, folder: Path, row: str, what: str) -> bool:
        """Whether a finished folder holds the undisturbed result."""
        try:
            same = subject.result(folder) == self.wanted[subject.name]
            why = "another result"
        except Exception as error:
            same, why = False, f"no result: {error}"
        if not same:
            self.count(row, "WRONG")
            self.failures.append(f"{row}: {what}: {why} in {folder}")
        else:
            shutil.rmtree(folder)
        return same

    def kills(self, subject: Any, whom: str, row: str, number: int) -> None:
        """So many kills: folders are killed again and again until they are finished."""
        hits, folder, seconds = 0, None, self.seconds[subject.name] * (2 if getattr(subject, "workers", 1) > 1 else 1)
        while hits < number or folder is not None:
            folder = folder or self.fresh(subject)
            log = self.folder / "log"
            if hits < number:
                hit, end = kill(subject.work(folder), log, seconds * self.rng.uniform(0.02, 0.8), whom, self.rng)
                hits += hit
                if hit:
                    self.count(row, "kills")
            else:
                end = live(subject.work(folder), log)
            if end.code == -signal.SIGKILL:
                continue
            if end.code != 0:
                self.count(row, "FAILED")
                self.failures.append(f"{row}: a run after kills ended with {end.code}: {end.said[-1:]}")
            else:
                self.check(subject, folder, row, "after kills")
                self.count(row, "finished as undisturbed")
            folder = None

    def damage(self, subject: Any, kind: Kind) -> None:
        """One byte of one file changed, in a copy of the finished folder; then run, and once more."""
        folder = Path(tempfile.mkdtemp(dir=self.folder)) / "copy"
        shutil.copytree(self.finished[subject.name], folder)
        subject.forget(folder, kind)
        path = self.rng.choice(sorted(folder.glob(kind.pattern)))
        content = bytearray(path.read_bytes())
        place = self.rng.randrange(len(content))
        content[place] ^= self.rng.randrange(1, 256)
        path.write_bytes(content)
        where = f"{path.relative_to(folder)}, byte {place} of {len(content)}"
        self.count(kind.name, "damaged")
        log = self.folder / "log"
        end = live(subject.work(folder), log)
        spoke = [text for text in end.said if "damaged" in text or "corrupt" in text or end.code]
        if end.code:
            self._ended(kind.name, where, end, path)
            end = live(subject.work(folder), log)
            if end.code:
                self.count(kind.name, "FAILS FOR EVER")
                self.failures.append(f"{kind.name}: {where}: fails again: {end.said[-1:]}")
                return
        elif spoke and not end.names(path):
            self.count(kind.name, "UNNAMED")
            self.failures.append(f"{kind.name}: {where}: a message without the file: {spoke[:1]}")
        else:
            self.count(kind.name, "noticed, made again" if spoke else "the same result, no message")
        self.check(subject, folder, kind.name, where)

    def _ended(self, row: str, where: str, end: End, path: Path) -> None:
        if end.code < 0 or not end.kind or not end.names(path):
            self.count(row, "UNCLEAR END")
            self.failures.append(f"{row}: {where}: ended with {end.code} {end.kind}: {end.said[-1:]}")
        else:
            self.count(row, "noticed, stopped once")

    def disks(self, number: int) -> None:
        """Runs on disks that are too small, then with room: a message, no signal, and the undisturbed result."""
        for k in range(number):
            subject = StudySubject(2) if k % 10 == 9 else ResponsesSubject() if k % 5 == 4 else StudySubject()
            full_disk(self, subject, k, number)

    def report(self) -> list[str]:
        columns = sorted({what for row in self.table.values() for what in row}, key=lambda c: (c.isupper(), c))
        lines = ["| what | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
        lines += [f"| {name} | " + " | ".join(str(row[c]) for c in columns) + " |" for name, row in self.table.items()]
        return lines


def run(folder: Path, seed: int, kills: int, damage: int, disks: int, echo: Any = None, only: str = "") -> Torture:
    """All of it, or of the kills only those whose row holds a word."""
    import roarfast.data.pack
    import roarfast.metrics
    import roarfast.report.build
    import roarfast.study.merge
    import roarfast.study.study
    import roarfast.study.tasks  # noqa: F401  (imported once, before all lives)

    def say(text: str) -> None:
        if echo is not None:
            print(f"{time.strftime('%H:%M:%S')} {text}", file=echo, flush=True)

    torture = Torture(folder, seed)
    study, responses, pack = StudySubject(), ResponsesSubject(), PackSubject()
    for subject in (study, responses, pack):
        torture.undisturbed(subject)
    merged = MergeSubject(torture.finished["study"])
    if only in "merge and report" and round(kills * WHOM["merge and report"]):
        torture.undisturbed(merged)
    subjects = {"responses": responses, "pack": pack, "merge and report": merged}
    say(f"undisturbed: {torture.seconds}")
    for row, part in WHOM.items():
        whom = row.split(", ")[1] if ", " in row else "parent"
        subject = subjects.get(row) or StudySubject(1 if whom == "parent" else 2)
        if only in row and (number := round(kills * part)):
            torture.kills(subject, whom, row, number)
            say(f"{row}: {dict(torture.table[row])}")
    targets = [(subject, kind) for subject in (study, responses, pack) for kind in subject.kinds]
    known = 0
    for k in range(damage):
        torture.damage(*targets[k % len(targets)])
        if k % 20 == 19 or len(torture.failures) > known:
            known = len(torture.failures)
            say(f"{k + 1} damaged bytes, {known} failures {torture.failures[-1:]}")
    if disks and may_mount():
        torture.disks(disks)
    elif disks:
        say("no full disks: mounting is not allowed here")
    return torture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--damage", type=int, default=200)
    parser.add_argument("--disks", type=int, default=20)
    parser.add_argument("--only", default="", help="of the kills, only rows with this word: parent, worker, all, pack")
    parser.add_argument(
        "--folder", type=Path, help="where to work; default a folder of the system's, deleted at the end"
    )
    parser.add_argument("--record", type=Path, help="append the counts as a line of JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        torture = run(
            Path(folder), options.seed, options.kills, options.damage, options.disks, sys.stderr, options.only
        )
    print("\n".join(torture.report()))
    print("\n".join(f"FAILED {line}" for line in torture.failures) or "nothing was lost, and nothing was silent")
    if options.record:
        with options.record.open("a") as file:
            file.write(json.dumps({"seed": options.seed, "table": torture.table, "failures": torture.failures}) + "\n")
    sys.exit(1 if torture.failures else 0)


if __name__ == "__main__":
    main()
