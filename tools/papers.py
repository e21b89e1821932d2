"""docs/papers.md: one row per claim of the papers and data set, with the paper's number, ours and a verdict. `make papers`.

Every number of ours is read from a committed summary under docs/results (tables of a report, of a tool, of `roarfast validate
--json`), so the page can be made again in a second; `make papers-run DATA=FOLDER` makes the summaries again, for hours.
`--check` says whether the page is what this script writes; a test calls it. Rows that nobody has run yet say so. The claims are
in paper_claims.py.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from paper_claims import papers
from paper_results import FAILS, ROOT, Results, Work

from roarfast._files import write_atomic

PAGE = ROOT / "docs" / "papers.md"
RULES = (
    "How verdicts are given: by 95 % intervals, each row by itself. Intervals are over trials where there are several, else over images or estimators, as the data's page "
    "says; with two trials they are wide. That something does *not* happen holds only where the interval excludes it, or, where a row names a quarter, excludes a quarter of "
    "the effect that it is part of: an interval that is merely too wide to show anything is *cannot be told*. Nothing corrects for the number of rows: of a hundred at 95 % "
    "some are beyond their interval by chance, so read a single row with its interval, not its word. A row with several comparisons holds if all of them do, and in part if some do."
)
BEGIN, END = "<!-- claims: tools/papers.py -->", "<!-- end of claims -->"


def cell(text: str) -> str:
    """Text in a Markdown table."""
    return text.replace("|", "\\|")


def shown(work: Work) -> str:
    """Its commands, and what they take."""
    commands = ", then ".join(f"`{command}`" for command in work.commands)
    return f"{commands} ({work.known if work.minutes is None else f'{work.minutes:g} minutes'})"


def all_work() -> list[Work]:
    """Everything that makes a summary, each once, in the order of the page."""
    return list(dict.fromkeys(c.work for claims in papers().values() for c in claims if c.work))


def execute(command: str, data: Path, runs: Path) -> bool:
    """One command with its folders filled in; whether it succeeded. Only then the file behind `>` is replaced."""
    words = [str(data) + word[4:] if word.startswith("DATA") else word for word in shlex.split(command)]
    words = [str(runs) + word[4:] if word.startswith("RUNS/") else word for word in words]
    print("$", shlex.join(words), flush=True)
    target = ROOT / words[-1] if words[-2:-1] == [">"] else None
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        words[:-2] if target else words,
        cwd=ROOT,
        env=os.environ | {"PATH": path},
        check=False,
        stdout=subprocess.PIPE if target else None,
    )
    if target and done.returncode == 0:
        write_atomic(target, done.stdout)
    return done.returncode == 0


def run(data: Path, runs: Path, only: list[str]) -> None:
    """Makes the summaries again, one after the other. A killed study goes on where it was; what failed is named at the end.

    Raises:
        SystemExit: If a command failed, or `only` names what is not there.
    """
    known = {work.name: work for work in all_work()}
    if unknown := [name for name in only if name not in known]:
        raise SystemExit(f"--only: there is no {unknown[0]!r}; there are {', '.join(known)}")
    failed = []
    for work in (known[name] for name in only or known):
        begun = time.monotonic()
        if not all(execute(command, data, runs) for command in work.commands):
            failed.append(work.name)
        print(f"{work.name}: {(time.monotonic() - begun) / 60:.1f} minutes", flush=True)
    if failed:
        raise SystemExit(f"not finished: {', '.join(failed)}")


def page_part() -> str:
    """What stands between the marks of the page."""
    results, lines = Results(), []
    counts: dict[str, int] = {}
    failed = []
    numbers: dict[Work, int] = {}  # commands are too long for a column
    for title, claims in papers().items():
        lines += [f"### {title}", "", "| | claim | data | paper | here | | by |", "|---|---|---|---|---|---|---|"]
        subject = ""  # of rows that begin with "…"
        for claim in claims:
            found, verdict = claim.found(results)
            subject = subject if claim.text.startswith("…") else claim.text
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict == FAILS:
                text = claim.text if claim.text == subject else f"{subject}{claim.text.removeprefix('…')}"
                failed.append(f"{text} ({title.partition(' (')[0]}, {claim.where}; {claim.data})")
            number = str(numbers.setdefault(claim.work, len(numbers) + 1)) if claim.work else ""
            fields = [claim.where, claim.text, claim.data, claim.theirs, found, f"**{verdict}**", number]
            lines.append("| " + " | ".join(cell(field) for field in fields) + " |")
        lines.append("")
    hours = sum(work.minutes or 0 for work in numbers) / 60
    lines += [
        "### Commands",
        "",
        f"Times are of two cores; those that were measured are {hours:.1f} hours in all. `make papers-run DATA=FOLDER` runs them one after the other; "
        "killed, it goes on where it was.",
        "",
        *(f"{number}. {shown(work)}" for work, number in numbers.items()),
    ]
    tally = ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items(), key=lambda item: -item[1]))
    listed = "\n\n" + "\n".join(f"- {claim}" for claim in failed) if failed else " nothing."
    intro = f"Of {sum(counts.values())} rows: {tally}. **What did not hold:**{listed}\n\n{RULES}"
    return "\n".join([intro, "", *lines]).rstrip() + "\n"


def whole_page() -> str:
    """The page with the part between the marks made anew."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{page_part()}{END}{after}"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 if the page is not what this writes")
    parser.add_argument("--commands", action="store_true", help="print the commands that make the summaries again")
    parser.add_argument("--run", action="store_true", help="make the summaries again, for hours, then the page")
    parser.add_argument("--data", type=Path, help="folder of the data files (.npz)")
    parser.add_argument(
        "--runs", type=Path, default=ROOT / "runs", help="where run folders go, or are: killed studies go on"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="one of the summaries; may be repeated"
    )
    args = parser.parse_args()
    if args.commands:
        print("\n".join(command for work in all_work() for command in work.commands))
        return
    if args.run:
        if args.data is None or not args.data.is_dir():
            parser.error(f"--run needs --data FOLDER, the folder of the data files; got {args.data}")
        run(args.data.resolve(), args.runs.resolve(), args.only)
    page = whole_page()
    if args.check:
        sys.exit(0 if page == PAGE.read_text() else "docs/papers.md is not what its summaries give: make papers")
    PAGE.write_text(page)
    print(PAGE)


if __name__ == "__main__":
    main()
