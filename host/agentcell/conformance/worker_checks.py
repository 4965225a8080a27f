"""The checks of a worker, in their order."""

from collections.abc import Callable
from functools import partial

from agentcell.conformance import wording
from agentcell.conformance import worker_scenes as scenes
from agentcell.conformance.check import Check, Scene, expect
from agentcell.conformance.stage import Seen, shown
from agentcell.conformance.wording import category_of, error_of

QUICK_SECONDS = 20.0
"""For an API that refuses the key: a worker that goes on asking takes minutes."""


def _is_complete(seen: Seen) -> None:
    expect(seen.result.get("status") == "complete", "a result with status complete", seen.last)


def _keeps_text(seen: Seen) -> None:
    expect(seen.result.get("response") == scenes.ANSWER, repr(scenes.ANSWER), repr(seen.result.get("response")))
    asked = [one.prompt for one in seen.asked]
    expect(any(scenes.MESSAGE in prompt for prompt in asked), f"the model to be asked {scenes.MESSAGE!r}", asked)


def _has_one_result(*seen: Seen) -> None:
    for one in seen:
        results = one.of_type("result")
        expect(len(results) <= 1, "one result", f"{len(results)} in {one.scene}")


def _ends_with_its_result(*seen: Seen) -> None:
    for one in seen:
        if one.of_type("result"):
            kind = (one.messages[-1]).get("type")
            expect(kind == "result", "the result as the last line", f"`{kind}` after it in {one.scene}")


def _says_whose(plain: Seen, summary: Seen) -> None:
    names = [seen.result.get(member) for seen in (plain, summary) for member in ("session_name", "id", "agent_type")]
    due = ["a", "a", "coder", "a", "row-1", "coder"]
    expect(names == due, f"session_name, id and agent_type of the requests: {due}", names)


def _has_one_line(seen: Seen) -> None:
    expect(len(seen.lines) == 1, "one line", f"{len(seen.lines)}, the first {seen.lines and shown(seen.lines[0].raw)}")


def _does_not_wait(wrong: Seen, asking: Seen) -> None:
    expect(wrong.code is not None and bool(wrong.result), "a result, and an end", f"{wrong.last} in {wrong.scene}")
    expect(bool(asking.asked), "the model to be asked", f"it was not, in {asking.scene}")


def _greets_first(*seen: Seen) -> None:
    for one in seen:
        kinds = [message.get("type") for message in one.messages]
        expect(kinds[:1] == ["hello"], "hello as the first line", f"{kinds[:3]} in {one.scene}")
        due = {"session_started", "text", "outcome"}
        expect(due <= set(kinds), f"also {', '.join(sorted(due))}", f"{kinds} in {one.scene}")


def _knows_details(summary: Seen, full: Seen) -> None:
    expect(not summary.of_type("text_delta"), "no text_delta with `summary`", "some")
    pieces = "".join(str(one.get("text")) for one in full.of_type("text_delta"))
    response = full.result.get("response")
    expect(
        bool(pieces) and pieces == response,
        "with `full` a text_delta for each piece of the text",
        f"{len(pieces)} characters of {len(str(response))}",
    )


def _pairs_tools(seen: Seen) -> None:
    used = [one.get("id") for one in seen.of_type("tool_use")]
    ended = [one.get("id") for one in seen.of_type("tool_result")]
    expect(len(used) == 1 and used == ended, "a tool_use and a tool_result with one id", f"{used} and {ended}")
    calls = seen.result.get("tool_calls")
    expect(calls == 1, "tool_calls 1 in the result", calls)


def _keeps_tools_apart(seen: Seen) -> None:
    stray = [line.raw for line in seen.lines if scenes.STRAY.encode() in line.raw or b'"forged"' in line.raw[:60]]
    expect(not stray, "nothing of what a tool prints", stray and shown(stray[0]))


def _writes_its_file(seen: Seen) -> None:
    file = seen.told.get("file")
    expect(file is not None, "a file", "none")
    results = [line.raw.rstrip() for line in seen.lines if (line.message or {}).get("type") == "result"]
    expect((file or b"").rstrip() in results, "the result line in it", shown(file or b""))


def _reads_the_plan(seen: Seen) -> None:
    expect(seen.result.get("status") == "continue", "status continue", seen.result.get("status"))


def _takes_much(seen: Seen) -> None:
    size = max((len(one.prompt) for one in seen.asked), default=0)
    whole = any(one.prompt.rstrip().endswith(scenes.END_OF_MESSAGE) for one in seen.asked)
    expect(whole and size > scenes.SENT_CHARACTERS, "the whole message to reach the model", f"{size} characters")


def _gives_much(seen: Seen) -> None:
    size = len(str(seen.result.get("response") or ""))
    expect(size == scenes.ANSWERED_CHARACTERS, f"{scenes.ANSWERED_CHARACTERS} characters", f"{size}; {seen.last}")


def _refuses(member: str | None, hint: str, seen: Seen) -> None:
    wording.expect_refusal(seen.result, member, hint, seen.last)


def _says_whose_it_refuses(seen: Seen) -> None:
    names = [seen.result.get("session_name"), seen.result.get("id")]
    expect(names == ["a", "row-1"], "session_name a and id row-1", names)


def _starts_nothing_for(*seen: Seen) -> None:
    for one in seen:
        expect(not one.asked, "the model not to be asked", f"{len(one.asked)} requests in {one.scene}")


def _knows_a_refused_key(seen: Seen) -> None:
    error = error_of(seen.result)
    expect(category_of(seen.result) == "authentication", "category authentication", category_of(seen.result))
    expect(error.get("http_status") == 401, "http_status 401", error.get("http_status"))
    expect(seen.seconds < QUICK_SECONDS, f"an end within {QUICK_SECONDS:g} s", f"{seen.seconds:.1f} s")


def _is_cancelled_by(name: str, code: int, seen: Seen) -> None:
    expect(category_of(seen.result) == "cancelled", "a result with category cancelled", seen.last)
    by = (error_of(seen.result).get("details") or {}).get("signal")
    expect(by == name, f"details.signal {name}", by)
    expect(seen.code == code, f"exit code {code}", seen.code)


def _minds_its_lifeline(seen: Seen) -> None:
    expect(seen.code is not None, "an end", "it went on")
    expect(category_of(seen.result) == "host_lost", "a result with category host_lost", seen.last)


Judge = Callable[..., None]

_FORMAT: tuple[tuple[str, str, Judge], ...] = (
    (
        "each line ends with a line feed, the last one, too",
        "write the line end with the line",
        wording.each_line_has_its_end,
    ),
    (
        "the line feed stands alone",
        "write LF, also on systems whose text files have CR LF",
        wording.ends_are_line_feeds,
    ),
    (
        "each line is one JSON object with a type, in strict JSON and UTF-8",
        "keep stdout for messages: send what else is printed to stderr, and escape control characters",
        wording.each_line_is_an_object,
    ),
    ("there is never a second result", "write the result in one place, once", _has_one_result),
    ("the result is the last line", "write events, also late ones, before it", _ends_with_its_result),
    ("a result has its members in their order", "see docs/protocol.md, The result", wording.results_are_ordered),
    ("a result follows its schema", "see agentcell schema result", wording.results_are_true_to_the_model),
    ("the exit code agrees with the result", "see docs/protocol.md, Exit codes", wording.exit_codes_agree),
)

_SESSIONS: tuple[tuple[str, str, Judge, tuple[Scene, ...]], ...] = (
    ("a request gives a result", "run the session, and answer with its result", _is_complete, (scenes.PLAIN,)),
    ("text goes through unchanged", "read and write UTF-8; only LF ends a line", _keeps_text, (scenes.PLAIN,)),
    (
        "a result says whose it is",
        "send back session_name, agent_type, and id, which is the session_name when left out",
        _says_whose,
        (scenes.PLAIN, scenes.SUMMARY),
    ),
    ("without events there is one line", "send events only if they are asked for", _has_one_line, (scenes.PLAIN,)),
    (
        "it does not wait for the end of stdin",
        "act on the first whole line",
        _does_not_wait,
        (scenes.WRONG_AND_OPEN, scenes.BY_INT),
    ),
    (
        "events begin with hello and tell of the session",
        "send hello first, session_started, text, and outcome before clean-up",
        _greets_first,
        (scenes.SUMMARY, scenes.BIG),
    ),
    (
        "events follow their schema",
        "see agentcell schema event",
        wording.events_are_true_to_the_model,
        (scenes.SUMMARY, scenes.BIG),
    ),
    (
        "pieces of text come with `full` alone",
        "send text_delta with events: full",
        _knows_details,
        (scenes.SUMMARY, scenes.BIG),
    ),
    ("tool_use and tool_result belong together", "give both the id of the call", _pairs_tools, (scenes.SUMMARY,)),
    ("what a tool prints stays off stdout", "give tools a stdout of their own", _keeps_tools_apart, (scenes.SUMMARY,)),
    ("result_file has the result's line", "write it before the line", _writes_its_file, (scenes.SUMMARY,)),
    (
        "a plan with work left gives continue",
        "read implementation_plan.json in spec_dir",
        _reads_the_plan,
        (scenes.SUMMARY,),
    ),
    ("a message of 1 MiB goes in", "read until the line feed, in as many pieces as come", _takes_much, (scenes.BIG,)),
    ("an answer of 2 MiB comes out", "write until all of it is taken", _gives_much, (scenes.BIG,)),
)

_REFUSALS: tuple[tuple[str, Scene, str | None, str], ...] = (
    ("what is no JSON is refused", scenes.NO_JSON, None, ""),
    ("an array is refused", scenes.ARRAY, None, ""),
    ("an indented request is refused, with the remedy", scenes.INDENTED, None, "line"),
    ("an unknown member is refused by its name, with the one that was meant", scenes.UNKNOWN, "max_turn", "max_turns"),
    ("a missing member is named", scenes.MISSING, "agent_type", ""),
    ("a value of a wrong type is refused", scenes.WRONG_TYPE, "max_turns", ""),
    ("an unknown detail of events is refused", scenes.WRONG_DETAIL, "events", ""),
    ("another version of the protocol is refused", scenes.OTHER_VERSION, "protocol", ""),
    ("an empty stdin is refused", scenes.EMPTY, None, ""),
    ("a line over the limit is refused", scenes.TOO_LONG, None, ""),
    ("a line needs no line end when stdin ends", scenes.NO_LINE_END, "agent_type", ""),
    ("a BOM before and a CR after the line are forgiven", scenes.BOM_AND_CR, "agent_type", ""),
    ("blank lines before the request are ignored", scenes.BLANKS, "agent_type", ""),
    ("later lines are ignored", scenes.LATER_LINES, "agent_type", ""),
)

REFUSE = "answer with one result of category bad_request: details.member, details.reason, and what to do as hint"

_ENDS: tuple[tuple[str, str, Judge, tuple[Scene, ...]], ...] = (
    (
        "a refused request says whose it was",
        "send back the names that can be read",
        _says_whose_it_refuses,
        (scenes.UNKNOWN,),
    ),
    ("a refused request starts nothing", "look at the whole request first", _starts_nothing_for, scenes.REFUSALS),
    (
        "a refused key ends the session at once",
        "do not ask again after 401, and put the status into error.http_status",
        _knows_a_refused_key,
        (scenes.REFUSED_KEY,),
    ),
    (
        "SIGTERM cancels, while a tool runs",
        "end the tool, answer, exit",
        partial(_is_cancelled_by, "SIGTERM", 143),
        (scenes.BY_TERM,),
    ),
    ("SIGINT cancels", "answer, then exit", partial(_is_cancelled_by, "SIGINT", 130), (scenes.BY_INT,)),
    ("with a lifeline the end of stdin ends the session", "read on from stdin", _minds_its_lifeline, (scenes.CUT,)),
    (
        "nothing is left running",
        "end the whole tree of processes before the exit, what was detached, too",
        wording.nothing_is_left,
        scenes.ENDED,
    ),
)


def _numbered() -> tuple[Check, ...]:
    drafts: list[tuple[str, str, Judge, tuple[Scene, ...]]] = [
        *((title, remedy, judge, scenes.ENDED) for title, remedy, judge in _FORMAT),
        *_SESSIONS,
        *((title, REFUSE, partial(_refuses, member, hint), (scene,)) for title, scene, member, hint in _REFUSALS),
        *_ENDS,
    ]
    return tuple(
        Check(f"W{number:02}", title, remedy, played, judge)
        for number, (title, remedy, judge, played) in enumerate(drafts, 1)
    )


WORKER_CHECKS = _numbered()
"""All of them; a number stays with its check."""
