"""Logits of a language model against expected ones, token by token: libraries on top check models with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

DEFAULT_DIVERGENCE_DIFFERENCE_TOLERANCE = 0.001
DEFAULT_TOLERANCE_MAP = {"all": (1e-5, 0.05), "1000": (1e-5, 0.03), "50": (1e-5, 0.02), "5": (1e-5, 0.01)}
"""Of how many of the likeliest tokens -> absolute error, and error as a share of the largest logit."""
Tolerances = Mapping[Any, tuple[float, float]]
Generated: TypeAlias = "torch.Tensor | tuple[torch.Tensor, torch.Tensor]"


def logit_validation(
    input_ids: Any,
    generate_fn: Callable[..., Generated],
    expected_logits: torch.Tensor,
    divergence_difference_tol: float | None = None,
    tol_map: Tolerances | None = None,
    **others: Any,
) -> tuple[bool, list[list[dict[str, Any]]], str]:
    """Compare a model's greedy generation with expected logits.

    Where a token is another than the expected one, the model goes on from the expected tokens: one near tie
    makes no later token wrong.

    Args:
        input_ids: Token ids of the prompts, one row each: a tensor, or lists.
        generate_fn: Takes such ids; gives logits [tokens, prompts, vocabulary] that follow them, or these and
            the token ids [prompts, tokens].
        expected_logits: The same, expected.
        divergence_difference_tol: How much likelier than the expected token another may be, in logits.
        tol_map: See `DEFAULT_TOLERANCE_MAP`.
        **others: Accepted for compatibility.

    Returns:
        Whether all tokens pass; for each prompt and token what was found, with `passed`; and a sentence.

    Raises:
        ValueError: `generate_fn` gives no token.
    """
    allowed = divergence_difference_tol
    allowed = DEFAULT_DIVERGENCE_DIFFERENCE_TOLERANCE if allowed is None else allowed
    tolerances = tol_map or DEFAULT_TOLERANCE_MAP
    expected_logits = expected_logits.detach().cpu().float()
    expected = expected_logits.argmax(2).T
    results: list[list[dict[str, Any]]] = [[] for _ in expected]
    done = 0
    while done < len(expected_logits):
        logits, tokens = _generated(generate_fn(input_ids))
        count = _common_count(expected[:, done:], tokens)
        if not count:
            raise ValueError(f"generate_fn gives no token after {done} of {len(expected_logits)}.")
        for prompt, found in enumerate(results):
            for token in range(count):
                wanted, given = expected_logits[done + token, prompt], logits[token, prompt]
                found.append(_compared(given, wanted, int(tokens[prompt, token]), tolerances, allowed))
        input_ids = _extended(input_ids, expected[:, done : done + count])
        done += count
    return _all_passed(results), results, _summary(results)


def _generated(made: Generated) -> tuple[torch.Tensor, torch.Tensor]:
    logits = (made[0] if isinstance(made, tuple) else made).detach().cpu().float()
    return logits, made[1].cpu() if isinstance(made, tuple) else logits.argmax(2).T


def _common_count(expected: torch.Tensor, given: torch.Tensor) -> int:
    """Tokens up to the first that is another than expected in any prompt, with that one."""
    count = min(expected.shape[1], given.shape[1])
    apart = (expected[:, :count] != given[:, :count]).any(0).nonzero()
    return int(apart[0]) + 1 if len(apart) else count


def _extended(input_ids: Any, tokens: torch.Tensor) -> Any:
    if isinstance(input_ids, torch.Tensor):
        return torch.cat([input_ids, tokens.to(input_ids)], 1)
    return [[*ids, *more] for ids, more in zip(input_ids, tokens.tolist())]


def _compared(
    given: torch.Tensor, wanted: torch.Tensor, token: int, tolerances: Tolerances, allowed: float
) -> dict[str, Any]:
    """One token of one prompt; a shift of all logits changes no probability and is no error."""
    likeliest = int(wanted.argmax())
    apart = float(given.max() - given[likeliest]) if token != likeliest else 0.0
    finite = wanted.isfinite()  # tokens that must not come have no logit
    wanted, given = wanted[finite], given[finite]
    shift = float((given - wanted).mean())
    errors = {which: _error(given - shift, wanted, which) for which in tolerances}
    largest = float(wanted.abs().max())
    in_bounds = all(
        error <= absolute + relative * largest
        for error, (absolute, relative) in zip(errors.values(), tolerances.values())
    )
    return {
        "passed": in_bounds and (token == likeliest or apart < allowed),
        "divergence": token != likeliest,
        "divergence_difference": apart,
        "error_map": {which: error / largest if largest else error for which, error in errors.items()},
        "shift": shift,
    }


def _error(given: torch.Tensor, wanted: torch.Tensor, which: Any) -> float:
    """The largest error among the likeliest tokens."""
    count = len(wanted) if which in ("all", None) else min(int(which), len(wanted))
    chosen = wanted.topk(count).indices
    return float((given[chosen] - wanted[chosen]).abs().max())


def _all_passed(results: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    return all(token["passed"] for prompt in results for token in prompt)


def _summary(results: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    failed = [
        (prompt, number)
        for prompt, tokens in enumerate(results)
        for number, token in enumerate(tokens)
        if not token["passed"]
    ]
    total = sum(map(len, results))
    if not failed:
        return f"Logits of all {total} tokens are as expected."
    prompt, number = failed[0]
    return (
        f"Logits of {len(failed)} of {total} tokens are not as expected, first those of token {number} of "
        f"prompt {prompt}."
    )
