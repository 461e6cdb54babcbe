"""The weights of a model are found and whole, or the error says what is wrong and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import ModelError
from pytest_ascend_e2e.models import find_model

MODEL = "Qwen/Qwen3-8B"
INDEX = "model.safetensors.index.json"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A whole model of two shards below tmp_path."""
    directory = tmp_path / MODEL
    directory.mkdir(parents=True)
    (directory / "config.json").write_text('{"model_type": "qwen3"}')
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for shard in shards:
        (directory / shard).write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    (directory / INDEX).write_text(json.dumps({"weight_map": {"a.weight": shards[0], "b.weight": shards[1]}}))
    return directory


def _error(model_id: str, root: Path) -> str:
    with pytest.raises(ModelError) as caught:
        find_model(model_id, root)
    return str(caught.value)


def test_a_model_that_cannot_be_looked_at_is_told(tmp_path: Path) -> None:
    directory = tmp_path / ("long" * 99) / MODEL

    assert _error(MODEL, directory.parents[1]) == (
        f"model {MODEL!r}: {directory} cannot be read (File name too long); give the user of this process read access"
    )


def test_model_is_found_below_the_root(model: Path, tmp_path: Path) -> None:
    assert find_model(MODEL, tmp_path) == model


def test_absolute_path_needs_no_root(model: Path) -> None:
    assert find_model(str(model), Path("/nowhere")) == model


def test_one_weight_file_without_index_is_whole(model: Path, tmp_path: Path) -> None:
    (model / INDEX).unlink()

    assert find_model(MODEL, tmp_path) == model


def test_home_of_the_root_is_expanded(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert find_model(MODEL, Path("~")) == model


def test_missing_directory_says_where_it_looked_and_how_to_download(model: Path, tmp_path: Path) -> None:
    message = _error("Qwen/Qwen3-4B", tmp_path)

    assert f"'Qwen/Qwen3-4B': {tmp_path}/Qwen/Qwen3-4B is no directory" in message
    assert f"{model.parent} holds Qwen3-8B" in message
    assert f"hf download Qwen/Qwen3-4B --local-dir {tmp_path}/Qwen/Qwen3-4B" in message


def test_missing_root_is_no_traceback(tmp_path: Path) -> None:
    assert "is no directory. Download it there" in _error(MODEL, tmp_path / "none")


def test_missing_absolute_path_is_not_to_be_downloaded(tmp_path: Path) -> None:
    message = _error(str(tmp_path / "none"), tmp_path)

    assert "is no directory; give the directory that holds config.json" in message
    assert "download" not in message


@pytest.mark.parametrize("model_id", ["", "../Qwen3-8B", "Qwen/../../etc"])
def test_name_that_leaves_the_root_is_refused(model_id: str, tmp_path: Path) -> None:
    assert f"model {model_id!r}: expected a hub name" in _error(model_id, tmp_path)


def test_missing_config_is_told(model: Path, tmp_path: Path) -> None:
    (model / "config.json").unlink()

    assert f"{model}/config.json is missing" in _error(MODEL, tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "is not JSON"), ("[]", "holds no JSON object"), ("{}", "names no model_type"), ("\udcff", "is not JSON")],
)
def test_broken_config_is_told(text: str, told: str, model: Path, tmp_path: Path) -> None:
    (model / "config.json").write_bytes(text.encode(errors="surrogateescape"))

    assert f"{model}/config.json {told}" in _error(MODEL, tmp_path)


def test_directory_without_weights_is_told(model: Path, tmp_path: Path) -> None:
    for path in model.glob("model*"):
        path.unlink()

    assert f"{model} holds no weight file" in _error(MODEL, tmp_path)


def test_missing_shard_is_named(model: Path, tmp_path: Path) -> None:
    (model / "model-00002-of-00002.safetensors").unlink()

    message = _error(MODEL, tmp_path)

    assert f"{model}/{INDEX} names 2 weight files, of which 1 are missing: model-00002-of-00002.safetensors" in message


def test_index_alone_is_not_whole(model: Path, tmp_path: Path) -> None:
    for path in model.glob("*.safetensors"):
        path.unlink()

    assert "of which 2 are missing" in _error(MODEL, tmp_path)


@pytest.mark.parametrize("text", ["{}", '{"weight_map": {}}', '{"weight_map": []}', '{"weight_map": {"a": 1}}'])
def test_index_without_a_map_is_told(text: str, model: Path, tmp_path: Path) -> None:
    (model / INDEX).write_text(text)

    assert f"{model}/{INDEX} has no weight_map" in _error(MODEL, tmp_path)


def test_broken_index_is_told(model: Path, tmp_path: Path) -> None:
    (model / INDEX).write_text('{"weight_map": {"a.wei')

    assert f"{model}/{INDEX} is not JSON" in _error(MODEL, tmp_path)


def test_pointer_of_git_lfs_is_not_weights(model: Path, tmp_path: Path) -> None:
    shard = model / "model-00001-of-00002.safetensors"
    shard.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n")

    assert f"{shard} is a pointer of Git LFS" in _error(MODEL, tmp_path)


def test_empty_weight_file_is_told(model: Path, tmp_path: Path) -> None:
    shard = model / "model-00001-of-00002.safetensors"
    shard.write_bytes(b"")

    assert f"{shard} is empty" in _error(MODEL, tmp_path)


def test_dangling_link_into_a_blob_store_is_told(model: Path, tmp_path: Path) -> None:
    shard = model / "model-00001-of-00002.safetensors"
    shard.unlink()
    shard.symlink_to(tmp_path / "blobs" / "gone")

    assert f"{shard} is a link to a file that is gone" in _error(MODEL, tmp_path)


def test_all_problems_are_told_at_once(model: Path, tmp_path: Path) -> None:
    (model / "config.json").unlink()
    (model / "model-00002-of-00002.safetensors").unlink()

    with pytest.raises(ModelError) as caught:
        find_model(MODEL, tmp_path)

    assert len(caught.value.problems) == 2
