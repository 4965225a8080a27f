"""The rows of a batch are read one at a time, and what is wrong with one is said with its line number."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from agentcell.batch import intake
from agentcell.batch.identity import digest
from agentcell.batch.rows import (
    NO_RULES,
    ONE_EACH,
    KnownRow,
    Problem,
    Row,
    checked_defaults,
    read_lines,
    read_rows,
    row_at,
)
from agentcell.batch.rules import Rules, owned
from agentcell.limits import Limits
from agentcell_protocol.errors import RequestError
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import failed

ONE_LINE = "write the whole object on one line, without line breaks"
ONE_OBJECT = "send one JSON object on one line"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def members(**more: Any) -> dict[str, Any]:
    return {"agent_type": "coder", "project_dir": "project", "starting_message": "Go.", **more}


def line(**more: Any) -> bytes:
    return json.dumps(members(**more)).encode() + b"\n"


def read(text: bytes, rules: Rules = NO_RULES) -> list[Row | Problem]:
    return list(read_rows(io.BytesIO(text), rules))


def told(found: Row | Problem) -> tuple[int, str, str | None]:
    """Its line, its id, and what is wrong with it."""
    return found.number, found.id, str(found.error) if isinstance(found, Problem) else None


def test_a_row_is_its_request_its_limits_and_where_it_stands(project: Path) -> None:
    asked = members(id="one", session_name="s")
    first = line(id="zero")
    assert read(first + line(**asked, limits={"idle_seconds": 5}))[1] == Row(
        number=2,
        offset=len(first),
        id="one",
        digest=digest(asked),
        request=parse_request(asked),
        limits=Limits(idle_seconds=5),
    )


def test_without_an_id_the_name_is_it_and_without_a_name_the_digest(project: Path) -> None:
    named, unnamed = read(line(session_name="s") + line(session_name=None))
    assert (named.id, unnamed.id) == ("s", "row-" + digest(members())[2:14])
    assert isinstance(unnamed, Row)
    assert unnamed.request.session_name == unnamed.id


def test_relative_paths_are_the_callers(project: Path) -> None:
    [row] = read(line(spec_dir="specs", id="a"))
    assert isinstance(row, Row)
    assert (row.request.project_dir, row.request.spec_dir) == (str(project / "project"), str(project / "specs"))


@pytest.mark.parametrize(
    "text",
    [
        b"%s%s",
        b"\xef\xbb\xbf%s%s",
        b"%s\n\r\n  \t\n%s\n\n",
        b"\n\n%s\xef\xbb\xbf%s",
    ],
)
def test_a_bom_and_blank_lines_are_no_rows(project: Path, text: bytes) -> None:
    assert [found.id for found in read(text % (line(id="a"), line(id="b")))] == ["a", "b"]


def test_crlf_and_a_last_line_without_an_end_are_as_good(project: Path) -> None:
    text = line(id="a").replace(b"\n", b"\r\n") + line(id="b").rstrip()
    assert [told(found) for found in read(text)] == [(1, "a", None), (2, "b", None)]


@pytest.mark.slow
def test_two_million_blank_lines_are_passed_over(project: Path) -> None:
    [row] = read(b"\n" * 2_000_000 + line(id="a"))
    assert (row.number, row.offset) == (2_000_001, 2_000_000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"id": 17, "session_name": "s", ', "the request: the line is not valid JSON: "),
        (b"[1]", f"the request: the line is an array, not an object; {ONE_OBJECT}"),
        (b"null", f"the request: the line is null, not an object; {ONE_OBJECT}"),
        (b"\0\0", "the request: the line is not valid JSON: "),
        (b'{"id": "\xff"}', "the request: it is not UTF-8: byte 9 of the line is 0xff; save the file as UTF-8"),
        (b"\xff\xfe{\0", "the request: it is not UTF-8: byte 1 of the line is 0xff; save the file as UTF-8"),
        (line(id=17), "id: 17 is not allowed here; give a string"),
        (line(id=""), "id: is 0 characters long; give 1 to 200 characters"),
        (line(id="../x"), "id: cannot be used as a name; give printable characters without '/', and not '.' or '..'"),
        (line(id="😀" * 201), "id: is 201 characters long; give 1 to 200 characters"),
        (line(limits=[]), "limits: it is not a JSON object; send an object of limits, or leave it out"),
        (line(limits={"idle_second": 5}), "limits.idle_second: is not a limit; did you mean idle_seconds?"),
        (line(project_dir="none"), "project_dir: "),
        (line(prompt="Go."), "prompt: is not a member of a request; did you mean starting_message?"),
    ],
)
def test_what_is_wrong_is_said_of_that_line_only(project: Path, text: bytes, reason: str) -> None:
    before, problem, after = read(line(id="a") + text.rstrip() + b"\n" + line(id="b"))
    assert (told(before), told(after)) == ((1, "a", None), (3, "b", None))
    assert isinstance(problem, Problem)
    assert (problem.number, problem.id, str(problem.error)[: len(reason)]) == (2, "line-2", reason)
    assert (problem.error.__traceback__, problem.error.__context__) == (None, None)  # they would hold the line


def test_an_id_of_200_emoji_is_one(project: Path) -> None:
    assert [told(found) for found in read(line(id="😀" * 200))] == [(1, "😀" * 200, None)]


def test_a_problem_has_the_rows_own_id_where_that_can_be_one(project: Path) -> None:
    [problem] = read(line(id="a", max_turns=0))
    assert isinstance(problem, Problem)
    assert problem == Problem(1, 0, "a", problem.error, digest(members(max_turns=0)), problem.names)
    error = RequestError("max_turns", "0 is not allowed here", "give 1 or more")
    assert problem.as_result() == failed(error.as_session_error(), id="a", agent_type="coder", cost_usd=0.0)


@pytest.mark.slow
def test_a_line_that_is_too_long_is_named_and_the_next_one_is_read(project: Path) -> None:
    long = b'{"starting_message": "' + b"x" * LINE_LIMIT + b'"}\n'
    problem, row = read(long + line(id="a"))
    reason = f"the request: a line is longer than the limit of {LINE_LIMIT} bytes"
    assert told(problem) == (1, "line-1", f"{reason}; put large inputs into files and name them in the message")
    assert (row.id, row.number, row.offset) == ("a", 2, len(long))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("over", [0, 1, 2, 3])
def test_the_limit_is_the_lines_whatever_its_end_is(
    project: Path, over: int, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "LINE_LIMIT", 200)
    filler = 200 - len(line(id="a", starting_message="").rstrip()) + over
    found = read(line(id="a", starting_message="x" * filler).rstrip() + end + line(id="b") * bool(end))
    assert [one.id for one in found] == ["line-1" if over else "a", *(["b"] if end else [])]


def test_an_indented_row_is_one_problem_that_says_how_to_write_it(project: Path) -> None:
    indented = json.dumps(members(limits={"idle_seconds": 5}, tools=["Read"]), indent=2).encode()
    first, *rest = read(indented + b"\n" + line(id="a") + indented)
    assert [told(found)[:2] for found in [first, *rest]] == [(1, "line-1"), (12, "a"), (13, "line-13")]
    assert isinstance(first, Problem)
    assert first.error.remedy == ONE_LINE


def test_what_does_not_look_like_the_rest_of_a_row_is_a_problem_of_its_own(project: Path) -> None:
    found = read(b'{"id":\nrubbish\n  rubbish\n' + line(id="a") + b"  rubbish\n")
    assert [one.id for one in found] == ["line-1", "line-2", "line-3", "a", "line-5"]


def test_of_two_rows_with_one_id_the_second_is_a_problem(project: Path) -> None:
    first, second, third = read(line(id="a") + b"\n" + line(id="a", model="m") + line(session_name="a"))
    assert isinstance(second, Problem)
    assert (first.id, second.id, third.id) == ("a", "line-3", "line-4")
    assert str(second.error) == "id: a is the id of line 1, too; give each row an id of its own"
    assert second.digest == digest(members(model="m"))


def test_of_two_rows_that_say_the_same_and_have_no_ids_the_second_is_told_so(project: Path) -> None:
    reason = "id: there is none, and the row is the same as line 1; give it an id of its own, or leave it out"
    first, *rest = read(line() + line() + line(limits={"idle_seconds": 5}))
    assert isinstance(first, Row)
    assert [told(found) for found in rest] == [(2, "line-2", reason), (3, "line-3", reason)]


UUID = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("member", "first", "second"),
    [
        ("session_id", UUID, UUID),
        ("resume", UUID, UUID),
        ("result_file", "out/a.json", "./here/../out/a.json"),
        ("result_file", "out/a.json", "link/a.json"),
    ],
)
def test_of_two_rows_that_share_what_is_one_rows_the_second_is_a_problem(
    project: Path, member: str, first: str, second: str
) -> None:
    (project / "link").symlink_to(project / "out")
    found = read(line(id="a", **{member: first}) + line(id="b", **{member: second}) + line(id="c"))
    reason = f"{member}: {second} is the {member} of line 1, too; give each row a {member} of its own"
    assert [told(one) for one in found] == [(1, "a", None), (2, "b", reason), (3, "c", None)]


def test_what_a_finished_row_has_to_itself_is_no_other_rows(project: Path) -> None:
    text = line(id="a", result_file="a.json") + line(id="b", result_file="a.json") + line(id="c", result_file="\0")
    known, second, other = read_lines(io.BytesIO(text), lambda id_, _digest: id_ in {"a", "c"})
    assert isinstance(second, Problem)
    assert (second.id, second.error.member) == ("b", "result_file")
    assert (isinstance(known, KnownRow), isinstance(other, KnownRow)) == (True, True)


@pytest.mark.parametrize(
    "file", ["rows.run/results.jsonl", "rows.run/x/y", "rows.run", "out/../rows.run/lock", "link/x", "rows.jsonl"]
)
def test_no_result_is_put_where_the_batch_has_its_own_files(project: Path, file: str) -> None:
    (project / "link").symlink_to(project / "rows.run")
    rules = Rules(own=owned(["rows.run", "rows.jsonl"]))
    source = line(id="a", result_file=file) + line(id="b", result_file="rows.run.json")
    problem, row = read(source, rules)
    place = project / ("rows.jsonl" if file == "rows.jsonl" else "rows.run")
    reason = f"result_file: {project / file} belongs to the batch itself; name a place outside of {place}"
    assert (told(problem), told(row)) == ((1, "a", reason), (2, "b", None))
    allowed = read(source)[0]
    assert isinstance(allowed, Row)
    again = row_at(io.BytesIO(source), 0, 1, allowed.checksum, rules)
    assert again is not None
    assert told(again) == told(problem)


def test_no_two_have_one_id_even_when_a_row_is_called_as_a_line_would_be(project: Path) -> None:
    found = read(line(id="line-2") + b"rubbish\nrubbish\n" + line(id="line-3"))
    assert [one.id for one in found] == ["line-2", "line-2-again", "line-3", "line-4"]
    assert [isinstance(one, Problem) for one in found] == [False, True, True, True]


def test_defaults_fill_what_a_row_leaves_out(project: Path) -> None:
    defaults = checked_defaults(
        {"agent_type": "planner", "model": "m", "limits": {"idle_seconds": 5, "max_processes": 9}}
    )
    row = json.dumps({"id": "a", "project_dir": "project", "starting_message": "Go."}).encode() + b"\n"
    bare, own = read(row + line(id="b", model=None, limits={"idle_seconds": 7}), Rules(defaults))
    assert isinstance(bare, Row)
    assert isinstance(own, Row)
    assert (bare.request.agent_type, bare.request.model) == ("planner", "m")
    assert bare.limits == Limits(idle_seconds=5, max_processes=9)
    assert (own.request.agent_type, own.request.model) == ("coder", None)
    assert own.limits == Limits(idle_seconds=7, max_processes=9)
    assert bare.digest == digest({**members(), "agent_type": "planner", "model": "m"})


def test_defaults_are_checked_once_and_not_in_each_row(project: Path) -> None:
    with pytest.raises(RequestError, match=r"^modle: is not a member of a request; did you mean model\?$"):
        checked_defaults({"modle": "m"})
    with pytest.raises(RequestError, match=r"^limits\.idle: is not a limit"):
        checked_defaults({"limits": {"idle": 5}})
    with pytest.raises(RequestError, match="is not a directory"):
        checked_defaults({"project_dir": "none"})


@pytest.mark.parametrize("member", ONE_EACH)
def test_what_each_row_must_have_to_itself_is_no_default(member: str) -> None:
    with pytest.raises(RequestError, match=f"^{member}: would be the same for all rows; leave it out of the defaults$"):
        checked_defaults({member: "x"})


class Pipe(io.RawIOBase):
    """Gives a line at a time, and remembers how many were asked for."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        self.asked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.asked == len(self._lines):
            return 0
        content = self._lines[self.asked]
        buffer[: len(content)] = content
        self.asked += 1
        return len(content)


def test_a_row_is_there_as_soon_as_its_line_is(project: Path) -> None:
    pipe = Pipe([line(id="a"), line(id="b")])
    found = read_rows(io.BufferedReader(pipe))
    assert (next(found).id, pipe.asked) == ("a", 1)
    assert (next(found).id, pipe.asked) == ("b", 2)


def test_a_row_is_read_again_from_where_it_stands(project: Path) -> None:
    source = io.BytesIO(b"\n" + line(id="a") + b"rubbish\n" + line(id="b"))
    found = [one for one in read_rows(source) if isinstance(one, Row)]
    again = [row_at(source, one.offset, one.number, one.checksum) for one in reversed(found)]
    assert (len(found), again) == (2, list(reversed(found)))


@pytest.mark.parametrize("now", [b"", b"{}\n", line(id="a", model="m"), b"\n" * 9 + line(id="a"), b"rubbish\n"])
def test_a_row_that_is_another_now_is_none(project: Path, now: bytes) -> None:
    [row] = read_rows(io.BytesIO(line(id="a")))
    assert isinstance(row, Row)
    assert row_at(io.BytesIO(now), row.offset, row.number, row.checksum) is None


def test_a_row_whose_project_is_gone_is_a_problem(project: Path) -> None:
    source = io.BytesIO(line(id="a"))
    [row] = read_rows(source)
    assert isinstance(row, Row)
    (project / "project").rmdir()
    found = row_at(source, row.offset, row.number, row.checksum)
    assert isinstance(found, Problem)
    assert (found.id, found.error.member) == ("a", "project_dir")
