"""Layout arithmetic: how the parallel sizes of a recipe fill devices, and what to change where they do not.

The rules are those of megatron-core 0.16 (`parallel_state.initialize_model_parallel`) and of verl 0.9.1's workers, which would
raise them minutes later, on the devices. Must not know: runners by name, models, or the batch (`preflight/` does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm, prod
from typing import Any, TypeAlias

from ..errors import LayoutError
from .engines import FSDP, Engine, FSDPTurbo, Megatron, VeOmni
from .recipe import Recipe
from .rollouts import RolloutEngine
from .sft import SFT

Sizes: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """How a recipe fills `devices` devices, all nodes together; `pool` more roll out where that has devices of its own.

    `dp` is the data parallel size of the dense part, `edp` that of the experts; `etp` is the size that will be used. FSDP has
    `sp` and `shard_size`, the number of devices that share one copy of the model. `replicas` is the number of rollout replicas,
    each of `rollout_devices` devices.
    """

    engine: str
    devices: int
    nodes: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    vpp: int | None = None
    sp: int = 1
    dp: int = 1
    edp: int = 1
    shard_size: int = 1
    rollout_devices: int = 1
    replicas: int = 1
    pool: int = 0

    def __str__(self) -> str:
        return f"{self._training()}, {self.pool} roll out" if self.pool else self._training()

    def _training(self) -> str:
        if self.engine == "megatron":
            vpp = "" if self.vpp is None else f" VPP{self.vpp}"
            return (
                f"TP{self.tp} PP{self.pp}{vpp} CP{self.cp} EP{self.ep} ETP{self.etp}: "
                f"dp {self.dp}, expert-dp {self.edp} on {self.devices} devices"
            )
        ep = "" if self.ep == 1 else f" EP{self.ep}"
        return f"{self.engine.upper()} SP{self.sp}{ep}: dp {self.dp} on {self.devices} devices"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Misfit:
    """Sizes that do not divide the devices: the arithmetic, sizes that would do, and the next number of devices that would."""

    text: str
    sizes: tuple[str, ...]
    devices: int
    rule: str

    def told(self, is_possible: Callable[[int], bool]) -> str:
        """Return the whole sentence, with the number of devices only where it is a possible one."""
        sizes = [f"set {', or '.join(self.sizes)}"] if self.sizes else []
        devices = [f"use {self.devices} devices"] if is_possible(self.devices) else []
        advice = ", or ".join([*sizes, *devices])
        return f"{self.text}{f'; {advice}' if advice else ''} [{self.rule}]"


_Problem: TypeAlias = str | _Misfit


def _any_number(devices: int) -> bool:
    return devices > 0


def plan_layout(recipe: Recipe | SFT, devices: int, nodes: int = 1, *, is_possible: Callable[[int], bool] = _any_number) -> Layout:
    """Return how a recipe fills `nodes` nodes of `devices` devices each.

    `is_possible` tells of a number of devices, all nodes together, whether it may be proposed instead.

    Raises:
        LayoutError: with one text for each rule broken: the arithmetic, and sizes that would do.
    """
    if devices < 1 or nodes < 1:
        raise LayoutError(f"{nodes} nodes of {devices} devices: expected at least one of each")
    if isinstance(recipe, SFT):
        return _supervised_layout(recipe, devices, nodes, is_possible)
    rolling = devices if recipe.trainer is None else recipe.trainer.rollout_devices
    training = devices if recipe.trainer is None else devices - rolling
    if training < 1:
        raise LayoutError(
            f"trainer.rollout_devices: {rolling} of {devices} devices leave none to train on; set at most {devices - 1}"
        )
    engine, rollout = recipe.engine, recipe.rollout
    problems = _engine_problems(engine, training * nodes, "engine")
    if recipe.reference is not None and not isinstance(recipe.reference, Megatron):
        problems += _engine_problems(recipe.reference, training * nodes, "reference")
    problems += _rollout_problems(rollout, rolling, nodes)
    _refuse(problems, is_possible)
    replica = rollout.tp * rollout.dp
    common = Layout(
        engine=engine.name,
        devices=training * nodes,
        nodes=nodes,
        rollout_devices=replica,
        replicas=rolling * nodes // replica,
        pool=0 if recipe.trainer is None else rolling * nodes,
    )
    return _engine_layout(engine, common)


def _refuse(problems: Sequence[_Problem], is_possible: Callable[[int], bool]) -> None:
    if problems:
        raise LayoutError(*(problem if isinstance(problem, str) else problem.told(is_possible) for problem in problems))


def _supervised_layout(recipe: SFT, devices: int, nodes: int, is_possible: Callable[[int], bool]) -> Layout:
    processes = recipe.processes(devices)
    if processes > devices:
        raise LayoutError(
            f"processes_per_node: {processes} is more than the {devices} devices of a node; set at most {devices} [S3]"
        )
    problems = _engine_problems(recipe.engine, processes * nodes, "engine")
    if nodes > 1 and recipe.launcher == "torchrun":
        problems.append(f"launcher: 'torchrun' starts the processes of one node, and the case has {nodes}; set launcher='ray' [S2]")
    _refuse(problems, is_possible)
    return _engine_layout(recipe.engine, Layout(engine=recipe.engine.name, devices=processes * nodes, nodes=nodes, replicas=0))


def _engine_problems(engine: Engine, world: int, owner: str) -> list[_Problem]:
    if isinstance(engine, Megatron):
        return _megatron_problems(engine, world)
    if isinstance(engine, VeOmni):
        return _veomni_problems(engine, world, owner)
    return [*_fsdp_problems(engine, world, owner), *_turbo_problems(engine, world, owner)]


def _engine_layout(engine: Engine, common: Layout) -> Layout:
    return _megatron_layout(engine, common) if isinstance(engine, Megatron) else _fsdp_layout(engine, common)


def _megatron_layout(engine: Megatron, common: Layout) -> Layout:
    world, etp = common.devices, engine.effective_etp
    return replace(
        common,
        tp=engine.tp,
        pp=engine.pp,
        cp=engine.cp,
        ep=engine.ep,
        etp=etp,
        vpp=engine.vpp,
        dp=world // (engine.tp * engine.pp * engine.cp),
        edp=world // (etp * engine.ep * engine.pp),
    )


def _fsdp_layout(engine: FSDP | VeOmni, common: Layout) -> Layout:
    world = common.devices
    sp = engine.ulysses if isinstance(engine, FSDPTurbo) else engine.sp
    shard = world if engine.fsdp_size < 0 else min(engine.fsdp_size, world)
    ep = engine.ep if isinstance(engine, VeOmni) else 1
    return replace(common, sp=sp, dp=world // sp, shard_size=shard, ep=ep)


def _megatron_problems(engine: Megatron, world: int) -> list[_Problem]:
    return [*_dense_problem(engine, world), *_expert_problem(engine, world), *_vpp_problem(engine)]


def _dense_sizes(engine: Megatron) -> Sizes:
    return (("tp", engine.tp), ("pp", engine.pp), ("cp", engine.cp))


def _expert_sizes(engine: Megatron) -> Sizes:
    return (("etp", engine.effective_etp), ("ep", engine.ep), ("pp", engine.pp))


def _vpp_problem(engine: Megatron) -> list[str]:
    if engine.vpp is None or engine.pp > 1:
        return []
    return [f"engine.vpp: {engine.vpp} needs pp of 2 or more, and pp is {engine.pp}; leave vpp out, or set pp=2 [M3]"]


def _dense_problem(engine: Megatron, world: int) -> list[_Misfit]:
    sizes = _dense_sizes(engine)
    if world % _product(sizes) == 0:
        return []
    advice = tuple(_smaller_sizes(engine, world, _dense_sizes, ("tp", "pp", "cp")))
    text = f"engine: {_arithmetic(sizes)} does not divide {world} devices"
    return [_Misfit(text=text, sizes=advice, devices=_enough(engine, world), rule="M1")]


def _expert_problem(engine: Megatron, world: int) -> list[_Misfit]:
    sizes = _expert_sizes(engine)
    if world % _product(sizes) == 0:
        return []
    # Another pp would move the layers of the dense part too: its own rule tells where it is wrong.
    advice = tuple(_smaller_sizes(engine, world, _expert_sizes, ("etp", "ep")))
    why = f"engine.etp is not set, so it is TP = {engine.tp}" if engine.etp is None else f"engine.etp is {engine.etp}"
    text = f"{why}: {_arithmetic(sizes)} does not divide {world} devices"
    return [_Misfit(text=text, sizes=advice, devices=_enough(engine, world), rule="M2")]


def _smaller_sizes(engine: Megatron, world: int, sizes_of: Callable[[Megatron], Sizes], names: Sequence[str]) -> Iterator[str]:
    """Yield, for each of these sizes, the next smaller value that mends this rule and breaks no other."""
    broken = _broken(engine, world)
    for name in names:
        for value in range(dict(sizes_of(engine))[name] - 1, 0, -1):
            change: dict[str, Any] = {name: value}
            candidate = replace(engine, **change)
            fits = world % _product(sizes_of(candidate)) == 0 and _broken(candidate, world) < broken
            if fits and candidate.tp % candidate.effective_etp == 0:
                yield _assignment(name, value, sizes_of(candidate))
                break


def _broken(engine: Megatron, world: int) -> int:
    return sum(world % _product(sizes) != 0 for sizes in (_dense_sizes(engine), _expert_sizes(engine)))


def _assignment(name: str, value: int, sizes: Sizes) -> str:
    return f"{name}={value} ({_values(sizes)} = {_product(sizes)})" if name == "etp" else f"{name}={value}"


def _enough(engine: Megatron, world: int) -> int:
    return _next_multiple(lcm(_product(_dense_sizes(engine)), _product(_expert_sizes(engine))), world)


def _product_problem(owner: str, sizes: Sizes, world: int, rule: str) -> list[_Misfit]:
    size = _product(sizes)
    if world % size == 0:
        return []
    advice = tuple(text for name, _ in sizes for text in _smaller(sizes, name, world))
    text = f"{owner}: {_arithmetic(sizes)} does not divide {world} devices"
    return [_Misfit(text=text, sizes=advice, devices=_next_multiple(size, world), rule=rule)]


def _smaller(sizes: Sizes, name: str, world: int) -> Iterator[str]:
    given = dict(sizes)
    rest = prod(value for other, value in sizes if other != name)
    for value in range(given[name] - 1, 0, -1):
        if world % (rest * value) == 0:
            yield f"{name}={value}"
            return


def _arithmetic(sizes: Sizes) -> str:
    names = " x ".join(name for name, _ in sizes)
    total = "" if len(sizes) == 1 else f" = {_product(sizes)}"
    return f"{names} = {_values(sizes)}{total}"


def _values(sizes: Sizes) -> str:
    return " x ".join(str(value) for _, value in sizes)


def _product(sizes: Sizes) -> int:
    return prod(value for _, value in sizes)


def _next_multiple(size: int, world: int) -> int:
    return -(-world // size) * size


def _fsdp_problems(engine: FSDP, world: int, owner: str) -> list[_Problem]:
    problems: list[_Problem] = [*_product_problem(owner, (("sp", engine.sp),), world, "F2")]
    if 0 < engine.fsdp_size < world and world % engine.fsdp_size:
        fits = max(size for size in range(1, engine.fsdp_size) if world % size == 0)
        problems.append(
            f"{owner}.fsdp_size: {engine.fsdp_size} does not divide {world} devices; "
            f"set fsdp_size={fits}, or -1 for one copy over all of them [F5]"
        )
    return problems


def _turbo_problems(engine: FSDP, world: int, owner: str) -> list[_Misfit]:
    if not isinstance(engine, FSDPTurbo):
        return []
    return _product_problem(owner, (("fully_shard", engine.fully_shard), ("ulysses", engine.ulysses)), world, "F8")


def _veomni_problems(engine: VeOmni, world: int, owner: str) -> list[_Problem]:
    sizes = (("sp", engine.sp), ("ep", engine.ep))
    problems: list[_Problem] = [problem for size in sizes for problem in _product_problem(owner, (size,), world, "F9")]
    dp = world // engine.sp
    if 0 < engine.fsdp_size < dp and dp % engine.fsdp_size:
        fits = max(size for size in range(1, engine.fsdp_size) if dp % size == 0)
        problems.append(
            f"{owner}.fsdp_size: {engine.fsdp_size} does not divide dp {dp} = {world} devices / sp {engine.sp}; "
            f"set fsdp_size={fits}, or -1 for one copy over all of them [F9]"
        )
    return problems


def _rollout_problems(rollout: RolloutEngine, devices: int, nodes: int) -> list[_Problem]:
    sizes = (("tp", rollout.tp), ("dp", rollout.dp))
    world, replica = devices * nodes, rollout.tp * rollout.dp
    problems: list[_Problem] = [*_product_problem("rollout", sizes, world, "R1")]
    if not problems and replica > devices and replica % devices:
        problems.append(
            f"rollout: a replica of {_arithmetic(sizes)} devices does not fill whole nodes of {devices}; "
            f"set a product of {devices // 2 or 1}, {devices} or {devices * 2} [R2]"
        )
    if rollout.ep > 1 and rollout.ep != replica:
        problems.append(f"rollout.ep: {rollout.ep} must be 1 or {_arithmetic(sizes)}; set ep={replica}, or leave it out [R4]")
    if rollout.name == "vllm" and rollout.dp > 1 and devices % rollout.tp:
        problems.append(
            f"rollout.tp: {rollout.tp} with dp {rollout.dp} does not divide the {devices} devices of a node; "
            f"set tp={max(size for size in range(1, rollout.tp) if devices % size == 0)} [R8]"
        )
    return problems
