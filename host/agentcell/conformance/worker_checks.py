"""The checks of a worker, in their order."""

from collections.abc import Callable
from functools import partial

from agentcell.conformance import wording
from agentcell.conformance import worker_judges as judges
from agentcell.conformance import worker_scenes as scenes
from agentcell.conformance.check import Check, Scene

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
    ("there is never a second result", "write the result in one place, once", judges.has_one_result),
    ("the result is the last line", "write events, also late ones, before it", judges.ends_with_its_result),
    ("a result has its members in their order", "see docs/protocol.md, The result", wording.results_are_ordered),
    ("a result follows its schema", "see agentcell schema result", wording.results_are_true_to_the_model),
    ("the exit code agrees with the result", "see docs/protocol.md, Exit codes", wording.exit_codes_agree),
)

_SESSIONS: tuple[tuple[str, str, Judge, tuple[Scene, ...]], ...] = (
    ("a request gives a result", "run the session, and answer with its result", judges.is_complete, (scenes.PLAIN,)),
    ("text goes through unchanged", "read and write UTF-8; only LF ends a line", judges.keeps_text, (scenes.PLAIN,)),
    (
        "a result says whose it is",
        "send back session_name, agent_type, and id, which is the session_name when left out",
        judges.says_whose,
        (scenes.PLAIN, scenes.SUMMARY),
    ),
    (
        "without events there is one line",
        "send events only if they are asked for",
        judges.has_one_line,
        (scenes.PLAIN,),
    ),
    (
        "it does not wait for the end of stdin",
        "act on the first whole line",
        judges.does_not_wait,
        (scenes.WRONG_AND_OPEN, scenes.BY_INT),
    ),
    (
        "events begin with hello and tell of the session",
        "send hello first, session_started, text, and outcome before clean-up",
        judges.greets_first,
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
        judges.knows_details,
        (scenes.SUMMARY, scenes.BIG),
    ),
    ("tool_use and tool_result belong together", "give both the id of the call", judges.pairs_tools, (scenes.SUMMARY,)),
    (
        "what a tool prints stays off stdout",
        "give tools a stdout of their own",
        judges.keeps_tools_apart,
        (scenes.SUMMARY,),
    ),
    ("result_file has the result's line", "write it before the line", judges.writes_its_file, (scenes.SUMMARY,)),
    (
        "a plan with work left gives continue",
        "read implementation_plan.json in spec_dir",
        judges.reads_the_plan,
        (scenes.SUMMARY,),
    ),
    (
        "a message of 1 MiB goes in",
        "read until the line feed, in as many pieces as come",
        judges.takes_much,
        (scenes.BIG,),
    ),
    ("an answer of 2 MiB comes out", "write until all of it is taken", judges.gives_much, (scenes.BIG,)),
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
        judges.says_whose_it_refuses,
        (scenes.UNKNOWN,),
    ),
    ("a refused request starts nothing", "look at the whole request first", judges.starts_nothing_for, scenes.REFUSALS),
    (
        "a refused key ends the session at once",
        "do not ask again after 401, and put the status into error.http_status",
        judges.knows_a_refused_key,
        (scenes.REFUSED_KEY,),
    ),
    (
        "SIGTERM cancels, while a tool runs",
        "end the tool, answer, exit",
        partial(judges.is_cancelled_by, "SIGTERM", 143),
        (scenes.BY_TERM,),
    ),
    ("SIGINT cancels", "answer, then exit", partial(judges.is_cancelled_by, "SIGINT", 130), (scenes.BY_INT,)),
    (
        "with a lifeline the end of stdin ends the session",
        "read on from stdin",
        judges.minds_its_lifeline,
        (scenes.CUT,),
    ),
    (
        "nothing is left running",
        "end the whole tree of processes before the exit, what was detached, too",
        wording.nothing_is_left,
        scenes.ENDED,
    ),
    ("usage adds up what the model gave", "add up the usage of all turns", judges.counts_tokens, (scenes.SUMMARY,)),
    (
        "tool_calls counts the calls of tools",
        "count each, also when one turn has several",
        judges.counts_calls,
        (scenes.PLAIN, scenes.SUMMARY),
    ),
    (
        "retryable follows from the category",
        "see docs/protocol.md, Errors",
        wording.retries_are_promised_where_they_help,
        scenes.ENDED,
    ),
)


def _numbered() -> tuple[Check, ...]:
    drafts: list[tuple[str, str, Judge, tuple[Scene, ...]]] = [
        *((title, remedy, judge, scenes.ENDED) for title, remedy, judge in _FORMAT),
        *_SESSIONS,
        *((title, REFUSE, partial(judges.refuses, member, hint), (scene,)) for title, scene, member, hint in _REFUSALS),
        *_ENDS,
    ]
    return tuple(
        Check(f"W{number:02}", title, remedy, played, judge)
        for number, (title, remedy, judge, played) in enumerate(drafts, 1)
    )


WORKER_CHECKS = _numbered()
"""All of them; a number stays with its check."""
