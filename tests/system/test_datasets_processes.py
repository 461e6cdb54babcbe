"""Prepared datasets with real processes: many at once, a killed one, an unprivileged one, and verl's own reader."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from pytest_ascend_e2e.datasets import Difficulty, prepare
from pytest_ascend_e2e.deadline import Deadline
from tests.fakes.raw_data import geometry_rows, word_rows, write_geometry3k, write_gsm8k

REPOSITORY = Path(__file__).parents[2]
SIMULATION = REPOSITORY / "pytest_ascend_e2e/simnpu/site"
LIMIT_S = 120.0

PREPARE = """
    import sys
    from pathlib import Path
    from pytest_ascend_e2e.datasets import prepare
    from pytest_ascend_e2e.errors import E2EError
    try:
        dataset = prepare(sys.argv[1], raw_root=Path(sys.argv[2]), cache_root=Path(sys.argv[3]))
    except E2EError as error:
        sys.exit(str(error))
    print(dataset.key, dataset.train_rows, dataset.train_files.stat().st_ino)
"""

# Root may read everything, so it becomes another user once all modules are imported.
PREPARE_UNPRIVILEGED = f"""
    import os
    import pyarrow.parquet
    import pytest_ascend_e2e.datasets
    if os.geteuid() == 0:
        os.seteuid(65534)
    {PREPARE}
"""

# Stops inside the fill, after a file was written, until it is killed.
STUCK = """
    import sys, time
    from pathlib import Path
    from pytest_ascend_e2e.deadline import Deadline
    from pytest_ascend_e2e.datasets.cache import filled_entry

    def fill(directory):
        (directory / "half.parquet").write_bytes(b"half")
        print("filling", flush=True)
        time.sleep(600)

    filled_entry(Path(sys.argv[1]), "x", parameters={}, fill=fill, deadline=Deadline.after(60, name="test"))
"""


def start(code: str, *arguments: object, path: Path | None = None) -> subprocess.Popen[str]:
    entries = [str(entry) for entry in (path, REPOSITORY) if entry is not None]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entries)},
        # Whoever runs the tests in the background has SIGINT ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509  # one thread
    )


def finished(process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> str:
    try:
        out, err = process.communicate(timeout=limit_s)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out


def names_in(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.name != ".lock")


def test_four_processes_fill_one_entry_once(tmp_path: Path) -> None:
    write_geometry3k(tmp_path / "raw", train=geometry_rows(200), test=geometry_rows(5))

    processes = [start(PREPARE, "geometry3k", tmp_path / "raw", tmp_path / "cache") for _ in range(4)]
    answers = {finished(process) for process in processes}

    assert len(answers) == 1
    (key, rows, _) = answers.pop().split()
    assert rows == "200"
    assert names_in(tmp_path / "cache") == [f"geometry3k-{key}"]


def test_killed_filler_frees_the_lock_and_its_remains_are_removed(tmp_path: Path) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(3), test=word_rows(1))
    cache = tmp_path / "cache"
    stuck = start(STUCK, cache)
    assert stuck.stdout is not None
    try:
        assert stuck.stdout.readline() == "filling\n"
        assert [name.startswith(".filling-") for name in names_in(cache)] == [True]
    finally:
        stuck.kill()
        stuck.communicate()

    dataset = prepare("gsm8k", raw_root=tmp_path / "raw", cache_root=cache)

    assert stuck.returncode == -signal.SIGKILL
    assert names_in(cache) == [f"gsm8k-{dataset.key}"]


def test_interrupted_filler_leaves_nothing(tmp_path: Path) -> None:
    stuck = start(STUCK, tmp_path / "cache")
    assert stuck.stdout is not None
    assert stuck.stdout.readline() == "filling\n"

    stuck.send_signal(signal.SIGINT)
    stuck.communicate(timeout=LIMIT_S)

    assert stuck.returncode != 0
    assert names_in(tmp_path / "cache") == []


def test_waiting_process_goes_on_when_the_filler_is_killed(tmp_path: Path) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(3), test=word_rows(1))
    stuck = start(STUCK, tmp_path / "cache")
    assert stuck.stdout is not None
    assert stuck.stdout.readline() == "filling\n"
    waiting = start(PREPARE, "gsm8k", tmp_path / "raw", tmp_path / "cache")
    wait_until_open(waiting.pid, tmp_path / "cache/.lock")

    stuck.kill()
    stuck.communicate()

    assert finished(waiting).split()[1] == "3"


def wait_until_open(pid: int, path: Path) -> None:
    """Wait until a process has a file open."""
    deadline = Deadline.after(LIMIT_S, name="opening a file")
    while not deadline.is_over():
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if link.readlink() == path:
                    return
            except OSError:
                continue
        time.sleep(0.02)
    raise AssertionError(f"process {pid} did not open {path}")


@pytest.mark.parametrize("locked", ["main", "main/train-00000-of-00001.parquet"])
def test_unreadable_raw_data_are_one_line_and_leave_no_cache(locked: str) -> None:
    # Not below tmp_path, which nobody but its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        path = write_gsm8k(root / "raw", train=word_rows(3), test=word_rows(1)) / locked
        path.chmod(0)

        process = start(PREPARE_UNPRIVILEGED, "gsm8k", root / "raw", root / "cache")
        _, err = process.communicate(timeout=LIMIT_S)
        path.chmod(0o755)

        assert process.returncode == 1
        assert err.startswith(f"{path}: cannot be read (Permission denied)")
        assert len(err.splitlines()) == 1
        assert not (root / "cache").exists()


@pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="needs Hugging Face's datasets")
def test_what_hugging_face_writes_is_read(tmp_path: Path) -> None:
    code = """
        import sys
        from datasets import Dataset, DatasetDict, Features, Image, Sequence, Value
        from tests.fakes.raw_data import geometry_rows
        features = Features({"images": Sequence(Image()), "problem": Value("string"), "answer": Value("string")})
        splits = DatasetDict({s: Dataset.from_list(geometry_rows(n), features=features) for s, n in (("train", 6), ("test", 2))})
        splits.save_to_disk(f"{sys.argv[1]}/saved/hiyouga/geometry3k", num_shards={"train": 3, "test": 1})
        for name, split in splits.items():
            split.to_parquet(f"{sys.argv[1]}/parquet/hiyouga/geometry3k/data/{name}-00000-of-00001.parquet")
    """
    finished(start(code, tmp_path))

    datasets = [prepare("geometry3k", raw_root=tmp_path / layout, cache_root=tmp_path / "cache") for layout in ("saved", "parquet")]

    assert [dataset.train_rows for dataset in datasets] == [6, 6]
    assert datasets[0].train_files.read_bytes() == datasets[1].train_files.read_bytes()


# Reads each file as verl does, and rewards a right and a wrong response to each row.
READ_WITH_VERL = """
    import json, sys
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.utils.reward_score import default_compute_score
    config = OmegaConf.create({"cache_dir": sys.argv[1], "filter_overlong_prompts": False})
    seen = []
    for path in sys.argv[2:]:
        rows = RLHFDataset(data_files=[path], tokenizer=None, config=config, processor=object())
        for row in (rows[index] for index in range(len(rows))):
            (message,) = row["raw_prompt"]
            parts = message["content"] if isinstance(message["content"], list) else [{"type": "text"}]
            truth = row["reward_model"]["ground_truth"]
            right = f"<think> </think> #### {truth} \\\\boxed{{{truth}}}"
            rewards = [default_compute_score(row["data_source"], text, truth) for text in (right, right.replace(truth, "7777"))]
            sizes = [part["image"].size for part in parts if part["type"] == "image"]
            seen.append([row["index"], [part["type"] for part in parts], sizes, rewards])
    print(json.dumps(seen))
"""


@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs verl")
def test_verls_reader_and_rewards_take_the_files(tmp_path: Path) -> None:
    files = [
        prepare(
            name, raw_root=tmp_path, cache_root=tmp_path / "cache", train_size=8, val_size=1, generate=Difficulty.FULL
        ).train_files
        for name in ("gsm8k", "geometry3k")
    ]

    # The simulation's start-up module also mends a torchvision that was built for another torch.
    answer = finished(start(READ_WITH_VERL, tmp_path / "verl", *files, path=SIMULATION), limit_s=300)
    seen = json.loads(answer.splitlines()[-1])

    words, geometry = seen[:8], seen[8:]
    assert [row[0] for row in words] == [row[0] for row in geometry] == list(range(8))
    assert all(row[1:3] == [["text"], []] for row in words)
    assert all(row[1] == ["image", "text"] and len(row[2]) == 1 for row in geometry)
    assert all(row[3] == pytest.approx([1.0, 0.0]) for row in words)
    assert all(row[3] == pytest.approx([1.0, 0.1]) for row in geometry)
