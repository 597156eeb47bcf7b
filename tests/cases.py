"""The public reports that the tests exercise, and the table of them in `docs/cases.md`: `python -m tests.cases` writes it anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "cases.md"

NOT_APPLICABLE: dict[str, str] = {}
"""Reports that no test exercises, each with the reason."""

REPORTS: dict[str, tuple[str, str]] = {
    "C01": ("amirfish1/claude-command-center#71", "Retire stale Claude headless agents when a terminal takes over the session"),
    "C02": (
        "anthropics/claude-code#39151",
        "--resume allows concurrent access from multiple terminals; #87525 - crashed session resumed into several live processes",
    ),
    "C03": ("anthropics/claude-code#80427", "fork instead of interleave when resuming from several windows"),
    "C04": ("anthropics/claude-code#75761", "--resume while the original is alive gives two processes acting on one repo"),
    "C05": ("manaflow-ai/cmux#11043", "autoresume starts a second agent on a running session"),
    "C06": ("siteboon/claudecodeui#883, #882", "no collision check; closing a pane does not end the child"),
    "C07": ("stravu/crystal#102", "session overwritten when the CLI is used elsewhere"),
    "C08": ("anthropics/claude-code#29195", "VS Code extension resumes without connecting to the running CLI"),
    "C09": ("anthropics/claude-code#88233", "Remote Control denial after --resume"),
    "C10": ("anthropics/claude-code#79420", "bridge-hosted sessions never write to the local file"),
    "C11": ("anthropics/claude-code#80654, #76269", "inherited child-session markers stop all persistence"),
    "C12": ("anthropics/claude-code#80561", "appender dies mid-session; #70632 - transcript not written until exit"),
    "C13": ("siteboon/claudecodeui#1022", "history cut at resume boundaries by a single-sessionId filter"),
    "C14": ("anthropics/claude-code#58760 (and #8069)", "init session_id is a per-invocation tag under --resume"),
    "C15": ("slopus/happy#1321; anthropics/claude-code#8524, #10806", "resume makes a new file with the old history copied in"),
    "C16": ("anthropics/claude-code#36213, #56766, #53037", "/clear does not update sessions/<pid>.json"),
    "C17": ("sverrirsig/claude-control#10", "PID-to-JSONL mapping breaks after /clear and --continue"),
    "C18": ("CCC commit c5e53fb6", "run /clear in place for a live headless"),
    "C19": ("anthropics/claude-code#81290", "auto-compaction writes two transcripts in parallel"),
    "C20": ("anthropics/claude-code#35024", "progress entries create side forks in the parent chain"),
    "C21": ("anthropics/claude-code#24304, #22526, #61188", "parentUuid points at lines never written; snapshot id equals next uuid"),
    "C22": ("anthropics/claude-code#22178", "hook-context lines all share one uuid; codemie-ai/codemie-code#350 - first user line twice"),
    "C23": ("CCC commit e9ec78c6 and test_uuidless_trailer_write_not_stale", "uuid-less trailers are no advance"),
    "C24": ("asheshgoplani/agent-deck#1422; anthropics/claude-code#40655", "Stop fires before the file is flushed"),
    "C25": ("langgenius/mosoo-agent-driver#52", "key assistant messages by API message id"),
    "C26": ("anthropics/claude-code#13326, #35800; vshulcz/deja-vu#1533", "subagent files carry the parent's sessionId"),
    "C27": ("anthropics/claude-code#23373", "14 messages, 404 subagents, 100 MB of progress in the main file"),
    "C28": ("zenolab124/monet#28; tiann/hapi#1679; anthropics/claude-code#66423", "rewind appends a new root or branches from the middle"),
    "C29": ("anthropics/claude-code#88378, #92563", "finished background task is queued, appended, and no turn starts"),
    "C30": ("chenhg5/cc-connect#757", "teammate messages appear as user lines in the lead's transcript"),
    "C31": ("anthropics/claude-code#76059, #49876", "NUL blocks after a crash"),
    "C32": ("anthropics/claude-code#81843, #52387; github/copilot-cli#4098", "records spliced on one physical line"),
    "C33": ("anthropics/claude-code#20992", "out-of-order timestamps and cut lines under concurrent writes"),
    "C34": ("anthropics/claude-code#53821", "truncated last record; #7004 - file holds only a summary line after an early signal"),
    "C35": ("MemPalace/mempalace#1102; viggy28/recall#38; breaking-brake/cc-wf-studio#463", "BOM and CRLF"),
    "C36": ("openclaw/openclaw#108072, thedotmack/claude-mem#4019", "file shrinks between stat and read; stale partial kept"),
    "C37": ("anthropics/claude-code#22365, #20367, #79196", "multi-GB transcripts exhaust memory"),
    "C38": ("anthropics/claude-code#40946, #35162, #9221; chadbyte/clay#182", "cwd encoding is lossy"),
    "C39": ("plmbr/notebook-intelligence#171; anthropics/claude-code#24271", "symlinked cwd"),
    "C40": ("anthropics/claude-code#51488, #59393", "symlinked folder inside projects/"),
    "C41": ("anthropics/claude-code#81603, #87958", "project moved mid-session; /cd leaves the file behind"),
    "C42": ("anthropics/claude-code#57920, #46493", "working directory deleted"),
    "C43": ("plmbr/notebook-intelligence#373/#374; entireio/cli#2367", "CLAUDE_CONFIG_DIR"),
    "C44": ("anthropics/claude-code#95403, #74798", "transcripts deleted under live sessions"),
    "C45": ("slopus/happy#1538; CCC changelog.d/fixed-fresh-claude-ask-2026-08-19.md", "no transcript until the first prompt"),
    "C46": ("herdrdev/herdr#3414", "two generations of registry files"),
    "C47": ("NazzarenoGiannelli/tuiboard#22; fusedio/fused-render#892 review; anthropics/claude-code#93132", "age of the record"),
    "C48": ("giampaolo/psutil#2526, #1724, #2031", "create_time moves when the clock is stepped"),
    "C49": ("giampaolo/psutil#2542", "clock update breaks children() and parent()"),
    "C50": ("giampaolo/psutil#2818/#2793, #2650, #2189", "zombies skipped or raised as NoSuchProcess; macOS cmdline() races"),
    "C51": ("giampaolo/psutil#2895 (and #2897)", 'false "PID reused" when identity is unknown'),
    "C52": (
        "anthropics/claude-code#24398; EmpiricaAI/empirica#371; vietnguyenhoangw/ani-mime#84; CCC commit 65e60e9a",
        "the process shows under odd names",
    ),
    "C53": ("ingo-eichhorst/Irrlicht#644, #744; CCC commit 313d1ddf", "daemon, pty host, spare"),
    "C54": ("anthropics/claude-code#59848, #82199, #81141", "ordinary terminals classified as background"),
    "C55": ("CCC CHANGELOG line 999; gastownhall/gastown#923, #1272", 'tty briefly "?" and terminals killed'),
    "C56": ("anthropics/claude-code#21287, #41342", "processes survive a closed terminal, or sit stopped; amantus-ai/vibetunnel#278"),
    "C57": ("yotamleo/Himmel#931", "unattended claude run under a pty and a fifo"),
    "C58": ("receptron/mulmoterminal#1669; omidkorat/claude-watch#2", "the id is in someone's command line"),
    "C59": ("wazuh/wazuh#38155, #38733; jdilla1277/agentcad#70; SiderealPress/Lobster#189", "stale pid kills a bystander"),
    "C60": ("CCC commits acf077e4, 3e1cc5b8, cc8fb985; CHANGELOG line 62", "killed while thinking or streaming"),
    "C61": ("CCC commit b6a9708b; vercel/vercel-plugin#129", "SessionStart hook ran 961 s; anthropics/claude-code#42458"),
    "C62": ("anthropics/claude-code#83859; paperclipai/paperclip#5785; appstrate/appstrate#773", "quiet retries"),
    "C63": ("anthropics/claude-code#1920, #8126, #39700", "no result ever; littlebearapps/untether#592; avibe-bot/avibe#622"),
    "C64": ("BloopAI/vibe-kanban#2495; anthropics/claude-code#25629, #59390, #61416", "alive after the result"),
    "C65": (
        "dohooo/helmor#891; anthropics/claude-code#52917; herdrdev/herdr#760, #2241 against #3231",
        "background shell or agent after the result",
    ),
    "C66": ("CCC commit 74182a39", "a polling child held a session's queue 4 h 22 min"),
    "C67": ("anthropics/claude-code#28046, #64522, #58000, #21396, #80708", "caffeinate, defunct children and hung helpers are no tools"),
    "C68": ("Gitlawb/openclaude#1878; anthropics/claude-code#56944; CCC `_is_ccc_hook_command`", "waiting for a person"),
    "C69": ("agentclientprotocol/claude-agent-acp#997; imbue-ai/mngr#1411", "turns that nobody sent"),
    "C70": ("anthropics/claude-agent-sdk-typescript#366; severity1/claude-agent-sdk-go#147", "an interrupted turn is a closed turn"),
    "C71": (
        "CCC test_headless_staleness.py: coalesced writes, result racing the write; openclaw/openclaw#124731",
        "coalesced inputs; a result that races the write",
    ),
    "C72": (
        "anthropics/claude-code#41230, #83103, #86980; stablyai/orca#14309; kenn-io/agentsview#406",
        "mid-turn text is kept only as a queued_command attachment, or not at all",
    ),
    "C73": ("anthropics/claude-code#88357, #86614", "accepted, then removed or dequeued with no user line"),
    "C74": ("CCC CHANGELOG lines 1964, 1987; nodejs/node#3628", "FIFO ends"),
    "C75": ("CCC commit c6671080; purplefish-ai/factory-factory#423 review", "popped then lost; in flight and re-queued"),
    "C76": ("CCC commit 4bd3dc1c; CHANGELOG line 191", "foreign live writer with a FIFO of its own"),
    "C77": ("CCC CHANGELOG line 1119", "lone UTF-16 surrogates in text"),
    "C78": ("vm0-ai/vm0#12341", "the CLI drops a user frame whose uuid it has already seen"),
    "C79": (
        "anthropics/claude-agent-sdk-python#584; anthropics/claude-code#31613; xuiltul/animaworks#39; receptron/mulmoclaude#822",
        "SIGTERM right after the answer loses its last block",
    ),
    "C80": ("anthropics/claude-code#47872, #50185, #46493", "SIGTERM ignored; #62987 - straight SIGKILL leaves git locks"),
    "C81": ("anthropics/claude-code#26658, #93087, #33947, #42881", "MCP children outlive the session"),
    "C82": ("anthropics/claude-code#16135, #83728; qf-studio/pilot#4503; zendesk/samson#574", "process groups"),
    "C83": ("slopus/happy#941; pingdotgg/t3code#5142; CCC commit 1298b294", "exit code 143"),
    "C84": ("slopus/happy#1331", "switching local to remote kills running shells and monitors"),
    "C85": ("CCC CHANGELOG line 2285; avibe-bot/avibe#629, #543", "several pids per session id"),
    "C86": ("CCC commits c60c1d4d, 10663de4", "deferred retirement"),
    "C87": ("CCC CHANGELOG lines 62, 192; test_terminal_queue_waits_for_worker_owned_headless", "a worker process owns the spawn"),
    "C88": ("CCC server.py `_transcript_watermark` and reattach tests", "a takeover before the host was restarted"),
    "C89": (
        "CCC commit 06e65365 and tests/test_stray_process_reaper.py; CHANGELOG lines 153, 397",
        "a five-day-old stray server acted on live sessions",
    ),
    "C90": (
        "CCC test_one_batched_probe_no_per_row_subprocess, test_live_terminal_snapshot_batches_registry_process_probe",
        "one look at the processes a tick",
    ),
    "C91": ("anthropics/claude-code#77732, #12730", "session cannot be resumed after the process ends"),
    "C92": ("simonw/llm#1351; conda/conda#12460; daydreamlive/scope#446; pytest-dev/pluggy#8", "one broken entry point stops loading"),
    "C93": ("layday/instawow#188", "same dist-info seen twice through lib64 -> lib"),
    "C94": ("pytest-dev/pluggy#419, #123, #244", "one hookimpl's exception stops the others; failing wrapper teardown skips outer ones"),
    "C95": ("pallets-eco/blinker#10, #27", "a raising receiver stops the rest (by design)"),
    "C96": ("getpelican/pelican#1386; ohdearquant/lionagi#868; pallets-eco/blinker#123, #13", "weakly held receivers; shutdown; threads"),
}
"""Where each was reported, and what it is about."""

INTRODUCTION = """# Public reports, and the tests that exercise them

Reports of software like this that broke, or of what breaks it. Many are user reports that nobody confirmed. The tests stage each
situation and assert the behaviour that is right. This table is written by `python -m tests.cases`; a test holds it.

| report | where | what | tests |
| --- | --- | --- | --- |
"""


def marked_tests() -> dict[str, list[str]]:
    """The tests of each report, by the `case` markers in the sources: `file::test`, sorted."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for case, test in _marks(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(case, []).append(f"{path.name}::{test}")
    return {case: sorted(set(tests)) for case, tests in found.items()}


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for case in _cases(node.decorator_list):
                yield case, node.name
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            for case in _cases([node.value]):
                yield case, "*"


def _cases(decorators: list[ast.expr]) -> Iterator[str]:
    for node in (found for decorator in decorators for found in ast.walk(decorator)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "case":
            yield from (str(argument.value) for argument in node.args if isinstance(argument, ast.Constant))


def document() -> str:
    """The text that `docs/cases.md` has to hold."""
    tests = marked_tests()
    return INTRODUCTION + "".join(_row(case, *REPORTS[case], tests.get(case, [])) for case in REPORTS)


def _row(case: str, where: str, what: str, tests: list[str]) -> str:
    shown = "<br>".join(f"`{test}`" for test in tests) or NOT_APPLICABLE.get(case, "")
    return f"| {case} | {where} | {what} | {shown} |\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
