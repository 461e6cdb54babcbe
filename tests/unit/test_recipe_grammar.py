"""What we write must be read back by Hydra's own parser as what was meant."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ascend_e2e.recipe import Override

hydra = pytest.importorskip("hydra.core.override_parser.overrides_parser", reason="needs hydra-core, which verl brings")

WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True).filter(
    lambda word: word.lower() not in {"true", "false", "null", "inf", "nan"}
)
# Hydra's tokens are made of text; a NUL cannot be in an argument, and surrogates cannot be encoded.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
SPECIAL = st.text("'\"\\ =,:[]{}()$+~/.-@?|*%aN1eE", max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | SPECIAL
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=8)


def read_back(argument: str) -> Any:
    parsed = hydra.OverridesParser.create().parse_override(argument)
    return parsed.key_or_group, plain(parsed.value()), parsed.type.name


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.text if hasattr(value, "text") else value


@given(value=VALUES)
def test_every_value_comes_back_from_hydra_as_it_was(*, value: object) -> None:
    override = Override(key="a.b_c.0.d-e", value=value)

    key, read, kind = read_back(override.argument)

    assert (key, kind) == ("a.b_c.0.d-e", "CHANGE")
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-6, "1e-06"),
        (None, "null"),
        (True, "True"),
        ("true", "'true'"),
        ("1e-6", "'1e-6'"),
        ("/data/a b=c/train.parquet", "'/data/a b=c/train.parquet'"),
        ("/data/train.parquet", "/data/train.parquet"),
        (("console", "file"), "[console,file]"),
        ({"type": "alltoall", "n": 2}, "{type:alltoall,n:2}"),
        ("it's", r"'it\'s'"),
        ("", "''"),
    ],
)
def test_a_value_is_quoted_only_where_it_must_be(value: object, text: str) -> None:
    argument = Override(key="k", value=value).argument

    assert argument == f"k={text}"


def test_not_a_number_comes_back_as_such() -> None:
    _, read, _ = read_back(Override(key="k", value=math.nan).argument)

    assert math.isnan(read)


@pytest.mark.parametrize(("mark", "kind"), [("+", "ADD"), ("++", "FORCE_ADD")])
def test_the_mark_stands_before_the_key(mark: str, kind: str) -> None:
    key, _, read_kind = read_back(Override(key="a.b", value=1, mark=mark).argument)

    assert (key, read_kind) == ("a.b", kind)
