"""A request is read strictly, its paths become absolute, and what is wrong with it is named."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentcell_protocol.errors import RequestError
from agentcell_protocol.framing import Overlong
from agentcell_protocol.intake import decode_request
from agentcell_protocol.request import MAX_SCHEMA, SessionRequest, parse_request


def minimal(**members: Any) -> dict[str, Any]:
    return {"session_name": "a", "agent_type": "coder", "project_dir": ".", **members}


def refusal(data: object, base: Path | None = None) -> tuple[str | None, str, str]:
    with pytest.raises(RequestError) as raised:
        parse_request(data, base=base)
    return raised.value.member, raised.value.reason, raised.value.remedy


def test_the_least_request_has_the_defaults_of_the_rest(tmp_path: Path) -> None:
    request = parse_request(minimal(), base=tmp_path)
    assert request.model_dump(exclude_none=True) == {
        "session_name": "a",
        "agent_type": "coder",
        "project_dir": str(tmp_path),
        "protocol": 1,
        "events": "none",
        "lifeline": False,
    }
    assert request.identity == "a"


def test_an_id_is_the_identity() -> None:
    assert parse_request(minimal(id="row 7")).identity == "row 7"


def test_relative_paths_are_taken_from_the_base(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    request = parse_request(
        minimal(
            project_dir="shop",
            spec_dir="./specs",
            agents_dir="agents",
            add_dirs=["shared", "/opt"],
            cli_path="./claude",
            result_file="out/../result.json",
        ),
        base=tmp_path,
    )
    assert request.project_dir == f"{tmp_path}/shop"
    assert request.spec_dir == f"{tmp_path}/specs"
    assert request.agents_dir == f"{tmp_path}/agents"
    assert request.add_dirs == [f"{tmp_path}/shared", "/opt"]
    assert request.cli_path == f"{tmp_path}/claude"
    assert request.result_file == f"{tmp_path}/out/../result.json"


def test_a_cli_path_without_a_slash_is_left_to_the_search_path(tmp_path: Path) -> None:
    assert parse_request(minimal(cli_path="claude"), base=tmp_path).cli_path == "claude"


def test_a_project_directory_is_where_its_links_lead(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert parse_request(minimal(project_dir="link"), base=tmp_path).project_dir == f"{tmp_path}/real"


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse_request(minimal(project_dir="~")).project_dir == str(tmp_path)


def test_in_python_a_path_may_be_a_path(tmp_path: Path) -> None:
    request = parse_request(minimal(project_dir=tmp_path, spec_dir=Path("specs"), add_dirs=[Path("b")]), base=tmp_path)
    assert request.project_dir == str(tmp_path)
    assert request.spec_dir == f"{tmp_path}/specs"
    assert request.add_dirs == [f"{tmp_path}/b"]


def test_a_request_object_is_read_like_its_members(tmp_path: Path) -> None:
    request = SessionRequest(session_name="a", agent_type="coder", project_dir=".", max_turns=3)
    assert parse_request(request, base=tmp_path) == parse_request(minimal(max_turns=3), base=tmp_path)


def test_a_request_object_cannot_be_changed() -> None:
    request = parse_request(minimal())
    with pytest.raises(ValidationError, match="frozen"):
        request.session_name = "b"


@pytest.mark.parametrize(
    "directory", ["~nobody-of-that-name/x", "x" * 5_000, "a/" * 3_000, "file", "file/below", "loop"]
)
def test_a_project_directory_that_cannot_be_is_refused_by_name(directory: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    member, reason, _ = refusal(minimal(project_dir=directory), tmp_path)
    assert member == "project_dir"
    assert reason.endswith("is not a directory")


@pytest.mark.parametrize("file", ["/", ".", "file/.."])
def test_a_result_file_that_is_a_directory_is_refused_before_anything_is_spent(file: str, tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    member, reason, remedy = refusal(minimal(result_file=file), tmp_path)
    assert (member, remedy) == ("result_file", "name a file, which need not exist")
    assert reason.endswith("is a directory")


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_result_file_that_is_a_pipe_is_refused_and_a_link_to_a_file_is_not(is_linked: bool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for name in ("pipe", "file"):
        (tmp_path / f"link-{name}").symlink_to(tmp_path / name)
    beginning = "link-" if is_linked else ""
    member, reason, remedy = refusal(minimal(result_file=f"{beginning}pipe"), tmp_path)
    assert (member, remedy) == ("result_file", "name a file, which need not exist")
    assert reason == f"{tmp_path}/{beginning}pipe is no ordinary file"
    assert parse_request(minimal(result_file=f"{beginning}file"), base=tmp_path).result_file is not None


def test_where_the_working_directory_is_gone_only_absolute_paths_lead_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert parse_request(minimal(project_dir=str(tmp_path))).project_dir == str(tmp_path)
    member, reason, _ = refusal(minimal(project_dir="."))
    assert (member, reason) == (None, "has a relative path, and the working directory has been removed")


@pytest.mark.parametrize("member", ["project_dir", "spec_dir", "model", "cli_path"])
def test_half_a_character_is_refused_where_the_system_could_not_take_it(member: str) -> None:
    expected = (member, "holds half a character (a lone surrogate)", "give valid Unicode")
    assert refusal(minimal(**{member: "a\ud800"})) == expected


@pytest.mark.parametrize("data", [None, [], "text", 3, 1.5, True, object()])
def test_what_is_no_object_is_refused_as_a_whole(data: object) -> None:
    member, _, remedy = refusal(data)
    assert (member, remedy) == (None, "send one JSON object with the request's members")


def test_a_schema_that_no_argument_can_hold_is_refused() -> None:
    schema = {"description": "x" * MAX_SCHEMA}
    size = len(orjson.dumps(schema)) + 1
    expected = ("output_schema", f"is {size} bytes long", f"keep it under {MAX_SCHEMA} bytes")
    assert refusal(minimal(output_schema=schema)) == expected


def test_a_long_value_is_shown_shortened() -> None:
    assert refusal(minimal(phase="x" * 1_000))[1] == '"' + "x" * 59 + "… is not allowed here"


def test_a_long_member_is_named_shortened() -> None:
    assert refusal(minimal(**{"x" * 1_000: 1}))[0] == "x" * 60


def test_a_deeply_nested_value_is_named_by_its_kind() -> None:
    line = b'{"session_name":' + b"[" * 1_000 + b"]" * 1_000 + b',"agent_type":"coder","project_dir":"."}'
    assert refusal(decode_request(line)) == ("session_name", "an array is not allowed here", "give a string")


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()) | st.binary()
members = st.sampled_from(list(SessionRequest.model_fields)) | st.text()


@given(st.dictionaries(members, anything | st.dictionaries(st.text(), anything, max_size=2), max_size=3))
def test_whatever_is_given_is_accepted_or_refused_by_name(given: dict[str, Any]) -> None:
    refused = None
    try:
        parse_request(minimal(**given))
    except RequestError as error:
        refused = error
    if refused is not None:
        assert any((refused.member or "").startswith(name[:60]) for name in given)
        assert refused.reason
        assert refused.remedy


@pytest.mark.parametrize(
    ("line", "reason", "remedy"),
    [
        (None, "stdin ended without a line", "send the request as one line of JSON on stdin"),
        (
            Overlong(12),
            "a line is longer than the limit of 12 bytes",
            "put large inputs into files and name them in the message",
        ),
        (b"[]", "the line is an array, not an object", "send one JSON object on one line"),
    ],
)
def test_a_line_that_cannot_be_a_request_is_refused(line: bytes | Overlong | None, reason: str, remedy: str) -> None:
    with pytest.raises(RequestError) as raised:
        decode_request(line)
    assert (raised.value.member, raised.value.reason, raised.value.remedy) == (None, reason, remedy)


@pytest.mark.parametrize("line", [b"{", b'{"session_name": "a",', b"\xef\xbb\xbf{", b"  {"])
def test_the_start_of_an_object_gets_the_hint_that_a_request_is_one_line(line: bytes) -> None:
    with pytest.raises(RequestError) as raised:
        decode_request(line)
    assert raised.value.remedy == "write the whole object on one line, without line breaks"
