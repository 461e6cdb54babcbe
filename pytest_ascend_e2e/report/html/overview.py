"""The first page: what ran, where and with which versions, and a table of all runs.

Must not know: what a single run's page shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from xml.etree.ElementTree import Element

from ...deadline import format_duration
from ...nodeids import name_of_test
from ...records import RunRecord
from ..failure import headline
from ..tables import number
from .nodes import facts, node, row, table

_HEADER = ("case", "verdict", "runner", "model", "algorithm", "steps", "duration", "device-h", "reward", "tokens/s", "cause")
_NUMERIC = (5, 6, 7, 8, 9)
_LONGEST_CAUSE = 160
# Beside each word, so that no verdict is told by its colour alone.
SIGNS: Mapping[str, str] = MappingProxyType({"passed": "\u2713", "failed": "\u2717", "repeated": "\u21bb"})


def verdict_of(record: RunRecord) -> str:
    """Return the word for a run: passed, failed, or repeated where another attempt took its place."""
    if record.retried_as:
        return "repeated"
    return "passed" if record.is_passed else "failed"


def verdict_node(record: RunRecord) -> Element:
    """Return the word with its sign."""
    word = verdict_of(record)
    return node("span", f"{SIGNS[word]} {word}", class_=word)


def device_hours(record: RunRecord) -> float:
    """Return how many devices were held for how many hours, as one product."""
    return record.devices * record.duration_s / 3600


def when(record: RunRecord) -> str:
    """Return when a run began, to the minute."""
    return f"{record.started_at[:16].replace('T', ' ')} UTC"


def overview(records: Sequence[RunRecord], anchors: Sequence[str], not_trained: Mapping[str, str]) -> Element:
    """Return the first page; each row leads to the page of its run."""
    children = [_facts(records), *_not_trained(not_trained)]
    if records:
        rows = [_row(record, anchor) for record, anchor in zip(records, anchors, strict=True)]
        children += [_filters(records), table("Runs", _HEADER, rows, numeric=_NUMERIC, kind="cards runs")]
    else:
        children.append(node("p", "No run was recorded."))
    return node("section", *children, id="overview")


def _facts(records: Sequence[RunRecord]) -> Element:
    counts = {word: sum(verdict_of(record) == word for record in records) for word in ("passed", "failed", "repeated")}
    verdicts = node(
        "span", *[item for word, count in counts.items() if count for item in (node("span", f"{count} {word}", class_=word), " ")]
    )
    hours = sum(map(device_hours, records))
    pairs: list[tuple[str, Element | str]] = [
        ("cases", str(len({(record.case, record.runner) for record in records}))),
        ("runs", str(len(records))),
        ("verdicts", verdicts),
        ("began", when(min(records, key=lambda record: record.started_at)) if records else ""),
        ("device-hours", f"{hours:.1f}" if hours >= 1 else f"{hours:.2g}"),
        ("runners", _all(records, lambda record: f"{record.runner} ({record.device or 'device unknown'})")),
        ("commit", _all(records, lambda record: f"{record.commit[:12]}{' with changes' if record.is_dirty else ''}")),
    ]
    names = sorted({name for record in records for name, version in record.versions.items() if version != "none"})
    pairs += [(name, _all(records, lambda record, name=name: record.versions.get(name, "none"))) for name in names]  # type: ignore[misc]  # mypy takes no default of a lambda for what it is
    return facts(pairs)


def _all(records: Sequence[RunRecord], of: Callable[[RunRecord], str]) -> str:
    return ", ".join(dict.fromkeys(text for text in map(of, records) if text))


def _not_trained(reasons: Mapping[str, str]) -> list[Element]:
    if not reasons:
        return []
    header = ("case", "why")
    rows = [row(header, (case, reason)) for case, reason in reasons.items()]
    count = f"{len(reasons)} {'case' if len(reasons) == 1 else 'cases'} without a run"
    return [node("details", node("summary", count), table(count, header, rows))]


def _filters(records: Sequence[RunRecord]) -> Element:
    verdicts = ["failed", "passed", "repeated"]
    runners = sorted({record.runner for record in records})
    return node(
        "div",
        node("label", "Find (case, model, cause)", node("input", type="search", name="text")),
        node("label", "Verdict", _select("verdict", verdicts)),
        node("label", "Runner", _select("runner", runners)),
        node("output", "", role="status", class_="quiet small"),
        class_="filters", role="search", aria_label="Filter the runs", hidden="",
    )  # fmt: skip


def _select(name: str, values: Sequence[str]) -> Element:
    return node("select", node("option", "all", value=""), *[node("option", value, value=value) for value in values], name=name)


def _row(record: RunRecord, anchor: str) -> Element:
    name = name_of_test(record.case)
    file = record.case.removesuffix(name).removesuffix("::")
    case = node("span", node("a", name, href=f"#{anchor}"), node("span", f" {file}" if file else "", class_="quiet small"))
    is_green = verdict_of(record) == "passed"
    cause = f"repeated as {record.retried_as}; " if record.retried_as else ""
    cause += "" if is_green else headline(record)
    figures = [record.summary.get("reward_last"), record.summary.get("tokens_per_s_per_device")]
    reached = "none" if record.last_step is None else str(record.last_step)
    cells: list[Element | str] = [
        case,
        verdict_node(record),
        record.runner,
        record.model,
        f"{record.algorithm}, {record.engine}, {record.rollout}",
        f"{reached} of {record.steps}",
        format_duration(record.duration_s),
        f"{device_hours(record):.2g}",
        *["-" if figure is None else number(figure) for figure in figures],
        cause if len(cause) <= _LONGEST_CAUSE else f"{cause[:_LONGEST_CAUSE]}\u2026",
    ]
    made = row(
        _HEADER, cells, numeric=_NUMERIC, data_verdict=verdict_of(record), data_runner=record.runner,
        class_="red" if verdict_of(record) == "failed" else "",
    )  # fmt: skip
    sort_keys = [record.last_step, record.duration_s, device_hours(record), *figures]
    for column, key in zip(_NUMERIC, sort_keys, strict=True):
        made[column].set("data-sort", "" if key is None else repr(key))
    return made
