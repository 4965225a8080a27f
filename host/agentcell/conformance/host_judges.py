"""What a host is held against in the scenes that are played with it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import TypeAdapter

from agentcell.conformance import host_scenes as scenes
from agentcell.conformance.check import NotTried, Unmet, expect, told
from agentcell.conformance.faults import fault
from agentcell.conformance.stage import Seen
from agentcell.conformance.wording import category_of, expect_refusal, expect_usage
from agentcell.conformance.worker_scenes import END_OF_MESSAGE, USAGE
from agentcell_protocol.serving import CAPABILITIES, TOOL_ID, Output

SCHEMAS: Sequence[tuple[str, TypeAdapter[Any]]] = [
    (get_args(model.model_fields["type"].annotation)[0], TypeAdapter(model)) for model in get_args(Output)
]
"""By the types of lines, of which `hello` and `warning` have two; those that are not known may come."""

OWN_TYPES = frozenset({"refused", "warning", "thinned", "result"})
"""Lines that are no events of a run, besides the first hello; a warning may be one."""


def _events(seen: Seen) -> list[dict[str, Any]]:
    return [one for one in seen.messages[1:] if one.get("type") not in OWN_TYPES]


def follows_the_schema(*seen: Seen) -> None:
    """Each line of a type that is known is one by the schema that `agentcell schema serve-output` prints."""
    for one in seen:
        for message in one.messages:
            faults = [fault(schema, message) for kind, schema in SCHEMAS if kind == message.get("type")]
            if faults and (found := faults[0]) is not None and None not in faults:
                raise Unmet(found.expected, f"{found.came}, for `{message.get('type')}` in {one.scene}")


def greets(seen: Seen) -> None:
    """The first line is hello, with what it says of the host."""
    hello = seen.told["hello"]
    expect(hello.get("type") == "hello", "hello as the first line", hello or seen.last)
    missing = set(CAPABILITIES) - set(hello.get("capabilities") or ())
    expect(not missing, f"the capabilities {', '.join(CAPABILITIES)}", hello.get("capabilities"))
    expect(hello.get("protocol") == 1, "protocol 1", hello.get("protocol"))
    expect(isinstance(hello.get("max_sessions"), int), "max_sessions", hello.get("max_sessions"))


def counts_tokens(seen: Seen) -> None:
    """The usage of each run that has used a tool is that of its own turns."""
    for run_id in ("r2", "r3"):
        expect_usage(seen.result_of(run_id), USAGE)


def counts_calls(seen: Seen) -> None:
    """Each result has the number of calls of its own run."""
    given = {run_id: seen.result_of(run_id).get("tool_calls") for run_id in ("r1", "r2", "r3")}
    due = {"r1": 0, "r2": 1, "r3": 1}
    expect(given == due, f"tool_calls {told(due)}", given)


def has_one_result_each(*seen: Seen) -> None:
    """No run has more results than were due."""
    for one in seen:
        given = Counter(str(result.get("id")) for result in one.of_type("result"))
        doubled = [run_id for run_id, number in given.items() if number > one.told["due"][run_id]]
        expect(not doubled, "one result for each run that was accepted", f"more for {doubled} in {one.scene}")


def gives_results(seen: Seen) -> None:
    """Each run ends well, and the first says what the model said."""
    given = {run_id: seen.result_of(run_id).get("status") for run_id in seen.told["due"]}
    expect(set(given.values()) == {"complete"}, "status complete for each of the runs", given)
    said = seen.result_of("r1").get("response")
    expect(said == scenes.ANSWER, repr(scenes.ANSWER), repr(said))


def says_whose(seen: Seen) -> None:
    """Each result has the id of its line and the names of its request."""
    names = {run_id: seen.result_of(run_id).get("session_name") for run_id in seen.told["due"]}
    due = {run_id: f"name-{run_id}" for run_id in seen.told["due"]}
    expect(names == due, f"results with the ids of the lines, and the session_name of each: {due}", names)


def names_runs(seen: Seen) -> None:
    """Each event has the id of its run, after its type."""
    events = _events(seen)
    expect(bool(events), "events", "none")
    for event in events:
        beginning = list(event)[:2]
        expect(beginning == ["type", "id"], "`id` after `type`", f"{beginning} in `{event.get('type')}`")
        expect(event["id"] in {"r2", "r3"}, "the id of a run that has asked for events", event["id"])


def names_calls(seen: Seen) -> None:
    """Each call of a tool has its own id beside that of its run."""
    used = [(one.get("id"), one.get(TOOL_ID)) for one in seen.of_type("tool_use")]
    ended = [(one.get("id"), one.get(TOOL_ID)) for one in seen.of_type("tool_result")]
    paired = sorted(map(str, used)) == sorted(map(str, ended)) and len(used) == 2
    expect(paired and all(call for _, call in used), f"{TOOL_ID} in tool_use and tool_result", f"{used} and {ended}")


def knows_details(seen: Seen) -> None:
    """Each run has as many events as it asked for."""
    streamed = {one.get("id") for one in seen.of_type("text_delta")}
    expect(streamed == {"r3"}, "text_delta for the run with `full` alone", streamed)
    told = {one.get("id") for one in _events(seen)}
    expect("r1" not in told, "no events for the run that asked for none", sorted(map(str, told)))


def ends_runs_with_results(*seen: Seen) -> None:
    """Nothing of a run comes after its result."""
    for one in seen:
        over: Counter[str] = Counter()
        for message in one.messages:
            run_id = str(message.get("id"))
            if message.get("type") == "result":
                over[run_id] += 1
            elif message.get("type") not in {"refused", "warning"}:
                is_over = bool(over[run_id]) and over[run_id] == one.told["due"][run_id]
                expect(not is_over, "nothing of a run after its result", f"{message} in {one.scene}")


def runs_at_a_time(seen: Seen) -> None:
    """Two runs that wait for each other both end, and their events come as they happen."""
    if seen.told["max_sessions"] < 2:
        raise NotTried("it says that it runs one session at a time: start it with room for two")
    failed = [one.get("id") for one in seen.of_type("tool_result") if one.get("is_error")]
    expect(not failed, "two runs at the same time", f"the tool of {failed} waited for the other in vain")
    kinds = [one.get("type") for one in seen.messages if one.get("id") in {"r2", "r3"}]
    first_result = kinds.index("result") if "result" in kinds else 0
    expect(kinds[:first_result].count("tool_use") == 2, "the events of both as they come", kinds)


def refuses(name: str, run_id: str | None, member: str | None, hint: str, seen: Seen) -> None:
    """The line of this name is refused, with the id, the member and the hint."""
    refused = seen.told["refused"].get(name)
    expect(bool(refused), "a line of type refused", f"none; {seen.last}")
    _is_refusal(refused, run_id, member, hint)


def _is_refusal(refused: dict[str, Any], run_id: str | None, member: str | None, hint: str = "") -> None:
    expect_refusal(refused, member, hint, str(refused))
    expect(refused.get("id") == run_id, f"id {run_id}" if run_id else "no id", refused.get("id"))


def goes_on(seen: Seen) -> None:
    """A run after all refusals ends well."""
    status = seen.result_of("r1").get("status")
    expect(status == "complete", "a run after all that to be complete", status or seen.last)


def refuses_live_ids(seen: Seen) -> None:
    """An id that is live is refused."""
    expect(bool(seen.told["again"]), "a refusal", "none")
    _is_refusal(seen.told["again"], "r1", "id")


def warns_of_unknown_ids(seen: Seen) -> None:
    """A cancel of nobody is warned of."""
    warning = seen.told["unknown"]
    expect(bool(warning), "a warning with code unknown_run", "none")
    expect(warning.get("id") == "nobody", "the id in it", warning.get("id"))


def minds_no_slow_reader(seen: Seen) -> None:
    """The runs end while nobody reads, and their results come later."""
    expect(seen.told["went on"] is True, "the runs to end while nobody reads", "they did not")
    given = {run_id: category_of(seen.result_of(run_id)) for run_id in ("r1", "r2")}
    expect(set(given.values()) == {"complete"}, "the results, once somebody reads", given)


def takes_much(seen: Seen) -> None:
    """The whole of a long message reaches the model."""
    prompts = [one.prompt for one in seen.asked if scenes.BIG in one.prompt]
    is_whole = any(len(one) > scenes.SENT_CHARACTERS and one.rstrip().endswith(END_OF_MESSAGE) for one in prompts)
    expect(is_whole, "the whole message to reach the model", [len(one) for one in prompts])


def gives_much(seen: Seen) -> None:
    """The whole of a long answer is in the result."""
    size = len(str(seen.result_of("r2").get("response") or ""))
    expect(size == scenes.ANSWERED_CHARACTERS, f"{scenes.ANSWERED_CHARACTERS} characters", size)


def tells_of_unfinished_lines(seen: Seen) -> None:
    """Part of a line is warned of, and counts once it ends."""
    expect(bool(seen.told["unfinished"]), "a warning with code unfinished_line", "none")
    expect("id" not in seen.told["unfinished"], "no id in it", seen.told["unfinished"].get("id"))
    expect(seen.told["ended"].get("id") == "u1", "the line to count once it ends", seen.last)
