"""What a worker is held against in the scenes that are played with it."""

from agentcell.conformance import wording
from agentcell.conformance import worker_scenes as scenes
from agentcell.conformance.check import expect
from agentcell.conformance.stage import Seen, shown
from agentcell.conformance.wording import category_of, error_of

CALLS = 2
"""Of tools, in the one turn that wants some."""

QUICK_SECONDS = 20.0
"""For an API that refuses the key: a worker that goes on asking takes minutes."""


def is_complete(seen: Seen) -> None:
    """The session ended well."""
    expect(seen.result.get("status") == "complete", "a result with status complete", seen.last)


def keeps_text(seen: Seen) -> None:
    """The message reaches the model, and its answer the caller, as they were."""
    expect(seen.result.get("response") == scenes.ANSWER, repr(scenes.ANSWER), repr(seen.result.get("response")))
    asked = [one.prompt for one in seen.asked]
    expect(any(scenes.MESSAGE in prompt for prompt in asked), f"the model to be asked {scenes.MESSAGE!r}", asked)


def has_one_result(*seen: Seen) -> None:
    """There are not two results."""
    for one in seen:
        results = one.of_type("result")
        expect(len(results) <= 1, "one result", f"{len(results)} in {one.scene}")


def ends_with_its_result(*seen: Seen) -> None:
    """Nothing comes after the result."""
    for one in seen:
        if one.of_type("result"):
            kind = (one.messages[-1]).get("type")
            expect(kind == "result", "the result as the last line", f"`{kind}` after it in {one.scene}")


def says_whose(plain: Seen, summary: Seen) -> None:
    """The result has the names of its request."""
    names = [seen.result.get(member) for seen in (plain, summary) for member in ("session_name", "id", "agent_type")]
    due = ["a", "a", "coder", "a", "row-1", "coder"]
    expect(names == due, f"session_name, id and agent_type of the requests: {due}", names)


def has_one_line(seen: Seen) -> None:
    """Nothing but the result is written."""
    expect(len(seen.lines) == 1, "one line", f"{len(seen.lines)}, the first {seen.lines and shown(seen.lines[0].raw)}")


def does_not_wait(wrong: Seen, asking: Seen) -> None:
    """It answers, and begins, while its stdin is open."""
    expect(wrong.code is not None and bool(wrong.result), "a result, and an end", f"{wrong.last} in {wrong.scene}")
    expect(bool(asking.asked), "the model to be asked", f"it was not, in {asking.scene}")


def greets_first(*seen: Seen) -> None:
    """The first event is hello, and those that every session has are there."""
    for one in seen:
        kinds = [message.get("type") for message in one.messages]
        expect(kinds[:1] == ["hello"], "hello as the first line", f"{kinds[:3]} in {one.scene}")
        missing = [kind for kind in ("session_started", "text", "outcome") if kind not in kinds]
        expect(not missing, f"also {', '.join(missing)}", f"{', '.join(map(str, kinds))} in {one.scene}")


def knows_details(summary: Seen, full: Seen) -> None:
    """Pieces of the text come if they are asked for, all of them, and otherwise none."""
    expect(not summary.of_type("text_delta"), "no text_delta with `summary`", "some")
    pieces = "".join(str(one.get("text")) for one in full.of_type("text_delta"))
    response = full.result.get("response")
    expect(
        bool(pieces) and pieces == response,
        "with `full` a text_delta for each piece of the text",
        f"{len(pieces)} characters of {len(str(response))}",
    )


def pairs_tools(seen: Seen) -> None:
    """Each call of a tool has its two events."""
    used = [one.get("id") for one in seen.of_type("tool_use")]
    ended = [one.get("id") for one in seen.of_type("tool_result")]
    are_pairs = sorted(map(str, used)) == sorted(map(str, ended)) and len(set(map(str, used))) == CALLS
    expect(are_pairs, f"{CALLS} tool_use and their tool_result, with one id each", f"{used} and {ended}")


def counts_tokens(seen: Seen) -> None:
    """The usage of a session is that of its turns together."""
    wording.expect_usage(seen.result, scenes.USAGE)


def counts_calls(plain: Seen, summary: Seen) -> None:
    """The result has the number of calls, not of turns."""
    given = [seen.result.get("tool_calls") for seen in (plain, summary)]
    expect(given == [0, CALLS], f"tool_calls 0 in {plain.scene}, {CALLS} in {summary.scene}", given)


def keeps_tools_apart(seen: Seen) -> None:
    """What a tool prints is not among the lines."""
    stray = [line.raw for line in seen.lines if scenes.STRAY.encode() in line.raw or b'"forged"' in line.raw[:60]]
    expect(not stray, "nothing of what a tool prints", stray and shown(stray[0]))


def writes_its_file(seen: Seen) -> None:
    """The result's line is in its file, too."""
    file = seen.told.get("file")
    expect(file is not None, "a file", "none")
    results = [line.raw.rstrip() for line in seen.lines if (line.message or {}).get("type") == "result"]
    expect((file or b"").rstrip() in results, "the result line in it", shown(file or b""))


def reads_the_plan(seen: Seen) -> None:
    """A plan with work left is not complete."""
    expect(seen.result.get("status") == "continue", "status continue", seen.result.get("status"))


def takes_much(seen: Seen) -> None:
    """The whole of a long message reaches the model."""
    size = max((len(one.prompt) for one in seen.asked), default=0)
    whole = any(one.prompt.rstrip().endswith(scenes.END_OF_MESSAGE) for one in seen.asked)
    expect(whole and size > scenes.SENT_CHARACTERS, "the whole message to reach the model", f"{size} characters")


def gives_much(seen: Seen) -> None:
    """The whole of a long answer is in the result."""
    size = len(str(seen.result.get("response") or ""))
    expect(size == scenes.ANSWERED_CHARACTERS, f"{scenes.ANSWERED_CHARACTERS} characters", f"{size}; {seen.last}")


def refuses(member: str | None, hint: str, seen: Seen) -> None:
    """It is a bad request that names the member, with a hint that has this word."""
    wording.expect_refusal(seen.result, member, hint, seen.last)


def says_whose_it_refuses(seen: Seen) -> None:
    """A refusal has the names that can be read."""
    names = [seen.result.get("session_name"), seen.result.get("id")]
    expect(names == ["a", "row-1"], "session_name a and id row-1", names)


def starts_nothing_for(*seen: Seen) -> None:
    """No model is asked for what is refused."""
    for one in seen:
        expect(not one.asked, "the model not to be asked", f"{len(one.asked)} requests in {one.scene}")


def knows_a_refused_key(seen: Seen) -> None:
    """A refused key is told as such, soon."""
    error = error_of(seen.result)
    expect(category_of(seen.result) == "authentication", "category authentication", category_of(seen.result))
    expect(error.get("http_status") == 401, "http_status 401", error.get("http_status"))
    expect(seen.seconds < QUICK_SECONDS, f"an end within {QUICK_SECONDS:g} s", f"{seen.seconds:.1f} s")


def is_cancelled_by(name: str, code: int, seen: Seen) -> None:
    """A signal cancels the session, which still has its result."""
    expect(category_of(seen.result) == "cancelled", "a result with category cancelled", seen.last)
    by = (error_of(seen.result).get("details") or {}).get("signal")
    expect(by == name, f"details.signal {name}", by)
    expect(seen.code == code, f"exit code {code}", seen.code)


def minds_its_lifeline(seen: Seen) -> None:
    """The end of the lifeline ends the session."""
    expect(seen.code is not None, "an end", "it went on")
    expect(category_of(seen.result) == "host_lost", "a result with category host_lost", seen.last)
