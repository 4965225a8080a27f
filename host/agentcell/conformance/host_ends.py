"""What a host is held against when runs end, or it ends itself."""

from agentcell.conformance import host_scenes as scenes
from agentcell.conformance.check import NotTried, expect
from agentcell.conformance.stage import Seen
from agentcell.conformance.wording import category_of, error_of


def cancels_running(seen: Seen) -> None:
    """A run that was cancelled says so."""
    category = category_of(seen.told["cancelled"])
    expect(category == "cancelled", "a result with category cancelled", category)


def frees_ids(seen: Seen) -> None:
    """An id can be used again."""
    status = seen.told["anew"].get("status")
    expect(status == "complete", "a second run with the id of one that has ended", status)


def cancels_queued(seen: Seen) -> None:
    """A run that waits is cancelled while others run, and never begins."""
    if not seen.told["is_filled"]:
        raise NotTried(f"it has room for {seen.told['max_sessions']}: start it with room for {scenes.FEW} or fewer")
    result = seen.told["queued"]
    category = category_of(result)
    expect(category == "cancelled", "its result with category cancelled, while others run", category)
    expect(result.get("cost_usd") == 0, "cost_usd 0", result.get("cost_usd"))
    asked = [one.prompt for one in seen.asked if scenes.PLAIN in one.prompt]
    expect(not asked, "the model not to be asked", f"{len(asked)} requests")


def ends_with_stdin(seen: Seen) -> None:
    """All runs are cancelled when stdin ends."""
    given = {run_id: category_of(seen.result_of(run_id)) for run_id in seen.told["due"]}
    expect(set(given.values()) == {"cancelled"}, "category cancelled for all, those that wait, too", given)
    exits_with(0, seen)


def exits_with(code: int, *seen: Seen) -> None:
    """It ends with this exit code."""
    for one in seen:
        expect(one.code == code, f"exit code {code}", f"{one.code} after {one.scene}")


def keeps_limits(seen: Seen) -> None:
    """A limit beside the request ends its run."""
    result = seen.result_of("r2")
    expect(category_of(result) == "timeout", "a result with category timeout", category_of(result))
    violated = result.get("violated_limits")
    expect(violated == ["max_execution_seconds"], 'violated_limits ["max_execution_seconds"]', violated)


def drains(seen: Seen) -> None:
    """A shutdown lets all runs end."""
    given = {run_id: category_of(seen.result_of(run_id)) for run_id in ("r1", "r2")}
    expect(set(given.values()) == {"complete"}, "both runs to end as they would have", given)


def refuses_after_shutdown(seen: Seen) -> None:
    """A run after the shutdown is refused, and has no result."""
    expect(bool(seen.told["late"]), "a refusal", "none")
    expect(seen.told["late"].get("id") == "r3", "id r3", seen.told["late"].get("id"))
    expect(category_of(seen.told["late"]) == "bad_request", "category bad_request", category_of(seen.told["late"]))
    expect(not seen.result_of("r3"), "no result", "one")


def is_terminated(seen: Seen) -> None:
    """SIGTERM cancels the runs, and is told of."""
    result = seen.result_of("r1")
    expect(category_of(result) == "cancelled", "a result with category cancelled", category_of(result))
    by = (error_of(result).get("details") or {}).get("signal")
    expect(by == "SIGTERM", "details.signal SIGTERM", by)
    exits_with(143, seen)


def ends_without_a_reader(seen: Seen) -> None:
    """It ends when nobody reads any more, and says why."""
    exits_with(1, seen)
    expect(bool(seen.told["stderr"].strip()), "a line on stderr", "none")


def survives_its_workers(seen: Seen) -> None:
    """A worker that was killed is the crash of one run."""
    if not seen.told["is_killed"]:
        raise NotTried("no hello of the run says which process it has")
    category = category_of(seen.result_of("r3"))
    expect(category == "crashed", "a result with category crashed", category)
