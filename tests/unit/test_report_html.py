"""The HTML report as a file: what it says, that it needs nothing else, and that no text of a run becomes markup."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import html.parser
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_ascend_e2e.errors import RecordError
from pytest_ascend_e2e.records import Check, RunRecord, Verdict
from pytest_ascend_e2e.report.html import html_report, write_html
from pytest_ascend_e2e.report.html.charts import axis, charts_of
from pytest_ascend_e2e.report.html.packing import plain
from pytest_ascend_e2e.session import read_evidence
from tests.fakes.reports import BASELINE, HOSTILE, LOW, broken_run, green_run, hostile_run, red_run


class Page(html.parser.HTMLParser):
    """The elements and the texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._section = ""
        self._skipped = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "section":
            self._section = dict(attrs)["id"] or ""
        self._skipped = tag if tag in {"script", "style"} else ""

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  # the base class names it
        self._skipped = ""

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.texts[self._section] = " ".join([*self.texts.get(self._section, "").split(), *data.split()])

    def ids(self) -> list[str]:
        return [attributes["id"] or "" for _, attributes in self.elements if "id" in attributes]


def data_of(text: str, run_id: str) -> Any:
    found = re.search(rf'<script type="text/plain" id="data-run-{re.escape(run_id)}">([^<]*)</script>', text)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


@pytest.fixture
def runs(tmp_path: Path) -> list[RunRecord]:
    return [green_run(tmp_path), red_run(tmp_path), broken_run(tmp_path)]


def test_the_overview_tells_cases_verdicts_devices_hours_and_versions(runs: list[RunRecord]) -> None:
    told = Page(html_report(runs, not_trained={"t.py::test_y": "needs a3-16"})).texts["overview"]

    for text in ("cases 2", "runs 3", "1 passed 2 failed", "device-hours 2.3", "a3-4 (Ascend910_93)", "verl 0.9.1, 0.9.2"):
        assert text in told, told
    assert "1 case without a run" in told
    assert "t.py::test_y needs a3-16" in told
    assert "device-oom (product): RuntimeError: NPU out of memory" in told


def test_every_row_of_the_overview_leads_to_a_page(runs: list[RunRecord]) -> None:
    page = Page(html_report(runs))

    links = {(attributes["href"] or "")[1:] for tag, attributes in page.elements if tag == "a"}

    assert {f"run-{record.run_id}" for record in runs} <= links <= set(page.ids())
    assert len(page.ids()) == len(set(page.ids()))


def test_a_page_has_the_checks_with_value_limit_and_origin_the_failed_ones_first(runs: list[RunRecord]) -> None:
    unmade = Check(name="rewards.collapse", verdict=Verdict.NOT_MADE, message="5 steps are needed to tell")
    runs[1] = dataclasses.replace(runs[1], checks=(*runs[1].checks, unmade))

    told = Page(html_report(runs)).texts["run-test_grpo-2"]

    assert "1 of 3 failed" in told
    assert "not made" in told
    assert "rewards.level critic/rewards/mean" in told
    assert "0.5 >= 0.6 - the reward is low Limit from: given by the test." in told
    assert told.index("rewards.level") < told.index("completed.process")


def test_the_charts_have_the_baseline_and_the_limits(runs: list[RunRecord]) -> None:
    data = data_of(html_report(runs), "test_grpo-2")

    charts = {chart["title"]: chart for chart in data["charts"]}
    assert charts["Throughput"]["bands"] == [{"low": 350.0, "high": 410.0}]
    assert charts["Reward"]["marks"] == [{"value": 0.6, "label": ">= 0.6 (rewards.level)", "failed": True}]
    for title in (
        "Log-prob difference, mean", "Pearson correlation of rollout and training", "KL to the reference and to the old policy",
        "Entropy", "Gradient norm", "Step time and its parts", "Device memory", "Host memory",
    ):  # fmt: skip
        assert title in charts
    assert data["tables"]["step"]["x"] == list(range(1, 16))


def test_a_value_that_is_no_number_and_a_gap_are_kept_and_told_as_such(runs: list[RunRecord]) -> None:
    text = html_report(runs)

    series = data_of(text, "test_grpo-2")["tables"]["step"]["series"]
    assert (series["actor/grad_norm"][3], series["actor/grad_norm"][8]) == ("nan", "inf")
    assert series["actor/entropy"][4:8] == [0.75, None, None, 0.72]
    told = Page(text).texts["run-test_grpo-2"]
    assert "actor/grad_norm: NaN at step 4" in told
    assert "actor/grad_norm: inf at step 9" in told
    assert "actor/entropy: no value at steps 6..7" in told


def test_a_metric_that_a_failed_check_names_gets_a_chart(runs: list[RunRecord]) -> None:
    metrics = read_evidence(runs[0]).metrics
    assert metrics is not None
    odd = dataclasses.replace(LOW, name="health.aborted", metric="response/aborted_ratio")

    titles = [chart.title for chart in charts_of(metrics, (odd, BASELINE))]

    assert titles[-1] == "response/aborted_ratio (named by health.aborted)"


def test_a_limit_in_another_unit_is_not_drawn(runs: list[RunRecord]) -> None:
    metrics = read_evidence(runs[0]).metrics
    assert metrics is not None
    trend = dataclasses.replace(LOW, name="rewards.rises", value=0.3, comparison="<=", limit=0.01)

    (reward,) = [chart for chart in charts_of(metrics, (trend,)) if chart.title == "Reward"]

    assert reward.marks == ()


def test_a_page_tells_what_changed_since_the_last_green_run(runs: list[RunRecord]) -> None:
    told = Page(html_report(runs)).texts["run-test_grpo-2"]

    assert "Compared with the last run that passed, test_grpo-1" in told
    assert "actor_rollout_ref.actor.optim.lr 1e-06 2e-05" in told
    assert "verl 0.9.1 0.9.2" in told
    assert "commit 0a1b2c3d4e5f ffff2222" in told
    assert "Environment variables: the same" in told


def test_the_last_green_run_is_found_in_the_history_too(runs: list[RunRecord]) -> None:
    told = Page(html_report(runs[1:], past=runs[:1])).texts["run-test_grpo-2"]

    assert "Compared with the last run that passed, test_grpo-1" in told


@pytest.mark.parametrize(
    "changed",
    [
        {"started_at": "2026-12-01T00:00:00+00:00"},
        {"runner": "a3-8"},
        {"changed": ("steps=3",)},
        {"exit_status": 1},
        {"case": "tests/test_cases.py::test_other"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_run_is_no_last_green_one(tmp_path: Path, changed: dict[str, Any]) -> None:
    told = Page(html_report([red_run(tmp_path)], past=[dataclasses.replace(green_run(tmp_path), **changed)])).texts[
        "run-test_grpo-2"
    ]

    assert "No earlier run of this case" in told


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        ({}, {}, "Commit: the same."),
        ({}, {"is_dirty": True}, "Commit: 1 different setting last green run this run commit abc abc with changes"),
        ({"is_dirty": True}, {"is_dirty": True}, "Commit: abc at both, but each time files differed from it"),
        ({"commit": ""}, {"commit": ""}, "Commit: not known"),
    ],
    ids=["clean", "one-dirty", "both-dirty", "no-repository"],
)
def test_a_commit_is_the_same_only_where_its_files_are(
    tmp_path: Path, then: dict[str, Any], now: dict[str, Any], told: str
) -> None:
    green = dataclasses.replace(green_run(tmp_path), **{"commit": "abc", **then})
    red = dataclasses.replace(red_run(tmp_path), **{"commit": "abc", **now})

    text = Page(html_report([green, red])).texts["run-test_grpo-2"]

    assert told in text
    assert ("Commit: the same" in text) == (told == "Commit: the same.")


def test_a_configuration_that_is_gone_is_said_and_not_taken_for_equal(tmp_path: Path) -> None:
    green = green_run(tmp_path)
    (Path(green.run_dir) / "config.yaml").unlink()

    told = Page(html_report([green, red_run(tmp_path)])).texts["run-test_grpo-2"]

    assert "Configuration: cannot be compared" in told
    assert "Configuration: the same" not in told


def test_the_root_cause_is_marked_in_the_log(runs: list[RunRecord]) -> None:
    text = html_report(runs)

    (marked,) = re.findall(r'<span class="cause">(.*?)</span>', text)
    assert "root cause" in marked
    assert "NPU out of memory" in marked


def test_of_a_training_that_ended_well_no_noise_of_its_end_is_shown(tmp_path: Path) -> None:
    record = red_run(tmp_path)
    with (Path(record.run_dir) / "train.log").open("a") as log:
        log.write("nanobind: leaked 4 instances!\n")

    text = html_report([record])

    assert "The last step lines of 16 lines. The training ended well" in Page(text).texts["run-test_grpo-2"]
    assert "nanobind" not in text
    assert 'class="cause"' not in text


def test_the_history_of_the_case_stands_on_its_page(runs: list[RunRecord]) -> None:
    text = html_report(runs)
    told = Page(text).texts["run-test_grpo-1"]

    assert "The last 2 of 2 runs on a3-4" in told
    assert "memory GB peak of a training process" in told
    assert "test_grpo-1 (this run) passed" in told
    assert "failed: rewards.level" in told
    assert data_of(text, "test_grpo-1")["tables"]["run"]["series"]["step_time_s"] == [41, 41]


def test_an_attempt_that_was_repeated_is_neither_green_nor_counted_red(runs: list[RunRecord]) -> None:
    told = Page(html_report([dataclasses.replace(runs[2], retried_as="again-1"), runs[0]])).texts["overview"]

    assert "1 passed 1 repeated" in told
    assert "repeated as again-1" in told


def test_two_runs_of_one_name_have_pages_of_their_own(runs: list[RunRecord]) -> None:
    ids = Page(html_report([dataclasses.replace(runs[0], run_id="a/1"), dataclasses.replace(runs[1], run_id="a 1")])).ids()

    assert {"run-a-1", "run-a-1-2"} <= set(ids)


def test_a_run_of_which_only_the_record_is_left_has_a_page(tmp_path: Path, runs: list[RunRecord]) -> None:
    gone = dataclasses.replace(runs[0], run_dir=str(tmp_path / "gone"))

    told = Page(html_report([gone])).texts["run-test_grpo-1"]

    assert "Not shown here" in told
    assert "metrics.jsonl" in told
    assert "There is no log to show." in told


def test_a_report_of_nothing_says_so() -> None:
    assert "No run was recorded." in Page(html_report([])).texts["overview"]


def test_no_text_of_a_run_becomes_markup(tmp_path: Path) -> None:
    text = html_report([hostile_run(tmp_path)], not_trained={HOSTILE: HOSTILE})

    page = Page(text)

    allowed = {"link", "onerror", "src", "href"}
    assert {tag for tag, _ in page.elements} & {"img", "b", "link", "iframe"} <= {"b"}  # b: the numbers of log lines
    assert [attributes for tag, attributes in page.elements for name in attributes if name in allowed - {"href"}] == []
    assert all((attributes.get("href") or "#").startswith("#") for _, attributes in page.elements)
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert len(scripts) == 3  # the packed numbers, the chart library, the page's own
    assert "<script>alert" not in text
    assert HOSTILE in page.texts["overview"]
    assert f"actor/{HOSTILE}" in data_of(text, "x4-script-alert-1-script-")["tables"]["step"]["series"]


def test_the_file_asks_for_nothing_else(runs: list[RunRecord]) -> None:
    page = Page(html_report(runs))

    assert [attributes for _, attributes in page.elements if {"src", "action", "data", "srcset"} & attributes.keys()] == []
    (policy,) = [a["content"] or "" for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_the_library_is_there_with_its_licence() -> None:
    vendor = Path(__file__).parent.parent.parent / "pytest_ascend_e2e" / "report" / "html" / "vendor"

    version = re.search(r"uPlot (\S+) ", (vendor / "README.md").read_text())

    assert version
    assert f"(v{version[1]})" in (vendor / "uPlot.iife.min.js").read_text()
    assert "MIT License" in (vendor / "uPlot-LICENSE.txt").read_text()


def test_the_same_runs_give_the_same_file(runs: list[RunRecord]) -> None:
    assert html_report(runs) == html_report(runs)


def test_a_report_is_written_whole_and_nothing_is_left_beside_it(tmp_path: Path, runs: list[RunRecord]) -> None:
    path = tmp_path / "new" / "report.html"

    write_html(runs, path)

    assert path.read_text().endswith("</html>\n")
    assert list(path.parent.iterdir()) == [path]


def test_a_report_that_cannot_be_written_is_an_error_with_its_remedy(tmp_path: Path, runs: list[RunRecord]) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(RecordError, match=r"cannot be written: .*; choose another place"):
        write_html(runs, tmp_path / "file" / "report.html")


def test_a_step_that_a_log_left_out_is_on_the_axis_unless_nearly_all_are() -> None:
    assert axis((1, 2, 5)) == (1, 2, 3, 4, 5)
    assert axis((1, 1000)) == (1, 1000)
    assert axis(()) == ()


def test_numbers_keep_the_digits_that_are_asked_for() -> None:
    values = (None, math.nan, -math.inf, 0.0, 1.0, -0.00012345678, 99999.9, 5e300, 1e-7)

    assert [plain(value, digits=4) for value in values] == [None, "nan", "-inf", 0, 1, -0.0001235, 1e5, 5e300, 1e-7]


def test_a_report_of_many_values_keeps_what_is_drawn_and_the_figures_of_all(
    runs: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_ascend_e2e.report.html.document._ALL_METRICS_UP_TO", 100)

    data = data_of(html_report(runs[:1]), "test_grpo-1")

    assert "critic/rewards/mean" in data["tables"]["step"]["series"]
    assert "critic/rewards/max" not in data["tables"]["step"]["series"]
    assert "critic/rewards/max" in [row[0] for row in data["figures"]]
