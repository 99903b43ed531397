"""Logits against expected ones: near ties and shifts pass, wrong ones are told by prompt and token."""

import pytest
import torch

from neuron_tools.compat.torch_neuronx.testing.logits import logit_validation

PROMPTS = torch.tensor([[1, 2], [3, 4]])
EXPECTED = torch.randn(4, 2, 6, generator=torch.Generator().manual_seed(1))


def generates(logits, calls=None):
    """A model that gives these logits, from the token on at which the ids end."""

    def generate(ids):
        if calls is not None:
            calls.append([*map(list, ids.tolist())] if isinstance(ids, torch.Tensor) else ids)
        return logits[len(ids[0]) - PROMPTS.shape[1] :]

    return generate


@pytest.mark.parametrize("prompts", [PROMPTS, PROMPTS.tolist()])
def test_a_shift_of_all_logits_of_a_token_passes(prompts):
    shifted = EXPECTED + torch.arange(4.0).view(4, 1, 1)
    passed, results, sentence = logit_validation(prompts, generates(shifted), EXPECTED)
    assert passed
    assert [len(tokens) for tokens in results] == [4, 4]
    assert sentence == "Logits of all 8 tokens are as expected."


def test_after_another_token_the_model_goes_on_from_the_expected_one():
    given, expected = EXPECTED.clone(), EXPECTED.clone()
    best = expected[1, 0].topk(2).indices
    expected[1, 0, best[1]] = expected[1, 0, best[0]] - 1e-4
    given[1, 0] = expected[1, 0]
    given[1, 0, best[1]] += 2e-4
    calls: list = []
    passed, results, _ = logit_validation(PROMPTS, generates(given, calls), expected)
    assert passed
    assert results[0][1]["divergence"]
    assert calls[1] == [[1, 2, *expected.argmax(2).T[0, :2].tolist()], [3, 4, *expected.argmax(2).T[1, :2]]]
    assert not logit_validation(PROMPTS, generates(given), expected, divergence_difference_tol=5e-5)[0]


def test_a_wrong_logit_is_told_by_prompt_and_token():
    given = EXPECTED.clone()
    given[2, 1, int(EXPECTED[2, 1].argmin())] -= 1.0
    passed, results, sentence = logit_validation(PROMPTS, generates(given), EXPECTED)
    assert not passed
    assert sentence.endswith("first those of token 2 of prompt 1.")
    assert [token["passed"] for token in results[1]] == [True, True, False, True]
    assert logit_validation(PROMPTS, generates(given), EXPECTED, tol_map={"1": (1.0, 0.05)})[0]


def test_tokens_that_must_not_come_are_left_out():
    barred = EXPECTED.clone()
    barred[:, :, 5] = -torch.inf
    passed, results, _ = logit_validation(PROMPTS, generates(barred), barred)
    assert passed
    assert results[0][0]["error_map"]["all"] == 0.0


@pytest.mark.parametrize("logit", [-torch.inf, torch.nan])
def test_a_logit_that_is_no_number_is_wrong_where_one_is_expected(logit):
    given = EXPECTED.clone()
    given[2, 1, int(EXPECTED[2, 1].argmin())] = logit
    tokens = EXPECTED.argmax(2).T
    passed, results, _ = logit_validation(PROMPTS, lambda ids: (given, tokens), EXPECTED)
    assert not passed
    assert [token["passed"] for token in results[1]] == [True, True, False, True]


def test_a_model_that_gives_no_more_tokens_is_refused():
    short = EXPECTED[:2]
    with pytest.raises(ValueError, match="no token after 2 of 4"):
        logit_validation(PROMPTS, generates(short), EXPECTED)
