"""The whole file: head, overview, a page for each run, the packed numbers, and the scripts that draw them.

Must not know: what stands on a page. The file holds all it needs; its content policy lets it load and send nothing, and run no
script but the two written here.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...errors import RecordError
from ...metrics import Metrics, is_sparse
from ...nodeids import name_of_test
from ...records import RunRecord
from ...session import Evidence, read_configuration, read_evidence
from ..history import FIGURES
from ..tables import number
from .charts import Chart, axis, charts_of, oddities
from .differences import last_green
from .nodes import html_text, node
from .overview import overview
from .packing import column, packed, plain
from .run_page import Green, RunPage

TITLE = "End-to-end training tests"
# Beyond this many values in a report, only what is drawn by itself is kept of each run's metrics, with the digits that the report's
# tables have: fifty runs of a thousand steps stay under 5 MB.
_ALL_METRICS_UP_TO = 300_000
_DIGITS, _DIGITS_OF_MANY = 6, 4
_FEWEST_TO_DRAW = 2
_NO_CASES: Mapping[str, str] = MappingProxyType({})


def write_html(
    records: Sequence[RunRecord],
    path: Path,
    *,
    past: Iterable[RunRecord] = (),
    not_trained: Mapping[str, str] = _NO_CASES,
) -> None:
    """Write the report of these runs to `path`, whole or not at all.

    What each run left is read from its record's `run_dir`; what is missing there is named in its page. `past` are further runs of
    which the history and the last green run of a case are taken, `not_trained` the cases without a run, each with the reason.

    Raises:
        RecordError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(html_report(records, past=past, not_trained=not_trained).encode("utf-8", "replace"))
        temporary.replace(path)
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror or error}; choose another file for the report") from error
    finally:
        with contextlib.suppress(OSError):  # replaced, or never there: the error above tells more
            temporary.unlink()


def html_report(records: Sequence[RunRecord], *, past: Iterable[RunRecord] = (), not_trained: Mapping[str, str] = _NO_CASES) -> str:
    """Return the report as `write_html` writes it."""
    anchors = _anchors(records)
    known = {record.run_id: record for record in (*past, *records)}
    sections, blocks = [], []
    for record, anchor in zip(records, anchors, strict=True):
        evidence = read_evidence(record)
        page = _page(evidence, anchor, list(known.values()), records)
        sections.append(html_text(page.section))
        blocks.append(html_text(node("script", packed(_data(page, len(records))), type="text/plain", id=f"data-{anchor}")))
    styles = [_asset("vendor/uPlot.min.css"), _asset("report.css")]
    scripts = [_asset("vendor/uPlot.iife.min.js"), _asset("report.js")]
    head = [
        html_text(node("meta", charset="utf-8")),
        html_text(node("meta", http_equiv="Content-Security-Policy", content=_policy(styles, scripts))),
        html_text(node("meta", name="viewport", content="width=device-width, initial-scale=1")),
        html_text(node("title", TITLE)),
        *[html_text(node("style", style)) for style in styles],
    ]
    body = [
        html_text(node("a", "Skip to the content", href="#overview", class_="skip")),
        html_text(node("header", node("h1", TITLE))),
        html_text(
            node("noscript", node("p", "Charts, filters and tables of values need JavaScript; all else is here without it."))
        ),
        "<main>",
        html_text(overview(records, anchors, not_trained)),
        *sections,
        "</main>",
        *blocks,
        *[html_text(node("script", script)) for script in scripts],
    ]
    return "\n".join(["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", *body, "</body>", "</html>", ""])


def _page(evidence: Evidence, anchor: str, known: Sequence[RunRecord], records: Sequence[RunRecord]) -> RunPage:
    record = evidence.record
    same_case = [
        other
        for other in known
        if (other.case, other.runner) == (record.case, record.runner)
        and (not other.changed or other.run_id == record.run_id)  # changed by its session: another training than the case's
    ]
    history = sorted(same_case, key=lambda other: (other.started_at, other.run_id))
    green = last_green(record, history)
    name = name_of_test(record.case)
    is_alone = sum(name_of_test(other.case) == name for other in records) == 1
    return RunPage(
        anchor=anchor,
        title=name if is_alone else f"{name}, {record.run_id}",
        evidence=evidence,
        charts=charts_of(evidence.metrics, record.checks) if evidence.metrics else (),
        history_charts=_history_charts(history),
        history=history,
        green=None if green is None else Green(record=green, configuration=read_configuration(green)),
    )


def _history_charts(history: Sequence[RunRecord]) -> list[Chart]:
    """Return a chart over the runs for each figure that two runs or more have."""
    return [
        Chart(title=f"{name}, by run", unit="", keys=(key,), marks=(), bands=())
        for name, key in FIGURES.items()
        if sum(key in run.summary for run in history) >= _FEWEST_TO_DRAW
    ]


def _data(page: RunPage, runs: int) -> dict[str, Any]:
    metrics = page.evidence.metrics or Metrics({})
    steps = axis(metrics.steps)
    drawn = dict.fromkeys(key for chart in page.charts for key in chart.keys)
    is_all = len(metrics) * len(steps) * runs <= _ALL_METRICS_UP_TO
    kept, digits = (list(metrics), _DIGITS) if is_all else (list(drawn), _DIGITS_OF_MANY)
    sparse = [key for key in kept if is_sparse(key)]
    figures = {
        key: [plain(run.summary.get(key), digits=_DIGITS) for run in page.history]
        for chart in page.history_charts
        for key in chart.keys
    }
    return {
        "charts": [
            *[_spec(chart, "step", sparse) for chart in page.charts],
            *[_spec(chart, "run", list(figures)) for chart in page.history_charts],
        ],
        "sparse": sparse,
        "tables": {
            "step": {"x": steps, "series": {key: column(metrics[key], steps, digits=digits) for key in kept}},
            "run": {"x": list(range(1, len(page.history) + 1)), "series": figures},
        },
        "figures": [_FIGURES_HEADER, *[_figures(metrics, key) for key in sorted(metrics)]],
    }


def _spec(chart: Chart, axis_name: str, sparse: Sequence[str]) -> dict[str, Any]:
    return {
        "title": chart.title,
        "axis": axis_name,
        "keys": chart.keys,
        "sparse": [key for key in chart.keys if key in sparse],
        "marks": [{"value": mark.value, "label": mark.label, "failed": mark.is_failed} for mark in chart.marks],
        "bands": [{"low": band.low, "high": band.high} for band in chart.bands],
    }


_FIGURES_HEADER = ("metric", "steps", "first", "last", "least", "most", "mean", "notes")


def _figures(metrics: Metrics, key: str) -> list[str]:
    series = metrics[key]
    values = (series.values[0], series.values[-1], series.min(), series.max(), series.mean())
    return [key, str(len(series)), *map(number, values), "; ".join(oddities(series, metrics))]


def _anchors(records: Sequence[RunRecord]) -> list[str]:
    """Return a name for each run's page that a link can hold, the run's own where it can be."""
    found: dict[str, None] = {}
    for record in records:
        slug = "run-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", record.run_id)
        anchor, again = slug, 1
        while anchor in found:
            again += 1
            anchor = f"{slug}-{again}"
        found[anchor] = None
    return list(found)


def _policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a policy that allows these texts, and nothing else: no request, no other script, no form."""
    return f"default-src 'none'; style-src {' '.join(_hashes(styles))}; script-src {' '.join(_hashes(scripts))}; form-action 'none'"


def _hashes(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
