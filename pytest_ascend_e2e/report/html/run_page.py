"""The page of one run: verdict, checks, charts, what changed since the last green run, log, environment, history.

Must not know: the other runs of the report, or how a chart is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ...deadline import format_duration
from ...diagnosis import Excerpt
from ...records import Check, RunRecord, Verdict
from ...session import Configuration, Evidence
from ..failure import headline
from ..history import COLUMNS, FIGURES, commit_text, summary_lines, verdict_text
from ..tables import number
from .charts import Chart
from .differences import Difference, commit_of, differences
from .nodes import facts, node, row, table
from .overview import SIGNS, device_hours, verdict_node, when

_LAST_RUNS = 20
# What says most first.
_ORDER = (Verdict.FAILED, Verdict.UNDECIDED, Verdict.PASSED, Verdict.NOT_MADE)
_CHECKS = ("check", "verdict", "value", "limit", "step", "what it says")
_DIFFERENCES = ("setting", "last green run", "this run")


@dataclass(frozen=True, kw_only=True, slots=True)
class Green:
    """The last green run of the same case and its configuration."""

    record: RunRecord
    configuration: Configuration


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPage:
    """What a run's page is made from; `history` are the runs of its case, oldest first; `title` is unique in the report."""

    anchor: str
    title: str
    evidence: Evidence
    charts: Sequence[Chart]
    history_charts: Sequence[Chart]
    history: Sequence[RunRecord]
    green: Green | None

    @property
    def section(self) -> Element:
        """Return the page."""
        record, parts = self.evidence.record, self._parts
        return node(
            "section",
            node("p", node("a", "\u2190 all runs", href="#overview")),
            node("h2", self.title, " ", verdict_node(record), tabindex="-1"),
            *_said(self.evidence),
            _facts(record),
            node("nav", *[node("a", part, href=f"#{self._name(part)}") for part in parts], aria_label="Parts of this page"),
            *[item for part, content in parts.items() for item in (node("h3", part, id=self._name(part)), *content)],
            id=self.anchor,
            class_="run",
            data_title=self.title,
        )

    @property
    def _parts(self) -> dict[str, list[Element]]:
        record = self.evidence.record
        history_charts = [self._grid(self.history_charts, len(self.charts))] if self.history_charts else []
        return {
            "Checks": _checks(record),
            "Charts": self._charts(),
            "Changes": _changes(self.evidence, self.green),
            "Log": _log(self.evidence.log, record),
            "Environment": _environment(self.evidence),
            "History": [*_history(self.history, record), *history_charts],
        }

    def _name(self, part: str) -> str:
        return f"{part.lower()}-{self.anchor}"

    def _charts(self) -> list[Element]:
        metrics = self.evidence.metrics
        if metrics is None or not metrics:
            return [node("p", "No step was logged, so there is nothing to draw.")]
        problems = [node("p", f"Problem of the log of metrics: {problem}", class_="failed") for problem in metrics.problems]
        any_metric = node(
            "figure",
            node("figcaption", node("label", "Any metric ", node("select"))),
            *_plot(f"{self.anchor}-any", "the chosen metric"),
            class_="chart any",
        )
        grid = self._grid(self.charts, 0)
        grid.append(any_metric)
        return [*problems, grid, node("details", node("summary", "All metrics: first, last, least, most, mean"), class_="metrics")]

    def _grid(self, charts: Sequence[Chart], first: int) -> Element:
        figures = [
            node(
                "figure",
                node("figcaption", chart.title + (f" ({chart.unit})" if chart.unit else "")),
                *_plot(f"{self.anchor}-{first + i}", chart.title, chart.warnings, chart.notes),
                class_="chart",
                data_chart=str(first + i),
            )
            for i, chart in enumerate(charts)
        ]
        return node("div", *figures, class_="charts")


def _plot(name: str, title: str, warnings: Sequence[str] = (), notes: Sequence[str] = ()) -> list[Element]:
    """Return the place of a chart, what it cannot show, and, folded, the same in words and as a table."""
    label = f"Chart: {title}. Arrow keys read the values."
    described = {"aria-describedby": f"notes-{name}"} if notes else {}
    words = [node("ul", *[node("li", note) for note in notes], class_="notes", id=f"notes-{name}")] if notes else []
    return [
        node("div", class_="plot", role="img", tabindex="0", aria_label=label, **described),
        node("div", class_="legend"),
        *([node("ul", *[node("li", text) for text in warnings], class_="notes failed")] if warnings else []),
        node("details", node("summary", "In words and as a table"), *words, class_="values small"),
    ]


def _said(evidence: Evidence) -> list[Element]:
    record = evidence.record
    lines = [node("p", headline(record), class_="said")]
    if record.retried_as:
        lines.append(node("p", f"The machine ended this attempt; it was repeated as {record.retried_as}."))
    if record.changed:
        lines.append(node("p", f"Not the case as it stands, but one with {', '.join(record.changed)}."))
    if record.diagnosis is not None and record.diagnosis.advice:
        lines.append(node("p", f"What to do: {record.diagnosis.advice}"))
    lines += [node("p", f"Problem: {problem}", class_="failed") for problem in record.problems]
    missing = [*evidence.missing, *evidence.configuration.missing]
    return [*lines, *[node("p", f"Not shown here: {text}", class_="quiet small") for text in missing]]


def _facts(record: RunRecord) -> Element:
    reached = "no step" if record.last_step is None else f"step {record.last_step}"
    ids = ", ".join(map(str, record.device_ids))
    return facts(
        [
            ("case", record.case),
            ("run", record.run_id),
            ("runner", f"{record.runner}, {record.devices} devices" + (f" ({ids})" if ids else "")),
            ("chip", record.device),
            ("model", record.model),
            ("dataset", record.dataset),
            ("algorithm", record.algorithm),
            ("engine", f"{record.engine}, {record.layout}"),
            ("rollout", record.rollout),
            ("ended", f"{record.end_reason}, at {reached} of {record.steps}"),
            ("began", when(record)),
            ("duration", f"{format_duration(record.duration_s)} ({device_hours(record):.2g} device-hours)"),
            ("commit", commit_of(record)),
            ("directory", node("code", record.run_dir)),
            ("repeat", node("code", record.rerun_command)),
        ]
    )


def _checks(record: RunRecord) -> list[Element]:
    if not record.checks:
        return [node("p", "No check was made.", class_="failed")]
    rows = [_check(check) for check in sorted(record.checks, key=lambda check: _ORDER.index(check.verdict))]
    return [
        table(f"{len(record.failed_checks)} of {len(record.made_checks)} failed", _CHECKS, rows, numeric=(2, 3, 4), kind="cards")
    ]


def _check(check: Check) -> Element:
    said = node("span", check.message)
    if check.origin:
        said.append(node("span", f" Limit from: {check.origin}.", class_="quiet small"))
    limit = "-" if check.limit is None else f"{check.comparison} {number(check.limit)}".strip()
    name = node("span", check.name, node("span", f" {check.metric}", class_="quiet small") if check.metric else "")
    sign = "failed" if check.is_failed else "passed" if check.verdict is Verdict.PASSED else "quiet"
    word = node("span", f"{SIGNS.get(sign, '')} {check.verdict.value}", class_=sign)
    cells = (name, word, number(check.value), limit, "-" if check.step is None else str(check.step), said)
    return row(_CHECKS, cells, numeric=(2, 3, 4), class_="red" if check.is_failed else "")


def _changes(evidence: Evidence, green: Green | None) -> list[Element]:
    record = evidence.record
    if green is None:
        return [node("p", f"No earlier run of this case on {record.runner} is known that passed, so nothing can be compared.")]
    then = green.record
    told = [node("p", f"Compared with the last run that passed, {then.run_id}, begun {when(then)}.")]
    told.append(_commit(then, record))
    told.append(_differing("Versions", differences(then.versions, record.versions)))
    mine, theirs = evidence.configuration, green.configuration
    for what, before, now in (
        ("Configuration", theirs.keys, mine.keys),
        ("Environment variables", theirs.variables, mine.variables),
    ):
        if before is None or now is None:
            told.append(node("p", f"{what}: cannot be compared; {'; '.join([*theirs.missing, *mine.missing])}", class_="failed"))
        else:
            told.append(_differing(what, differences(before, now)))
    return told


def _commit(then: RunRecord, record: RunRecord) -> Element:
    """Return whether both runs are of one commit; where files differed from it, that is no proof of equal files."""
    if not (then.commit or record.commit):
        return node("p", "Commit: not known, so the files of the cases cannot be compared.", class_="failed")
    if then.commit == record.commit and then.is_dirty and record.is_dirty:
        told = (
            f"Commit: {record.commit[:12]} at both, but each time files differed from it; whether they are the same is not known."
        )
        return node("p", told, class_="failed")
    return _differing("Commit", [Difference(name="commit", before=commit_of(then), now=commit_of(record))])


def _differing(what: str, found: Sequence[Difference]) -> Element:
    changed = [pair for pair in found if pair.before != pair.now]
    if not changed:
        return node("p", f"{what}: the same.")
    rows = [row(_DIFFERENCES, (pair.name, node("code", pair.before), node("code", pair.now))) for pair in changed]
    return table(f"{what}: {len(changed)} different", _DIFFERENCES, rows)


def _log(log: Excerpt | None, record: RunRecord) -> list[Element]:
    if log is None or not log.lines:
        return [node("p", "There is no log to show.")]
    lines = []
    for line in log.lines:
        source = node("i", f"({line.source}) ") if line.source else ""
        number_of = node("b", f"{line.number:>7}  ")
        if line.is_cause:
            lines.append(node("span", number_of, node("b", "root cause: "), source, line.text, class_="cause"))
        else:
            lines.append(node("span", number_of, source, line.text))
    first, last = log.lines[0].number, log.lines[-1].number
    what = "The last step lines" if log.is_of_steps else f"Lines {first} to {last} of {log.total}"
    pre = node("pre", *lines, class_="log", role="region", tabindex="0", aria_label=what)
    if log.is_of_steps:
        told = "The training ended well; what its processes print while they stop is no cause of a failure."
        return [node("p", f"{what} of {log.total} lines. {told}"), pre]
    if log.has_cause:
        return [node("p", f"{what}, the root cause marked."), pre]
    if record.diagnosis is not None and record.diagnosis.line:
        return [node("p", f"{what}: the last ones, as the line of the diagnosis is not in this log."), pre]
    return [node("details", node("summary", f"{what}: the last ones"), pre)]


def _environment(evidence: Evidence) -> list[Element]:
    versions = facts(sorted(evidence.record.versions.items()))
    variables = evidence.configuration.variables
    if variables is None:
        return [versions, node("p", "The environment variables are not known.")]
    header = ("variable", "value")
    rows = [row(header, (name, node("code", value))) for name, value in sorted(variables.items())]
    inner = table("Environment variables of the training", header, rows)
    return [versions, node("details", node("summary", f"{len(rows)} environment variables"), inner)]


def _history(history: Sequence[RunRecord], record: RunRecord) -> list[Element]:
    header = ("run", "verdict", "began", "duration", *FIGURES, "commit")
    numeric = tuple(range(3, 4 + len(FIGURES)))
    rows = [
        row(
            header,
            (
                node("strong", f"{run.run_id} (this run)") if run.run_id == record.run_id else run.run_id,
                verdict_text(run),
                when(run),
                format_duration(run.duration_s),
                *(number(run.summary.get(key)) for key in FIGURES.values()),
                commit_text(run),
            ),
            numeric=numeric,
            class_="" if run.is_passed else "red",
        )
        for run in history[-_LAST_RUNS:]
    ]
    known = f"The last {len(rows)} of {len(history)} runs on {record.runner}"
    return [
        table(known, header, rows, numeric=numeric),
        node("details", node("summary", "What the columns are"), facts(sorted(COLUMNS.items())), class_="small"),
        node("ul", *[node("li", line) for line in summary_lines(history)], class_="notes"),
    ]
