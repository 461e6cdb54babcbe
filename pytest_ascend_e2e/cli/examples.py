"""The examples that the help of each command ends with: what is typed, and what one gets.

Must not know: how a command does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = {
    "doctor": (
        ("doctor", "what this host lacks, and for which cases"),
        ("doctor --json", "the same for a script"),
    ),
    "preflight": (
        ("preflight", "can the cases work? each for its own runner, without a device"),
        ("preflight -m nightly --runner a3-16", "the nightly cases of one runner"),
    ),
    "rules": (("rules", "every rule that a case is judged by, with its source"),),
    "devices": (
        ("devices", "the NPUs of this host, and who uses them"),
        ("devices --from npu-smi.txt --json", "a saved output of npu-smi info, as JSON"),
    ),
    "metrics": (
        ("metrics e2e-runs/RUN", "first, last, least, largest and mean value of each metric of a run"),
        ("metrics train.log --json", "all values of a console log for a script"),
    ),
    "diagnose": (
        ("diagnose e2e-runs/RUN", "why a run failed, and whose turn it is"),
        ("diagnose worker.log --exit-status 137 --json", "a log from elsewhere, with its exit status"),
    ),
    "baseline": (
        ("baseline record e2e-runs/test_x-*", "a baseline from runs that passed"),
        ("baseline record e2e-runs/test_x-* --dry-run", "show old and new, write nothing"),
        ("baseline published", "the figures that upstream published"),
    ),
    "history": (
        ("history", "all cases, with their flake rates"),
        ("history test_grpo_qwen3_gsm8k --runner sim-2", "the runs of a case, its trends and changes"),
        ("history --export runs.jsonl", "all runs as JSON lines"),
    ),
    "judge": (
        ("judge e2e-runs/RUN", "judge a run again as its record says"),
        ("judge e2e-runs/RUN --only rewards --reward-min 0.5", "only the rewards, with another limit"),
        ("judge e2e-runs/test_x-* --baselines baselines.yaml", "several runs against a baseline"),
    ),
    "repeat": (
        ("repeat e2e-runs/RUN", "a run once more, by its recorded command, checks and limits"),
        ("repeat e2e-runs/RUN --steps 3 --set actor_rollout_ref.actor.optim.lr=2e-6", "shorter, and with another key of verl"),
    ),
    "report": (
        ("report", "all runs below e2e-runs as report.html"),
        ("report e2e-runs/test_x-* -o x.html", "some runs, into another file"),
    ),
    "new-case": (
        ("new-case run_grpo.sh", "print the case of a script"),
        ("new-case -o test_grpo.py run_grpo.sh 16", "write it; the script gets the argument 16"),
        ("new-case --env NUM_GPUS=16 run_grpo.sh", "with an environment variable for the script"),
        ("new-case -- python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm", "a command instead of a script"),
    ),
    "matrix": (
        ("matrix --tier nightly", "the jobs of the nightly cases, as JSON for a workflow"),
        ("matrix --only 'test_grpo*' --ids", "the ids of some cases, a line each"),
    ),
    "workflow": (
        ("workflow tests/e2e_npu", "write .github/workflows/ascend_e2e_nightly.yml"),
        ("workflow tests/e2e_npu --check", "does the file still say what these arguments give?"),
    ),
    "merge": (("merge e2e-artifacts --cases e2e-cases.json", "the reports of all jobs as one; red if a case is missing"),),
    "completion": (
        ("completion bash > ~/.local/share/bash-completion/completions/ascend-e2e", "for bash"),
        ("completion zsh > ~/.zfunc/_ascend-e2e", "for zsh, with ~/.zfunc in fpath"),
        ("completion fish > ~/.config/fish/completions/ascend-e2e.fish", "for fish"),
    ),
}


def examples_text(command: str) -> str:
    """Return the examples of a command as the end of its help, empty where there are none."""
    examples = EXAMPLES.get(command, ())
    if not examples:
        return ""
    width = max(len(words) for words, _ in examples)
    return "\n".join(["examples:", *(f"  ascend-e2e {words:<{width}}  # {meaning}" for words, meaning in examples)])
