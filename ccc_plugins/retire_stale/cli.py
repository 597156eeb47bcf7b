"""`retire-stale`: the operator's command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

try:
    import click
except ModuleNotFoundError:  # the extra is optional: hosts need no command line
    sys.exit("retire-stale needs the extra 'cli': pip install 'ccc-retire-stale[cli]'")

from ccc_plugins.retire_stale.cli_run import run
from ccc_plugins.retire_stale.evidence.case_dir import CaseError, JudgedCase, judge_case
from ccc_plugins.retire_stale.judgement.decision import course


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ccc-retire-stale")
def main() -> None:
    """Look into what retire-stale decides, and run a host with it."""


main.add_command(run)


@main.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="CASE_DIR")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(directory: Path, as_json: bool) -> None:
    """Judge a recorded case and print both verdicts with their evidence.

    Exit status 2 when CASE_DIR holds no readable case.json.
    """
    try:
        judged = judge_case(directory)
    except CaseError as error:
        click.echo(f"retire-stale: {error}", err=True)
        sys.exit(2)
    report = _report(judged)
    click.echo(json.dumps(report, indent=1) if as_json else _printable(_in_words(report)))


def _report(judged: JudgedCase) -> dict[str, Any]:
    attribution, idleness = judged.judgement.attribution, judged.judgement.idleness
    foreign = [{"uuid": f.uuid, "type": f.type, "entrypoint": f.entrypoint, "offset": f.offset} for f in attribution.foreign]
    return {
        "staleness": {
            "verdict": attribution.verdict,
            "reason": attribution.reason,
            "foreign": foreign,
            "foreign_count": attribution.count,
            "lost": list(judged.lost),
        },
        "idleness": {"verdict": idleness.verdict, "signs": list(idleness.signs), "lingering": idleness.lingering},
        "decision": course(attribution.verdict, idleness.verdict, resumable=judged.judgement.resumable),
        "resumable": judged.judgement.resumable,
        "release": judged.judgement.release,
    }


def _printable(text: str) -> str:
    """Ids are what a file holds, which may be no character, or one that a terminal obeys."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def _in_words(report: dict[str, Any]) -> str:
    staleness, idleness = report["staleness"], report["idleness"]
    lines = [f"staleness: {staleness['verdict']}: {staleness['reason']}"]
    lines += [
        f"  {f['type']} {f['uuid']} at byte {f['offset']}, written by {f['entrypoint'] or 'an unnamed entry point'}"
        for f in staleness["foreign"]
    ]
    more = staleness["foreign_count"] - len(staleness["foreign"])
    lines += [f"  and {more} more"] if more > 0 else []
    lines += [f"  a fresh --resume would lack the prompt {uuid}" for uuid in staleness["lost"]]
    lines += [f"idleness: {idleness['verdict']}"] + [f"  {sign}" for sign in idleness["signs"]]
    return "\n".join([*lines, f"decision: {report['decision']}"])


if __name__ == "__main__":
    main()
