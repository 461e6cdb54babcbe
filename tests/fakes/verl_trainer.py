"""A stand-in for `python -m verl.trainer.main_ppo`: reads its overrides, prints step lines, writes verl's JSONL.

Told what to do by the variable FAKE_TRAINER, a comma-separated list: `flat` (reward does not rise), `nan@N` (a NaN at step N),
`crash@N` (a Python error after step N), `kill@N` (SIGKILL to itself), `stop@N` (ends green too early), `drift@N` (rollout and
training disagree from step N), `wrong-reference` (KL at step 1), `without:KEY` (never prints a metric), `slow` (waits between
steps), `silent` (hangs without a word after step 1), `memory@N` (Ray kills it for want of host memory after step N),
`memory-once@N` (the same in the first run of a run root only), `flat-once:FILE` (flat the first time, which makes the file),
`flat-unseeded` (flat unless a seed is given), `engine-dead@N` (after step N an engine dies of an exception, and nobody goes on).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path


def wishes() -> dict[str, str]:
    pairs = [wish.replace(":", "@").partition("@") for wish in os.environ.get("FAKE_TRAINER", "").split(",") if wish]
    return {name: value for name, _, value in pairs}


def speed(devices: int, rng: random.Random) -> dict[str, float]:
    seconds = 2.0 + rng.random() / 10
    tokens = 400.0
    throughput = tokens / seconds / devices
    return {"perf/throughput": throughput, "perf/total_num_tokens": tokens, "perf/time_per_step": seconds, "timing_s/step": seconds}


def metrics_of(step: int, steps: int, devices: int, wish: dict[str, str], rng: random.Random) -> dict[str, float]:
    drift = "drift" in wish and step >= int(wish["drift"])
    reward = 0.2 if "flat" in wish else 0.2 + 0.4 * step / steps
    reward += rng.uniform(-0.02, 0.02)
    data = {
        "training/global_step": float(step),
        "critic/rewards/mean": reward,
        "critic/rewards/max": 1.0,
        "critic/rewards/min": 0.0,
        "critic/advantages/max": 1.2,
        "critic/advantages/min": -0.9,
        "actor/grad_norm": 0.5 + rng.random() / 10,
        "actor/entropy": 1.0,
        "actor/lr": 1e-6,
        "actor/pg_clipfrac": 0.001,
        "actor/kl_loss": 0.05 if "wrong-reference" in wish else 0.001 * (step - 1),
        "rollout_corr/k3_kl": 0.4 if drift else 0.002,
        "rollout_corr/ppl_ratio": 1.4 if drift else 1.002,
        "training/rollout_probs_diff_valid": 1.0,
        "training/rollout_probs_diff_mean": 0.2 if drift else 0.004,
        "training/rollout_probs_diff_max": 0.9 if drift else 0.05,
        "training/rollout_actor_probs_pearson_corr": 0.5 if drift else 0.999,
        **speed(devices, rng),
        "actor/perf/max_memory_allocated_gb": 20.0,
        "response/aborted_ratio": 0.0,
        "response_length/clip_ratio": 0.1,
        "response_length/mean": 20.0,
    }
    if wish.get("nan") == str(step):
        data["actor/grad_norm"] = float("nan")
    return {key: value for key, value in data.items() if key != wish.get("without")}


def is_first_run() -> bool:
    """Tell whether no other run has a directory beside this one's."""
    return len([path for path in Path.cwd().parent.iterdir() if path.is_dir()]) == 1


SERVER = "(vLLMHttpServer pid=41) "
ENGINE = SERVER + "(EngineCore_DP0 pid=42) ERROR 11-30 15:04:05 [core.py:7] "
ENGINE_DEAD = (
    ENGINE + "EngineCore encountered a fatal error.",
    ENGINE + "Traceback (most recent call last):",
    ENGINE + '  File "/opt/vllm/worker.py", line 7, in execute_model',
    ENGINE + "    return self.model(tokens)",
    ENGINE + "RuntimeError: the kernel lost its workspace",
    SERVER + "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
)


def hang() -> None:
    """Wait for an answer that nobody will give."""
    time.sleep(600)


def die(wish: dict[str, str], step: int) -> None:
    """Come to the end that was wished for after this step."""
    if wish.get("kill") == str(step):
        os.kill(os.getpid(), signal.SIGKILL)
    if wish.get("engine-dead") == str(step):
        print(*ENGINE_DEAD, sep="\n", flush=True)
        hang()
    if wish.get("crash") == str(step):
        raise ValueError("reward function returned no score for 3 of 8 samples")
    if "silent" in wish:
        hang()


def main() -> int:
    overrides = dict(argument.lstrip("+").partition("=")[::2] for argument in sys.argv[1:])
    steps = int(overrides["trainer.total_training_steps"])
    wish = wishes()
    once = Path(wish["flat-once"]) if "flat-once" in wish else None
    if (once is not None and not once.exists()) or ("flat-unseeded" in wish and overrides.get("data.seed", "null") == "null"):
        wish["flat"] = ""
    if once is not None:
        once.touch()
    rng = random.Random(7)  # noqa: S311  # noise of a fake, not a secret
    with Path(os.environ["VERL_FILE_LOGGER_PATH"]).open("w") as jsonl:
        for step in range(1, steps + 1):
            data = metrics_of(step, steps, int(overrides["trainer.n_gpus_per_node"]), wish, rng)
            line = " - ".join([f"step:{step}", *(f"{key}:{value}" for key, value in data.items())])
            print(f"(TaskRunnerV1 pid={os.getpid()}) {line}", flush=True)
            plain = {key: None if value != value else value for key, value in data.items()}  # noqa: PLR0124  # verl's logger writes null for NaN
            jsonl.write(json.dumps({"step": step, "data": plain}) + "\n")
            jsonl.flush()
            if wish.get("stop") == str(step):
                return 0
            if str(step) in (wish.get("memory"), wish.get("memory-once") if is_first_run() else None):
                print("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", flush=True)
                return 1
            die(wish, step)
            if "slow" in wish:
                time.sleep(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
