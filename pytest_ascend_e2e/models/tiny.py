"""`python -m pytest_ascend_e2e.models.tiny`: makes one tiny model in a process of its own.

The only door to the modules that import torch and transformers. Must not know: the cache, its locks and its names.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import ModelError
from .lessons import Lesson, read_lessons

REPORT = "warmup.json"

_HELD_OUT = 96
_STEPS_BETWEEN_LINES = 20
_SHOWN_RESPONSES = 6


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the model that the command line asks for and return the exit status; what a user can mend is told in one line."""
    parser = argparse.ArgumentParser(prog="python -m pytest_ascend_e2e.models.tiny", description=main.__doc__)
    parser.add_argument("--architecture", required=True)
    parser.add_argument("--train-files", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--least-reward", type=float, required=True)
    parser.add_argument("--most-reward", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True)
    try:
        make(parser.parse_args(arguments))
    except ModelError as error:
        _tell(str(error))
        return 1
    return 0


def make(args: argparse.Namespace) -> None:
    """Train tokenizer and network, examine them, and write them to `args.out`.

    Raises:
        ModelError: the rows cannot be learned, or the reward that was reached is outside of the asked range.
    """
    _leave_out_torchvision()
    import pyarrow.parquet  # noqa: PLC0415  # only after torchvision is out of the way
    import torch  # noqa: PLC0415  # as above

    from . import networks, tokens, warmup  # noqa: PLC0415  # as above

    # The sums of a training, and with them its weights, depend on the number of threads.
    torch.set_num_threads(1)
    lessons = read_lessons(pyarrow.parquet.read_table(args.train_files).to_pylist(), origin=str(args.train_files))
    held_out = min(_HELD_OUT, len(lessons) // 4 + 1)
    tokenizer = tokens.train_tokenizer(_texts(lessons))
    network = networks.build_network(args.architecture, tokenizer, seed=args.seed)
    pupil = warmup.Pupil(network, tokenizer)
    losses = pupil.learn(lessons[held_out:] or lessons, steps=args.steps, batch_size=args.batch_size, seed=args.seed)
    last_loss = _told(losses, steps=args.steps)
    rewards, responses = pupil.examine(lessons[:held_out], seed=args.seed)
    for response in responses[:_SHOWN_RESPONSES]:
        _tell(repr(response))
    reward = sum(rewards) / len(rewards)
    _tell(f"reward {reward:.3f}, cpu {time.process_time():.1f}s")
    _judge(reward, args)
    network.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)
    if args.architecture == "qwen3_vl":
        networks.write_processors(args.out)
    report = {"schema": 1, "steps": args.steps, "seed": args.seed, "loss": last_loss, "reward": reward}
    (args.out / REPORT).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _leave_out_torchvision() -> None:
    # Not needed here, slow to import, and its CUDA build cannot be imported beside a CPU build of torch.
    sys.modules["torchvision"] = None  # type: ignore[assignment]  # how Python says that a module is not to be found


def _texts(lessons: Sequence[Lesson]) -> list[str]:
    return [text for lesson in lessons for text in (lesson.prompt, lesson.well_formed, *lesson.flawed)]


def _told(losses: Iterator[float], *, steps: int) -> float:
    loss = float("nan")
    for step, loss in enumerate(losses, 1):
        if step % _STEPS_BETWEEN_LINES == 0:
            _tell(f"step {step} of {steps}: loss {loss:.4f}, cpu {time.process_time():.1f}s")
    return loss


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201  # the standard output of the child is its log


def _judge(reward: float, args: argparse.Namespace) -> None:
    if not args.least_reward <= reward <= args.most_reward:
        raise ModelError(
            f"{args.train_files}: after {args.steps} steps the tiny model has a mean reward of {reward:.3f}; RL needs one from "
            f"{args.least_reward:g} to {args.most_reward:g} to start from. Take generated data, which a tiny model can learn"
        )


if __name__ == "__main__":
    sys.exit(main())
