"""All models of the zoo, by name."""

from __future__ import annotations

from benchmarks.zoo import language, operators, perception, structured
from benchmarks.zoo.case import Case

CASES = (
    Case("llama", language.llama, language.tokens, generates=True),
    Case("qwen3", language.qwen3, language.tokens, generates=True),
    Case("mixtral", language.mixtral, language.tokens),
    Case("gpt2", language.gpt2, language.tokens, generates=True),
    Case("bert", language.bert, language.masked_tokens),
    Case("t5", language.t5, language.tokens),
    Case("vit", perception.vit, perception.pictures),
    Case("resnet", perception.ResNet, perception.pictures),
    Case("whisper", perception.whisper, perception.spectrograms),
    Case("unet", perception.DiffusionUNet, perception.noisy_pictures),
    Case("lstm", structured.Forecaster, structured.series),
    Case("gnn", structured.GraphNetwork, structured.graph),
    Case("speech", operators.SpeechNetwork, operators.waves),
    Case("experts", operators.ExpertNetwork, operators.token_rows),
    Case("picking", operators.PickingNetwork, operators.pictures_with_places),
)


def case(name: str) -> Case:
    """The model of that name.

    Raises:
        KeyError: There is none.
    """
    return {known.name: known for known in CASES}[name]
