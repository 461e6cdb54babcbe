"""The plan of a case: everything that can be proven about it without a device.

Must not know: pytest, leases or runs. A problem means that the case cannot work, a warning that something does not do what it
seems to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..deadline import Deadline
from ..errors import LayoutError
from ..recipe import GROUPING, GRPO, SFT, Inputs, Layout, Override, Recipe, plan_layout, to_environment, to_overrides
from .composition import Composition, Request, compose_cases
from .config_rules import config_findings
from .findings import Finding, Values
from .model_facts import ModelFacts, facts_of
from .model_rules import model_findings, model_problems, unchecked
from .role_rules import role_findings
from .sizes import batch_problems, epoch_findings, sft_problems

# One composition takes half a second and the start of the child a few; a host under load may need ten times that.
_COMPOSITION_S = 180.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is known of a case before it runs.

    `layout` is None where the sizes do not fill the devices, `facts` where nothing is known of the model. `composed` tells whether
    verl's own composition took the overrides, None where it was not asked or verl is not installed (a warning says so then);
    `config` is what it made of them.
    """

    recipe: Recipe | SFT
    layout: Layout | None
    facts: ModelFacts | None
    overrides: tuple[Override, ...]
    environment: Mapping[str, str]
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    composed: bool | None = None
    config: Mapping[str, Any] | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of verl's trainer."""
        return self.request.arguments

    @property
    def request(self) -> Request:
        """Return what verl is asked to compose."""
        return Request.of(self.recipe.config_name, self.overrides)

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing speaks against running the case."""
        return not self.problems

    def with_composition(self, composition: Composition) -> Plan:
        """Return the plan with what verl's own composition said."""
        if not composition.is_checked:
            return replace(self, warnings=(*self.warnings, composition.reason), composed=None)
        values = Values(flat=dict(leaves(composition.config or {})), origins=_origins(self.overrides))
        # A configuration that could not be composed whole says nothing of what is not in it.
        found = _findings(self.recipe, self.facts, values, is_whole=not composition.problems)
        return replace(
            self,
            problems=_united(self.problems, composition.problems, _texts(found, is_error=True)),
            warnings=_united(self.warnings, _texts(found, is_error=False), [composition.unbuilt] if composition.unbuilt else []),
            composed=not composition.problems,
            config=composition.config,
        )


def judge(
    recipe: Recipe | SFT,
    devices: int,
    nodes: int = 1,
    *,
    inputs: Inputs | None = None,
    extra: Mapping[str, object] | None = None,
    model_config: Mapping[str, object] | None = None,
    python: str | None = None,
    deadline: Deadline | None = None,
) -> Plan:
    """Return the plan of a recipe on `nodes` nodes of `devices` devices each.

    `inputs` left out are the names of model and dataset, which is enough to judge; `model_config` is the model's `config.json`,
    where it is at hand; else a table of known models is asked. With `python` given, verl's own composition is asked, in a child
    process of it; for many cases one child is faster: `compose_cases` with the requests of all plans, then `with_composition`.

    Raises:
        RecipeError: `extra` is misspelled.
        PreflightError: the child could not answer, or not by the deadline.
    """
    asked = inputs or _placeholders(recipe, devices, nodes)
    facts = facts_of(recipe.model, model_config)
    problems: list[str] = []
    layout: Layout | None = None
    try:
        layout = plan_layout(recipe, devices, nodes, is_possible=partial(_is_possible, recipe, facts, nodes))
    except LayoutError as error:
        problems += error.problems
    else:
        problems += _batch_problems(recipe, layout)
    if facts is not None:
        problems += model_problems(recipe, facts)
    overrides = to_overrides(recipe, asked, extra)
    values = Values(flat={override.key: override.value for override in overrides}, origins=_origins(overrides))
    found = _findings(recipe, facts, values, is_whole=False)
    plan = Plan(
        recipe=recipe,
        layout=layout,
        facts=facts,
        overrides=overrides,
        environment=to_environment(recipe),
        problems=_united(problems, _texts(found, is_error=True)),
        warnings=_united(_warnings(recipe, facts), _texts(found, is_error=False)),
    )
    if python is None:
        return plan
    (composition,) = compose_cases(
        [plan.request], deadline=deadline or Deadline.after(_COMPOSITION_S, name="composition"), python=python
    )
    return plan.with_composition(composition)


def leaves(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a nested configuration, dotted; an empty mapping is a value."""
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _batch_problems(recipe: Recipe | SFT, layout: Layout) -> list[str]:
    return batch_problems(recipe, layout) if isinstance(recipe, Recipe) else sft_problems(recipe, layout)


def _is_possible(recipe: Recipe | SFT, facts: ModelFacts | None, nodes: int, devices: int) -> bool:
    """Tell whether so many devices, all nodes together, would do: a number that breaks another rule is no advice."""
    has_own_pool = isinstance(recipe, Recipe) and recipe.trainer is not None  # the number would be of a part of the devices
    if has_own_pool or devices % nodes or (facts is not None and model_problems(recipe, facts)):
        return False
    try:
        layout = plan_layout(recipe, devices // nodes, nodes)
    except LayoutError:
        return False
    return not _batch_problems(recipe, layout)


def _origins(overrides: Sequence[Override]) -> dict[str, str]:
    return {override.key: override.origin for override in overrides}


def _texts(found: Sequence[Finding], *, is_error: bool) -> list[str]:
    return [str(finding) for finding in found if finding.is_error == is_error]


def _united(*texts: Iterable[str]) -> tuple[str, ...]:
    """Return all texts in their order, each once: a rule may have spoken already before verl composed."""
    return tuple(dict.fromkeys(text for group in texts for text in group))


def _placeholders(recipe: Recipe | SFT, devices: int, nodes: int) -> Inputs:
    return Inputs(
        model_path=recipe.model,
        train_files=f"{recipe.dataset}/train.parquet",
        val_files=f"{recipe.dataset}/test.parquet",
        n_gpus_per_node=devices,
        nnodes=nodes,
    )


def _findings(recipe: Recipe | SFT, facts: ModelFacts | None, values: Values, *, is_whole: bool) -> list[Finding]:
    """Return what the rules say of verl's keys: of a whole configuration, or of overrides alone."""
    found = config_findings(values)
    if facts is not None:
        found += model_findings(recipe, facts, values)
    if isinstance(recipe, Recipe):
        found += [*epoch_findings(recipe, values), *role_findings(values, recipe.meant_differences, is_whole=is_whole)]
    return found


def _warnings(recipe: Recipe | SFT, facts: ModelFacts | None) -> Iterator[str]:
    not_checked = unchecked(recipe, facts)
    if not_checked is not None:
        yield not_checked
    if isinstance(recipe, SFT):
        return
    algorithm = recipe.algorithm
    if isinstance(algorithm, GRPO) and algorithm.estimator in GROUPING and recipe.rollout.n == 1:
        yield f"rollout.n: 1 response to a prompt leaves {algorithm.estimator} no group to compare with [K20]"
    if algorithm.use_kl_loss and algorithm.use_kl_in_reward:
        yield "algorithm: both use_kl_loss and use_kl_in_reward are set, so the KL to the reference counts twice [K3]"
    if recipe.train_batch_size % recipe.mini_batch_size:
        yield (
            f"train_batch_size: {recipe.train_batch_size} is no multiple of ppo_mini_batch_size = {recipe.mini_batch_size}, "
            "so verl fills the last mini-batch with samples that do not count [B11]"
        )
