import pytest
import torch

from tests.unit.frontends.lowered import lowered

aten = torch.ops.aten
FRAMES, CLASSES, BLANK = 12, 5, 0
INPUTS, LENGTHS = torch.tensor([12, 9, 3]), torch.tensor([4, 2, 3])
TARGETS = torch.tensor([[1, 1, 2, 3], [4, 4, 0, 0], [2, 2, 2, 0]])
"""Repeated labels, padding, and a target (2, 2, 2) that three frames cannot hold."""
IN_A_ROW = torch.cat([row[:length] for row, length in zip(TARGETS, LENGTHS)])


@pytest.fixture
def log_probs():
    return torch.randn(FRAMES, len(INPUTS), CLASSES).log_softmax(-1)


@pytest.mark.parametrize("targets", [TARGETS, IN_A_ROW])
def test_the_loss_is_that_of_the_cpu(log_probs, targets):
    loss, _ = lowered(aten._ctc_loss.Tensor, log_probs, targets, INPUTS, LENGTHS, BLANK)
    expected = aten._ctc_loss(log_probs, TARGETS, INPUTS.tolist(), LENGTHS.tolist(), BLANK)[0]
    torch.testing.assert_close(loss, expected)
    assert loss[2] == torch.inf


@pytest.mark.parametrize("targets", [TARGETS, IN_A_ROW])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_the_gradient_is_that_of_the_cpu(log_probs, targets, zero_infinity):
    lengths = INPUTS.tolist(), LENGTHS.tolist()
    loss, alpha = aten._ctc_loss(log_probs, TARGETS, *lengths, BLANK)
    gradient = torch.randn(len(INPUTS))
    rest = loss, alpha, BLANK, zero_infinity
    expected = aten._ctc_loss_backward(gradient, log_probs, TARGETS, *lengths, *rest)
    (found,) = lowered(aten._ctc_loss_backward.Tensor, gradient, log_probs, targets, INPUTS, LENGTHS, *rest)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert found[:3, 2].isnan().all() != zero_infinity


def test_without_frames_there_is_the_empty_target_alone(log_probs):
    frames, lengths = torch.tensor([0, 0, 3]), torch.tensor([0, 2, 1])
    loss, alpha = lowered(aten._ctc_loss.Tensor, log_probs, TARGETS, frames, lengths, BLANK)
    expected = aten._ctc_loss.Tensor(log_probs, TARGETS, frames, lengths, BLANK)
    torch.testing.assert_close(loss, expected[0])
    arguments = torch.randn(3), log_probs, TARGETS, frames, lengths
    (found,) = lowered(aten._ctc_loss_backward.Tensor, *arguments, loss, alpha, BLANK)
    torch.testing.assert_close(found, aten._ctc_loss_backward.Tensor(*arguments, *expected, BLANK))


@pytest.mark.parametrize("targets", [torch.zeros(0, dtype=torch.int64), torch.zeros(3, 0, dtype=torch.int64)])
def test_without_labels_every_frame_is_blank(log_probs, targets):
    none = torch.zeros(3, dtype=torch.int64)
    loss, _ = lowered(aten._ctc_loss.Tensor, log_probs, targets, INPUTS, none, BLANK)
    expected = aten._ctc_loss.Tensor(log_probs, targets, INPUTS, none, BLANK)
    torch.testing.assert_close(loss, expected[0])
    arguments = torch.randn(3), log_probs, targets, INPUTS, none
    (found,) = lowered(aten._ctc_loss_backward.Tensor, *arguments, *expected, BLANK)
    torch.testing.assert_close(found, aten._ctc_loss_backward.Tensor(*arguments, *expected, BLANK))


def test_the_loss_of_many_frames_is_lowered():
    log_probs = torch.randn(700, 1, CLASSES).log_softmax(-1)
    targets, lengths = torch.tensor([[1, 2, 2, 3]]), (torch.tensor([700]), torch.tensor([4]))
    loss, alpha = lowered(aten._ctc_loss.Tensor, log_probs, targets, *lengths, BLANK)
    expected = aten._ctc_loss.Tensor(log_probs, targets, *lengths, BLANK)
    torch.testing.assert_close([loss, alpha], list(expected))
