"""Inputs of models, made of random numbers on the CPU: keyword arguments of a call."""

from __future__ import annotations

import torch

from benchmarks.zoo.case import Inputs

BATCH, LENGTH, WORDS, CLASSES = 2, 8, 120, 10
_PATCHES = 16
_PICTURE_TOKEN = 127


def text(batch: int = BATCH, length: int = LENGTH) -> Inputs:
    """`input_ids` int64 [batch, length], and the same as `labels`."""
    ids = torch.randint(4, WORDS, (batch, length))
    return {"input_ids": ids, "labels": ids.clone()}


def masked_text() -> Inputs:
    """Text of 16 words with an attention mask that hides the end of the second row."""
    mask = torch.ones(BATCH, 16, dtype=torch.int64)
    mask[1, -4:] = 0
    return {**text(length=16), "attention_mask": mask}


def bytes_text() -> Inputs:
    """Text in the only length that a Perceiver's decoder takes."""
    return {**text(length=16), "attention_mask": torch.ones(BATCH, 16, dtype=torch.int64)}


def boxed_text() -> Inputs:
    """Text with the box of each word, int64 [batch, length, 4]."""
    corners = torch.randint(0, 500, (BATCH, LENGTH, 2))
    return {**text(), "bbox": torch.cat((corners, corners + 100), dim=2)}


def table_text() -> Inputs:
    """Text with segment, column, row and ranks of each word, int64 [batch, length, 7]."""
    return {**text(), "token_type_ids": torch.zeros(BATCH, LENGTH, 7, dtype=torch.int64)}


def spelt_text() -> Inputs:
    """Text with the shape and the sound of each character."""
    words = text()
    return {
        **words,
        "input_shape_ids": words["input_ids"],
        "input_pronunciation_ids": words["input_ids"],
    }


def long_text() -> Inputs:
    """Text of two blocks of 32 words."""
    return text(length=64)


def boxed_pictures() -> Inputs:
    """Pictures of pages, their words with a box each, and the class of each word."""
    return {**boxed_text(), **pictures_alone(), "labels": torch.randint(CLASSES, (BATCH, LENGTH))}


def pictures_alone() -> Inputs:
    """`pixel_values` float32 [batch, 3, 32, 32]."""
    return {"pixel_values": torch.randn(BATCH, 3, 32, 32)}


def pictures() -> Inputs:
    """Pictures with a class each."""
    return {**pictures_alone(), "labels": torch.randint(CLASSES, (BATCH,))}


def films() -> Inputs:
    """Four pictures each, float32 [batch, 4, 3, 32, 32], with a class."""
    return {"pixel_values": torch.randn(BATCH, 4, 3, 32, 32), "labels": torch.randint(CLASSES, (BATCH,))}


def segments() -> Inputs:
    """Pictures with a class for each pixel."""
    return {**pictures_alone(), "labels": torch.randint(CLASSES, (BATCH, 32, 32))}


def noisy_patches() -> Inputs:
    """Pictures and the noise by which patches are masked, float32 [batch, patches]."""
    return {**pictures_alone(), "noise": torch.rand(BATCH, _PATCHES)}


def pictures_and_text() -> Inputs:
    """Pictures with a text each, which ends with token 3."""
    ids = text()["input_ids"]
    ids[:, -1] = 3
    return {**pictures_alone(), "input_ids": ids}


def picture_questions() -> Inputs:
    """Pictures, questions and the score of each answer."""
    return {**pictures_and_text(), "labels": torch.rand(BATCH, CLASSES)}


def captions() -> Inputs:
    """Pictures and the text to be said of them."""
    return {**pictures_alone(), **text()}


def picture_tokens(count: int = _PATCHES) -> Inputs:
    """A picture and a text in which `count` tokens stand for it."""
    ids = torch.cat((torch.full((BATCH, count), _PICTURE_TOKEN), text()["input_ids"]), dim=1)
    return {**pictures_alone(), "input_ids": ids, "labels": ids.clone()}


def summarised_pictures() -> Inputs:
    """A picture and a text in which four tokens stand for it."""
    return picture_tokens(4)


def picture_lists() -> Inputs:
    """The same, with one picture in the list of each text: `pixel_values` [batch, 1, 3, 32, 32]."""
    made = summarised_pictures()
    return {**made, "pixel_values": made["pixel_values"].unsqueeze(1)}


def merged_patches() -> Inputs:
    """One picture of 4 x 4 patches of 4 x 4 pixels, merged by fours into four tokens of a text."""
    words = text(batch=1)["input_ids"]
    start, end = torch.tensor([[125]]), torch.tensor([[124]])
    ids = torch.cat((start, torch.full((1, 4), _PICTURE_TOKEN), end, words), dim=1)
    return {
        "input_ids": ids,
        "labels": ids.clone(),
        "pixel_values": torch.randn(_PATCHES, 3 * 2 * 4 * 4),
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
        "mm_token_type_ids": (ids == _PICTURE_TOKEN).long(),
    }


def waveform() -> Inputs:
    """`input_values` float32 [batch, 1, samples]."""
    return {"input_values": torch.randn(BATCH, 1, 256)}


def waveform_to_text() -> Inputs:
    """A waveform and the letters to be heard in it."""
    return {"input_values": torch.randn(BATCH, 400), "labels": torch.randint(3, 30, (BATCH, 4))}


def spectrogram() -> Inputs:
    """`input_values` float32 [batch, frames, bins] with a class each."""
    return {"input_values": torch.randn(BATCH, 32, 16), "labels": torch.randint(CLASSES, (BATCH,))}


def spectrogram_to_text() -> Inputs:
    """A spectrogram and its words."""
    return {"input_features": torch.randn(BATCH, 32, 16), "labels": text()["labels"]}


def series() -> Inputs:
    """Two channels of the past and of the future, float32 [batch, time, channels]."""
    return {"past_values": torch.randn(BATCH, 32, 2), "future_values": torch.randn(BATCH, 4, 2)}


def long_series() -> Inputs:
    """One channel of the past and of the future, float32 [batch, time]."""
    return {"past_values": torch.randn(BATCH, 64), "future_values": torch.randn(BATCH, 8)}


def decisions() -> Inputs:
    """States, actions and returns over five steps."""
    steps = 5
    return {
        "states": torch.randn(BATCH, steps, 4),
        "actions": torch.randn(BATCH, steps, 2),
        "rewards": torch.randn(BATCH, steps, 1),
        "returns_to_go": torch.randn(BATCH, steps, 1),
        "timesteps": torch.arange(steps).repeat(BATCH, 1),
        "attention_mask": torch.ones(BATCH, steps, dtype=torch.int64),
    }
