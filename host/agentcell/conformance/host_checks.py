"""The checks of a host, in their order."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from agentcell.conformance import host_scenes as scenes
from agentcell.conformance import wording
from agentcell.conformance.check import Check, NotTried, Scene, expect
from agentcell.conformance.stage import Seen
from agentcell.conformance.wording import category_of, error_of, expect_refusal
from agentcell.conformance.worker_scenes import END_OF_MESSAGE
from agentcell_protocol.serving import CAPABILITIES, TOOL_ID, Output

MODELS: tuple[type, ...] = get_args(Output)

OWN_TYPES = frozenset({"refused", "warning", "thinned", "result"})
"""Lines that are no events of a run, besides the first hello; a warning may be one."""


def _results(seen: Seen, run_id: str) -> list[dict[str, Any]]:
    return [one for one in seen.of_type("result") if one.get("id") == run_id]


def _result(seen: Seen, run_id: str) -> dict[str, Any]:
    return next(iter(_results(seen, run_id)), {})


def _events(seen: Seen) -> list[dict[str, Any]]:
    return [one for one in seen.messages[1:] if one.get("type") not in OWN_TYPES]


def _follows_the_schema(*seen: Seen) -> None:
    for one in seen:
        for message in one.messages:
            models = [model for model in MODELS if _kind(model) == message.get("type")]
            faults = [fault for model in models if (fault := _fault(model, message))]
            is_one = not models or len(faults) < len(models)  # types that are not known may come
            expect(is_one, "".join(faults[:1]), f"`{message.get('type')}` in {one.scene}")


def _kind(model: Any) -> str:
    return str(get_args(model.model_fields["type"].annotation)[0])


def _fault(model: type, message: dict[str, Any]) -> str:
    try:
        TypeAdapter(model).validate_python(message)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return ""


def _greets(seen: Seen) -> None:
    hello = seen.told["hello"]
    expect(hello.get("type") == "hello", "hello as the first line", hello or seen.last)
    missing = set(CAPABILITIES) - set(hello.get("capabilities") or ())
    expect(not missing, f"the capabilities {', '.join(CAPABILITIES)}", hello.get("capabilities"))
    expect(hello.get("protocol") == 1, "protocol 1", hello.get("protocol"))
    expect(isinstance(hello.get("max_sessions"), int), "max_sessions", hello.get("max_sessions"))


def _has_one_result_each(*seen: Seen) -> None:
    for one in seen:
        given = Counter(str(result.get("id")) for result in one.of_type("result"))
        doubled = [run_id for run_id, number in given.items() if number > one.told["due"][run_id]]
        expect(not doubled, "one result for each run that was accepted", f"more for {doubled} in {one.scene}")


def _gives_results(seen: Seen) -> None:
    given = {run_id: _result(seen, run_id).get("status") for run_id in seen.told["due"]}
    expect(set(given.values()) == {"complete"}, "status complete for each of the runs", given)
    said = _result(seen, "r1").get("response")
    expect(said == scenes.ANSWER, repr(scenes.ANSWER), repr(said))


def _says_whose(seen: Seen) -> None:
    names = {run_id: _result(seen, run_id).get("session_name") for run_id in seen.told["due"]}
    due = {run_id: f"name-{run_id}" for run_id in seen.told["due"]}
    expect(names == due, f"results with the ids of the lines, and the session_name of each: {due}", names)


def _names_runs(seen: Seen) -> None:
    events = _events(seen)
    expect(bool(events), "events", "none")
    for event in events:
        beginning = list(event)[:2]
        expect(beginning == ["type", "id"], "`id` after `type`", f"{beginning} in `{event.get('type')}`")
        expect(event["id"] in {"r2", "r3"}, "the id of a run that has asked for events", event["id"])


def _names_calls(seen: Seen) -> None:
    used = [(one.get("id"), one.get(TOOL_ID)) for one in seen.of_type("tool_use")]
    ended = [(one.get("id"), one.get(TOOL_ID)) for one in seen.of_type("tool_result")]
    paired = sorted(map(str, used)) == sorted(map(str, ended)) and len(used) == 2
    expect(paired and all(call for _, call in used), f"{TOOL_ID} in tool_use and tool_result", f"{used} and {ended}")


def _knows_details(seen: Seen) -> None:
    streamed = {one.get("id") for one in seen.of_type("text_delta")}
    expect(streamed == {"r3"}, "text_delta for the run with `full` alone", streamed)
    told = {one.get("id") for one in _events(seen)}
    expect("r1" not in told, "no events for the run that asked for none", sorted(map(str, told)))


def _ends_runs_with_results(*seen: Seen) -> None:
    for one in seen:
        over: Counter[str] = Counter()
        for message in one.messages:
            run_id = str(message.get("id"))
            if message.get("type") == "result":
                over[run_id] += 1
            elif message.get("type") not in {"refused", "warning"}:
                is_over = bool(over[run_id]) and over[run_id] == one.told["due"][run_id]
                expect(not is_over, "nothing of a run after its result", f"{message} in {one.scene}")


def _runs_at_a_time(seen: Seen) -> None:
    if seen.told["max_sessions"] < 2:
        raise NotTried("it says that it runs one session at a time: start it with room for two")
    failed = [one.get("id") for one in seen.of_type("tool_result") if one.get("is_error")]
    expect(not failed, "two runs at the same time", f"the tool of {failed} waited for the other in vain")
    kinds = [one.get("type") for one in seen.messages if one.get("id") in {"r2", "r3"}]
    first_result = kinds.index("result") if "result" in kinds else 0
    expect(kinds[:first_result].count("tool_use") == 2, "the events of both as they come", kinds)


def _refuses(name: str, run_id: str | None, member: str | None, hint: str, seen: Seen) -> None:
    refused = seen.told["refused"].get(name)
    expect(bool(refused), "a line of type refused", f"none; {seen.last}")
    _is_refusal(refused, run_id, member, hint)


def _is_refusal(refused: dict[str, Any], run_id: str | None, member: str | None, hint: str = "") -> None:
    expect_refusal(refused, member, hint, str(refused))
    expect(refused.get("id") == run_id, f"id {run_id}" if run_id else "no id", refused.get("id"))


def _goes_on(seen: Seen) -> None:
    status = _result(seen, "r1").get("status")
    expect(status == "complete", "a run after all that to be complete", status or seen.last)


def _refuses_live_ids(seen: Seen) -> None:
    expect(bool(seen.told["again"]), "a refusal", "none")
    _is_refusal(seen.told["again"], "r1", "id")


def _warns_of_unknown_ids(seen: Seen) -> None:
    warning = seen.told["unknown"]
    expect(bool(warning), "a warning with code unknown_run", "none")
    expect(warning.get("id") == "nobody", "the id in it", warning.get("id"))


def _cancels_running(seen: Seen) -> None:
    category = category_of(seen.told["cancelled"])
    expect(category == "cancelled", "a result with category cancelled", category)


def _frees_ids(seen: Seen) -> None:
    status = seen.told["anew"].get("status")
    expect(status == "complete", "a second run with the id of one that has ended", status)


def _cancels_queued(seen: Seen) -> None:
    if not seen.told["is_filled"]:
        raise NotTried(f"it has room for {seen.told['max_sessions']}: start it with room for {scenes.FEW} or fewer")
    result = seen.told["queued"]
    category = category_of(result)
    expect(category == "cancelled", "its result with category cancelled, while others run", category)
    expect(result.get("cost_usd") == 0, "cost_usd 0", result.get("cost_usd"))
    asked = [one.prompt for one in seen.asked if scenes.PLAIN in one.prompt]
    expect(not asked, "the model not to be asked", f"{len(asked)} requests")


def _ends_with_stdin(seen: Seen) -> None:
    given = {run_id: category_of(_result(seen, run_id)) for run_id in seen.told["due"]}
    expect(set(given.values()) == {"cancelled"}, "category cancelled for all, those that wait, too", given)
    _exits_with(0, seen)


def _exits_with(code: int, *seen: Seen) -> None:
    for one in seen:
        expect(one.code == code, f"exit code {code}", f"{one.code} after {one.scene}")


def _keeps_limits(seen: Seen) -> None:
    result = _result(seen, "r2")
    expect(category_of(result) == "timeout", "a result with category timeout", category_of(result))
    violated = result.get("violated_limits")
    expect(violated == ["max_execution_seconds"], 'violated_limits ["max_execution_seconds"]', violated)


def _drains(seen: Seen) -> None:
    given = {run_id: category_of(_result(seen, run_id)) for run_id in ("r1", "r2")}
    expect(set(given.values()) == {"complete"}, "both runs to end as they would have", given)


def _refuses_after_shutdown(seen: Seen) -> None:
    expect(bool(seen.told["late"]), "a refusal", "none")
    expect(seen.told["late"].get("id") == "r3", "id r3", seen.told["late"].get("id"))
    expect(category_of(seen.told["late"]) == "bad_request", "category bad_request", category_of(seen.told["late"]))
    expect(not _result(seen, "r3"), "no result", "one")


def _is_terminated(seen: Seen) -> None:
    result = _result(seen, "r1")
    expect(category_of(result) == "cancelled", "a result with category cancelled", category_of(result))
    by = (error_of(result).get("details") or {}).get("signal")
    expect(by == "SIGTERM", "details.signal SIGTERM", by)
    _exits_with(143, seen)


def _minds_no_slow_reader(seen: Seen) -> None:
    expect(seen.told["went on"] is True, "the runs to end while nobody reads", "they did not")
    given = {run_id: category_of(_result(seen, run_id)) for run_id in ("r1", "r2")}
    expect(set(given.values()) == {"complete"}, "the results, once somebody reads", given)


def _takes_much(seen: Seen) -> None:
    prompts = [one.prompt for one in seen.asked if scenes.BIG in one.prompt]
    is_whole = any(len(one) > scenes.SENT_CHARACTERS and one.rstrip().endswith(END_OF_MESSAGE) for one in prompts)
    expect(is_whole, "the whole message to reach the model", [len(one) for one in prompts])


def _gives_much(seen: Seen) -> None:
    size = len(str(_result(seen, "r2").get("response") or ""))
    expect(size == scenes.ANSWERED_CHARACTERS, f"{scenes.ANSWERED_CHARACTERS} characters", size)


def _tells_of_unfinished_lines(seen: Seen) -> None:
    expect(bool(seen.told["unfinished"]), "a warning with code unfinished_line", "none")
    expect("id" not in seen.told["unfinished"], "no id in it", seen.told["unfinished"].get("id"))
    expect(seen.told["ended"].get("id") == "u1", "the line to count once it ends", seen.last)


def _ends_without_a_reader(seen: Seen) -> None:
    _exits_with(1, seen)
    expect(bool(seen.told["stderr"].strip()), "a line on stderr", "none")


def _survives_its_workers(seen: Seen) -> None:
    if not seen.told["is_killed"]:
        raise NotTried("no hello of the run says which process it has")
    category = category_of(_result(seen, "r3"))
    expect(category == "crashed", "a result with category crashed", category)


Draft = tuple[str, str, Callable[..., None], Sequence[Scene]]

FORMAT: tuple[Draft, ...] = (
    (
        "each line ends with a line feed",
        "write the line end with the line, and write whole lines",
        wording.each_line_has_its_end,
        scenes.READ,
    ),
    ("the line feed stands alone", "write LF alone", wording.ends_are_line_feeds, scenes.READ),
    (
        "each line is one JSON object with a type, in strict JSON and UTF-8",
        "keep stdout for messages; write one line at a time",
        wording.each_line_is_an_object,
        scenes.READ,
    ),
    ("a result has its members in their order", "see docs/protocol.md", wording.results_are_ordered, scenes.READ),
    ("each line follows its schema", "see agentcell schema serve-output", _follows_the_schema, scenes.READ),
    ("the first line is hello", "send it before anything else", _greets, (scenes.IDLE,)),
    ("a run never has a second result", "end each run in one place", _has_one_result_each, scenes.READ),
    ("nothing of a run comes after its result", "write events before it", _ends_runs_with_results, scenes.READ),
)

RUNS: tuple[Draft, ...] = (
    ("each run gets its result", "run the sessions", _gives_results, (scenes.SEVERAL,)),
    ("a result has the id of its line", "send back the id, and the session_name", _says_whose, (scenes.SEVERAL,)),
    ("an event has the id of its run", "put it after the type", _names_runs, (scenes.SEVERAL,)),
    ("a tool call has its id as tool_use_id", "`id` is that of the run", _names_calls, (scenes.SEVERAL,)),
    ("each run gets the events that it asked for", "see `events` of its request", _knows_details, (scenes.SEVERAL,)),
    ("runs go on at the same time", "do not wait for one to begin the next", _runs_at_a_time, (scenes.SEVERAL,)),
)

REFUSE = "answer with a line of type refused: the id if there was one, and an error as a bad request has, with a hint"

REFUSALS: tuple[tuple[str, str, str | None, str | None, str], ...] = (
    ("what is no JSON is refused", "no JSON", None, None, ""),
    ("an array is refused", "an array", None, None, ""),
    ("a line without a type is refused", "no type", "x1", "type", ""),
    ("a line of an unknown type is refused", "an unknown type", "x2", "type", ""),
    ("an unknown member is refused by its name", "an unknown member", "x3", "why", ""),
    ("a run without an id is refused", "no id", None, "id", ""),
    ("an id that is no name is refused", "an id that is no name", "a/b", "id", ""),
    ("a run without a request is refused", "no request", "x4", "request", ""),
    ("a wrong request is refused by its member", "a wrong request", "x5", "request.max_turn", "max_turns"),
    ("limits inside the request are refused", "limits in the request", "x6", "request.limits", "beside"),
    ("an unknown limit is refused", "an unknown limit", "x7", "limits.max_execution_second", ""),
    ("another id inside the request is refused", "another id in the request", "x8", "request.id", ""),
    ("a line over the limit is refused", "a line over the limit", None, None, ""),
)

IDS: tuple[Draft, ...] = (
    ("refused lines stop nothing", "read on", _goes_on, (scenes.REFUSING,)),
    ("an id that is live is refused", REFUSE, _refuses_live_ids, (scenes.LIVE_IDS,)),
    ("cancel of an unknown id warns", "warn with code unknown_run", _warns_of_unknown_ids, (scenes.LIVE_IDS,)),
    ("cancel ends a run, with its result", "end the session, and write what it gives", _cancels_running,
     (scenes.LIVE_IDS,)),
    ("an id is free again after the result", "forget it then", _frees_ids, (scenes.LIVE_IDS,)),
    ("cancel ends a run that waits, at once", "take it out of the queue", _cancels_queued, (scenes.QUEUE,)),
    ("limits beside the request are kept", "end the session when one is reached", _keeps_limits, (scenes.LIVE_IDS,)),
    ("a killed worker is one crashed run", "give its result yourself", _survives_its_workers, (scenes.LIVE_IDS,)),
)  # fmt: skip

ENDS: tuple[Draft, ...] = (
    ("shutdown ends it, exit code 0", "exit when nothing runs", partial(_exits_with, 0),
     (scenes.IDLE, scenes.SEVERAL, scenes.DRAINING)),
    ("shutdown lets runs end", "wait for running and waiting ones", _drains, (scenes.DRAINING,)),
    ("after shutdown runs are refused", REFUSE, _refuses_after_shutdown, (scenes.DRAINING,)),
    ("the end of stdin cancels all, exit code 0", "write their results, then exit", _ends_with_stdin, (scenes.QUEUE,)),
    ("SIGTERM cancels all, exit code 143", "write the results, then exit", _is_terminated,
     (scenes.BY_TERM,)),
    ("SIGINT ends it, exit code 130", "exit when nothing runs any more", partial(_exits_with, 130), (scenes.BY_INT,)),
    ("a reader that leaves ends it, exit code 1", "cancel all, and say so on stderr", _ends_without_a_reader,
     (scenes.GONE,)),
    ("a slow reader stops nothing and loses no result", "read stdin always; drop events rather than wait",
     _minds_no_slow_reader, (scenes.SLOW,)),
    ("a message of 1 MiB goes in", "read until the line feed", _takes_much, (scenes.SLOW,)),
    ("an answer of 2 MiB comes out", "write until all of it is taken", _gives_much, (scenes.SLOW,)),
    ("a line whose end is missing is told of", "warn with code unfinished_line after 5 s", _tells_of_unfinished_lines,
     (scenes.UNFINISHED,)),
    ("nothing is left running", "end the whole tree of each session, and its host last", wording.nothing_is_left,
     scenes.ALL),
)  # fmt: skip


def _numbered() -> tuple[Check, ...]:
    refusals: list[Draft] = [
        (title, REFUSE, partial(_refuses, name, run_id, member, hint), (scenes.REFUSING,))
        for title, name, run_id, member, hint in REFUSALS
    ]
    drafts = enumerate((*FORMAT, *RUNS, *refusals, *IDS, *ENDS), 1)
    return tuple(
        Check(f"H{number:02}", title, remedy, tuple(played), judge) for number, (title, remedy, judge, played) in drafts
    )


HOST_CHECKS = _numbered()
"""All of them; a number stays with its check."""
