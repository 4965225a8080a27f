"""The checks of a host, in their order."""

from collections.abc import Callable, Sequence
from functools import partial

from agentcell.conformance import host_ends as ends
from agentcell.conformance import host_judges as judges
from agentcell.conformance import host_scenes as scenes
from agentcell.conformance import wording
from agentcell.conformance.check import Check, Scene

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
    ("each line follows its schema", "see agentcell schema serve-output", judges.follows_the_schema, scenes.READ),
    ("the first line is hello", "send it before anything else", judges.greets, (scenes.IDLE,)),
    ("a run never has a second result", "end each run in one place", judges.has_one_result_each, scenes.READ),
    ("nothing of a run comes after its result", "write events before it", judges.ends_runs_with_results, scenes.READ),
)

RUNS: tuple[Draft, ...] = (
    ("each run gets its result", "run the sessions", judges.gives_results, (scenes.SEVERAL,)),
    ("a result has the id of its line", "send back the id, and the session_name", judges.says_whose, (scenes.SEVERAL,)),
    ("an event has the id of its run", "put it after the type", judges.names_runs, (scenes.SEVERAL,)),
    ("a tool call has its id as tool_use_id", "`id` is that of the run", judges.names_calls, (scenes.SEVERAL,)),
    (
        "each run gets the events that it asked for",
        "see `events` of its request",
        judges.knows_details,
        (scenes.SEVERAL,),
    ),
    ("runs go on at the same time", "do not wait for one to begin the next", judges.runs_at_a_time, (scenes.SEVERAL,)),
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
    ("refused lines stop nothing", "read on", judges.goes_on, (scenes.REFUSING,)),
    ("an id that is live is refused", REFUSE, judges.refuses_live_ids, (scenes.LIVE_IDS,)),
    ("cancel of an unknown id warns", "warn with code unknown_run", judges.warns_of_unknown_ids, (scenes.LIVE_IDS,)),
    (
        "cancel ends a run, with its result",
        "end the session, and write what it gives",
        ends.cancels_running,
        (scenes.LIVE_IDS,),
    ),
    ("an id is free again after the result", "forget it then", ends.frees_ids, (scenes.LIVE_IDS,)),
    ("cancel ends a run that waits, at once", "take it out of the queue", ends.cancels_queued, (scenes.QUEUE,)),
    (
        "limits beside the request are kept",
        "end the session when one is reached",
        ends.keeps_limits,
        (scenes.LIVE_IDS,),
    ),
    ("a killed worker is one crashed run", "give its result yourself", ends.survives_its_workers, (scenes.LIVE_IDS,)),
)

ENDS: tuple[Draft, ...] = (
    (
        "shutdown ends it, exit code 0",
        "exit when nothing runs",
        partial(ends.exits_with, 0),
        (scenes.IDLE, scenes.SEVERAL, scenes.DRAINING),
    ),
    ("shutdown lets runs end", "wait for running and waiting ones", ends.drains, (scenes.DRAINING,)),
    ("after shutdown runs are refused", REFUSE, ends.refuses_after_shutdown, (scenes.DRAINING,)),
    (
        "the end of stdin cancels all, exit code 0",
        "write their results, then exit",
        ends.ends_with_stdin,
        (scenes.QUEUE,),
    ),
    ("SIGTERM cancels all, exit code 143", "write the results, then exit", ends.is_terminated, (scenes.BY_TERM,)),
    (
        "SIGINT ends it, exit code 130",
        "exit when nothing runs any more",
        partial(ends.exits_with, 130),
        (scenes.BY_INT,),
    ),
    (
        "a reader that leaves ends it, exit code 1",
        "cancel all, and say so on stderr",
        ends.ends_without_a_reader,
        (scenes.GONE,),
    ),
    (
        "a slow reader stops nothing and loses no result",
        "read stdin always; drop events rather than wait",
        judges.minds_no_slow_reader,
        (scenes.SLOW,),
    ),
    ("a message of 1 MiB goes in", "read until the line feed", judges.takes_much, (scenes.SLOW,)),
    ("an answer of 2 MiB comes out", "write until all of it is taken", judges.gives_much, (scenes.SLOW,)),
    (
        "a line whose end is missing is told of",
        "warn with code unfinished_line after 5 s",
        judges.tells_of_unfinished_lines,
        (scenes.UNFINISHED,),
    ),
    (
        "nothing is left running",
        "end the whole tree of each session, and its host last",
        wording.nothing_is_left,
        scenes.ALL,
    ),
    (
        "usage of each run adds up what the model gave",
        "pass on what the worker says",
        judges.counts_tokens,
        (scenes.SEVERAL,),
    ),
    ("tool_calls of each run counts its own", "pass on what the worker says", judges.counts_calls, (scenes.SEVERAL,)),
    (
        "retryable follows from the category",
        "see docs/protocol.md, Errors",
        wording.retries_are_promised_where_they_help,
        scenes.READ,
    ),
)


def _numbered() -> tuple[Check, ...]:
    refusals: list[Draft] = [
        (title, REFUSE, partial(judges.refuses, name, run_id, member, hint), (scenes.REFUSING,))
        for title, name, run_id, member, hint in REFUSALS
    ]
    drafts = enumerate((*FORMAT, *RUNS, *refusals, *IDS, *ENDS), 1)
    return tuple(
        Check(f"H{number:02}", title, remedy, tuple(played), judge) for number, (title, remedy, judge, played) in drafts
    )


HOST_CHECKS = _numbered()
"""All of them; a number stays with its check."""
