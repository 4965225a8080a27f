"""A cell gets what it needs of the host's environment, and nothing else."""

from agentcell.environment import cell_environment, inherited_environment, with_cli_retries

NEEDED = {
    "PATH": "/bin",
    "HOME": "/home/u",
    "LANG": "C",
    "LC_ALL": "C",
    "HTTPS_PROXY": "http://proxy",
    "SSH_AUTH_SOCK": "/s",
    "ANTHROPIC_API_KEY": "k",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1",
    "CLAUDE_CODE_OAUTH_TOKEN": "t",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CONFIG_DIR": "/c",
    "IS_SANDBOX": "1",
    "XDG_STATE_HOME": "/s",
}

SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_REGION": "r",
    "GITHUB_TOKEN": "x",
    "GOOGLE_APPLICATION_CREDENTIALS": "/g",
    "AZURE_CLIENT_SECRET": "x",
    "DATABASE_URL": "x",
}

ENCLOSING = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SSE_PORT": "1",
    "CLAUDE_CODE_SESSION_ID": "s",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN": "x",
    "CLAUDE_CODE_CHILD_SESSION": "1",
    "CLAUDE_CODE_REMOTE": "true",
    "CLAUDE_CODE_EXECPATH": "/claude",
    "CLAUDE_CODE_MESSAGING_SOCKET": "/m",
    "CLAUDE_CODE_TMPDIR": "/t",
    "CLAUDE_AGENT_SDK_VERSION": "1",
    "AI_AGENT": "1",
    "AGENTCELL_CELL": "outer",
}

INTERPRETER = {"PYTHONPATH": "/p", "PYTHONHOME": "/h", "PYTHONSTARTUP": "/s"}

SURROUNDING = {**NEEDED, **SECRETS, **ENCLOSING, **INTERPRETER}


def test_what_is_needed_passes_and_nothing_else() -> None:
    assert cell_environment(SURROUNDING) == NEEDED


def test_variables_can_be_added_by_name_and_by_value() -> None:
    added = cell_environment(SURROUNDING, env={"PATH": "/opt", "EXTRA": "1"}, pass_env=["GITHUB_TOKEN", "NOT_SET"])
    assert added == {**NEEDED, "PATH": "/opt", "EXTRA": "1", "GITHUB_TOKEN": "x"}


def test_the_credentials_of_a_cloud_pass_only_with_its_switch() -> None:
    switch = {"CLAUDE_CODE_USE_BEDROCK": "1"}
    expected = {**NEEDED, **switch, "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "r"}
    assert cell_environment({**SURROUNDING, **switch}) == expected
    assert cell_environment(SURROUNDING, env=switch) == expected
    assert cell_environment({**SURROUNDING, "CLAUDE_CODE_USE_BEDROCK": "0"}) == NEEDED


def test_an_enclosing_session_and_the_interpreter_never_pass_whoever_names_them() -> None:
    forced = cell_environment(SURROUNDING, env={**ENCLOSING, **INTERPRETER}, pass_env=[*ENCLOSING, *INTERPRETER])
    assert forced == NEEDED


def test_an_environment_taken_as_given_loses_only_those() -> None:
    assert inherited_environment(SURROUNDING) == {**NEEDED, **SECRETS}


def test_the_cli_asks_again_less_often_when_its_session_is_tried_again() -> None:
    assert with_cli_retries({"HOME": "/h"}) == {"HOME": "/h", "CLAUDE_CODE_MAX_RETRIES": "2"}
    assert with_cli_retries({}, 0) == {"CLAUDE_CODE_MAX_RETRIES": "0"}


def test_how_often_the_cli_asks_again_is_the_users_if_he_says_so() -> None:
    assert with_cli_retries({"CLAUDE_CODE_MAX_RETRIES": "7"}) == {"CLAUDE_CODE_MAX_RETRIES": "7"}
