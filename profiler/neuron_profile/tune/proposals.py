"""Which candidates to try next: all of a small space, else what Optuna's Parzen estimator proposes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import optuna

from neuron_profile.tune.measurement import Parameters
from neuron_profile.tune.space import Space

FIRST_AT_RANDOM = 24
TRIES = 20
Key = tuple[Any, ...]


class Proposals:
    """Proposes each candidate of a space at most once.

    Args:
        most: How many will be asked for; a space that is no larger is tried in full.
        seed: Of the same seed, the same proposals follow the same answers.
    """

    def __init__(self, space: Space, most: int, seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._space = space
        self._random = random.Random(seed)
        self._rest = [dict(each) for each in space.candidates()] if space.size <= most else []
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=FIRST_AT_RANDOM, multivariate=True, constant_liar=True
        )  # fmt: skip
        self._study = optuna.create_study(sampler=sampler)
        self._trials: dict[Key, optuna.trial.Trial] = {}
        self._known: dict[Key, float] = {}
        self._in_full = space.size <= most

    def ask(self, count: int) -> list[Parameters]:
        """So many candidates to try next; fewer where there are no more."""
        if self._in_full:
            chosen, self._rest = self._rest[:count], self._rest[count:]
            return list(chosen)
        return [candidate for _ in range(count) if (candidate := self._propose()) is not None]

    def tell(self, parameters: Parameters, time_ns: float) -> None:
        """What a candidate took; infinite where it does not count."""
        key = self._key(parameters)
        self._known[key] = time_ns
        trial = self._trials.pop(key, None)
        if trial is not None:
            self._study.tell(trial, time_ns)

    def _propose(self) -> Parameters | None:
        for _ in range(TRIES):
            trial = self._study.ask()
            parameters = {name: _suggested(trial, name, v) for name, v in self._space.parameters.items()}
            key = self._key(parameters)
            if key in self._known:
                self._study.tell(trial, self._known[key])
            elif key in self._trials:
                self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                self._trials[key] = trial
                return parameters
        return self._at_random()

    def _at_random(self) -> Parameters | None:
        """Any that was not tried, where the estimator only repeats itself."""
        for _ in range(100 * TRIES):
            parameters = {name: self._random.choice(v) for name, v in self._space.parameters.items()}
            key = self._key(parameters)
            if key not in self._known and key not in self._trials:
                self._known[key] = float("inf")
                return parameters
        return None

    def _key(self, parameters: Parameters) -> Key:
        return tuple(parameters[name] for name in self._space.parameters)


def _suggested(trial: optuna.trial.Trial, name: str, values: Sequence[Any]) -> Any:
    """A value; of numbers the estimator knows their order."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return sorted(values)[trial.suggest_int(name, 0, len(values) - 1)]
    return trial.suggest_categorical(name, values)
