"""Rules on a configuration by verl's own keys, whichever field or override gave a value: they see what no typed field guards.

verl 0.9.1 raises these in its workers, minutes after the devices were taken, or never. A key that is not there is not judged: so
the rules work on a whole configuration and on overrides alone. Must not know: recipes, or how a configuration came about.
"""

from __future__ import annotations

from .batch_rules import BATCH_RULES
from .engine_rules import ENGINE_RULES
from .findings import ConfigRule, Finding, Values
from .rollout_rules import ROLLOUT_RULES
from .trainer_rules import TRAINER_RULES

RULES: tuple[ConfigRule, ...] = (*ENGINE_RULES, *BATCH_RULES, *ROLLOUT_RULES, *TRAINER_RULES)


def config_findings(values: Values) -> list[Finding]:
    """Return what all rules say of a whole configuration, or of overrides alone."""
    return [finding for rule in RULES for finding in rule(values)]
