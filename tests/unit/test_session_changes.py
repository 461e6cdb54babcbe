"""What `--e2e-set` says, as nested overrides."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.session import changes_of


def test_texts_become_nested_overrides_with_values_read_as_yaml() -> None:
    told = changes_of(["a.b.c=1", "a.b.d=[x, 2.5]", "+a.e=true", "f=", "g=k=v"])

    assert told == {"a": {"b": {"c": 1, "d": ["x", 2.5]}, "+e": True}, "f": None, "g": "k=v"}


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["a.b"], r"'a\.b' cannot be used: expected KEY=VALUE"),
        (["=1"], "'=1' cannot be used: expected KEY=VALUE"),
        (["a..b=1"], "expected KEY=VALUE"),
        (["a.b=[1"], "the value is no YAML"),
        (["a.b=1", "+a.b=2"], r"a\.b is set twice"),
    ],
)
def test_a_text_that_says_nothing_is_refused(texts: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        changes_of(texts)
