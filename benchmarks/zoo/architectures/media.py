"""Architectures of pictures, sounds, series, and of several of them with text."""

from __future__ import annotations

from benchmarks.zoo import inputs
from benchmarks.zoo.architectures.architecture import Architecture, Settings, without_text

_CONVOLUTIONS: Settings = {
    "conv_dim": (16, 16),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 4),
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 32,
}
_TOWER: Settings = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
_TEXT_TOWER: Settings = {
    **_TOWER,
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": None,
}
_DECODER_TOWER: Settings = {**_TEXT_TOWER, "num_key_value_heads": 2}
_PICTURE_TOWER: Settings = {**_TOWER, "image_size": 32, "patch_size": 8}
_STAGES: Settings = {"depths": (1, 1), "num_labels": 10}

PICTURES = without_text(
    (
        "videomae",
        "VideoMAEForVideoClassification",
        "patches in time",
        inputs.films,
        {"num_frames": 4, "num_labels": 10},
    ),
    (
        "superpoint",
        "SuperPointForKeypointDetection",
        "key points, as many as there are",
        inputs.pictures_alone,
        {
            "encoder_hidden_sizes": [8, 8, 16, 16],
            "decoder_hidden_size": 16,
            "descriptor_decoder_dim": 16,
        },
    ),
    (
        "swin",
        "SwinForImageClassification",
        "shifted windows",
        inputs.pictures,
        {**_STAGES, "embed_dim": 16, "num_heads": (2, 4), "window_size": 4, "patch_size": 4},
    ),
    (
        "swinv2",
        "Swinv2ForImageClassification",
        "cosine attention, continuous positions",
        inputs.pictures,
        {
            **_STAGES,
            "embed_dim": 16,
            "num_heads": (2, 4),
            "window_size": 4,
            "patch_size": 4,
            "pretrained_window_sizes": (0, 0),
        },
    ),
    (
        "convnext",
        "ConvNextForImageClassification",
        "depthwise 7 x 7",
        inputs.pictures,
        {**_STAGES, "num_stages": 2, "hidden_sizes": (16, 32), "patch_size": 4},
    ),
    (
        "beit",
        "BeitForImageClassification",
        "relative position tables",
        inputs.pictures,
        {"use_relative_position_bias": True, "num_labels": 10, "_out_indices": None},
    ),
    (
        "dinov2",
        "Dinov2ForImageClassification",
        "layer scales, resampled positions",
        inputs.pictures,
        {"num_labels": 10},
    ),
    (
        "resnet_hf",
        "ResNetForImageClassification",
        "bottlenecks",
        inputs.pictures,
        {**_STAGES, "embedding_size": 16, "hidden_sizes": (16, 32)},
    ),
    (
        "mobilenet_v2",
        "MobileNetV2ForImageClassification",
        "inverted residuals",
        inputs.pictures,
        {"depth_multiplier": 0.35, "num_labels": 10},
    ),
    (
        "mobilevit",
        "MobileViTForImageClassification",
        "convolutions and unfolded attention",
        inputs.pictures,
        {
            "hidden_sizes": (16, 24, 32),
            "neck_hidden_sizes": (8, 16, 16, 24, 24, 32, 32),
            "patch_size": 2,
            "image_size": 64,
            "num_labels": 10,
        },
    ),
    (
        "segformer",
        "SegformerForSemanticSegmentation",
        "a pyramid, upsampled",
        inputs.segments,
        {
            "num_encoder_blocks": 2,
            "depths": (1, 1),
            "sr_ratios": (4, 1),
            "hidden_sizes": (16, 32),
            "num_attention_heads": (1, 2),
            "decoder_hidden_size": 32,
            "num_labels": 10,
        },
    ),
    (
        "poolformer",
        "PoolFormerForImageClassification",
        "pooling for attention",
        inputs.pictures,
        {
            "depths": (1, 1),
            "hidden_sizes": (16, 32),
            "num_encoder_blocks": 2,
            "num_labels": 10,
            "patch_sizes": (7, 3),
            "strides": (4, 2),
            "padding": (2, 1),
        },
    ),
    (
        "efficientnet",
        "EfficientNetForImageClassification",
        "squeeze and excite",
        inputs.pictures,
        {"width_coefficient": 0.5, "depth_coefficient": 0.3, "hidden_dim": 640, "num_labels": 10},
    ),
    (
        "vit_mae",
        "ViTMAEForPreTraining",
        "masked patches, sorted noise",
        inputs.noisy_patches,
        {
            "decoder_num_attention_heads": 4,
            "decoder_hidden_size": 32,
            "decoder_num_hidden_layers": 1,
            "decoder_intermediate_size": 64,
            "patch_size": 8,
        },
    ),
    (
        "hiera",
        "HieraForImageClassification",
        "units of masks, pooled queries",
        inputs.pictures,
        {
            "embed_dim": 16,
            "image_size": (32, 32),
            "patch_size": (7, 7),
            "depths": (1, 1),
            "num_heads": (1, 2),
            "num_query_pool": 1,
            "query_stride": (2, 2),
            "masked_unit_size": (4, 4),
            "masked_unit_attention": (True, False),
            "num_labels": 10,
        },
    ),
    (
        "focalnet",
        "FocalNetForImageClassification",
        "focal modulation",
        inputs.pictures,
        {
            **_STAGES,
            "embed_dim": 16,
            "hidden_sizes": (16, 32),
            "focal_levels": (2, 2),
            "focal_windows": (3, 3),
            "patch_size": 4,
        },
    ),
    (
        "yolos",
        "YolosForObjectDetection",
        "tokens that detect",
        inputs.pictures_alone,
        {"image_size": (32, 32), "num_detection_tokens": 4},
    ),
)

SOUNDS = without_text(
    ("wav2vec2", "Wav2Vec2ForCTC", "waveforms, CTC", inputs.waveform_to_text, {**_CONVOLUTIONS}),
    ("hubert", "HubertForCTC", "waveforms, hidden units", inputs.waveform_to_text, {**_CONVOLUTIONS}),
    ("wavlm", "WavLMForCTC", "gated distances", inputs.waveform_to_text, {**_CONVOLUTIONS}),
    (
        "ast",
        "ASTForAudioClassification",
        "patches of a spectrogram",
        inputs.spectrogram,
        {"max_length": 32, "num_mel_bins": 16, "frequency_stride": 8, "time_stride": 8, "num_labels": 10},
    ),
    (
        "wav2vec2_conformer",
        "Wav2Vec2ConformerForCTC",
        "convolutions in each block, relative positions",
        inputs.waveform_to_text,
        {**_CONVOLUTIONS, "conv_depthwise_kernel_size": 7},
    ),
    (
        "mimi",
        "MimiModel",
        "a transformer between convolutions and codes",
        inputs.waveform,
        {
            "num_filters": 4,
            "upsampling_ratios": [4, 4],
            "codebook_size": 16,
            "codebook_dim": 8,
            "num_quantizers": 4,
            "num_semantic_quantizers": 1,
            "vector_quantization_hidden_dimension": 8,
            "upsample_groups": 32,
            "sliding_window": 8,
            "frame_rate": None,
        },
    ),
    (
        "encodec",
        "EncodecModel",
        "residual vector quantisation",
        inputs.waveform,
        {
            "hidden_size": 16,
            "num_filters": 4,
            "upsampling_ratios": (4, 4),
            "codebook_size": 16,
            "num_lstm_layers": 1,
            "target_bandwidths": (12.0, 24.0),
        },
    ),
)

SERIES = without_text(
    (
        "timesfm2_5",
        "TimesFm2_5ModelForPrediction",
        "a decoder of patches, quantiles",
        inputs.long_series,
        {"context_length": 64, "patch_length": 8, "horizon_length": 8, "output_quantile_len": 8},
    ),
    (
        "patchtst",
        "PatchTSTForPrediction",
        "patches of a series",
        inputs.series,
        {
            "num_input_channels": 2,
            "context_length": 32,
            "patch_length": 8,
            "patch_stride": 8,
            "prediction_length": 4,
        },
    ),
    (
        "patchtsmixer",
        "PatchTSMixerForPrediction",
        "mixing MLPs",
        inputs.series,
        {"num_input_channels": 2, "context_length": 32, "prediction_length": 4},
    ),
    (
        "decision_transformer",
        "DecisionTransformerModel",
        "states, actions, returns",
        inputs.decisions,
        {"state_dim": 4, "act_dim": 2, "max_ep_len": 32},
    ),
)

MEDIA = (
    *without_text(
        (
            "clip",
            "CLIPModel",
            "pictures against texts",
            inputs.pictures_and_text,
            {
                "text_config": _TEXT_TOWER | {"eos_token_id": 3, "projection_dim": 32},
                "vision_config": _PICTURE_TOWER | {"projection_dim": 32},
                "projection_dim": 32,
            },
        ),
        (
            "siglip",
            "SiglipModel",
            "pairs by sigmoid, pooled by attention",
            inputs.pictures_and_text,
            {"text_config": _TEXT_TOWER, "vision_config": _PICTURE_TOWER},
        ),
        (
            "layoutlmv3",
            "LayoutLMv3ForTokenClassification",
            "a page's picture beside its words",
            inputs.boxed_pictures,
            {"coordinate_size": 5, "shape_size": 6, "input_size": 32, "num_labels": 10},
        ),
        (
            "vilt",
            "ViltForQuestionAnswering",
            "patches and words in one encoder",
            inputs.picture_questions,
            {"num_labels": 10, "max_image_length": 16},
        ),
    ),
    Architecture(
        "git", "GitForCausalLM", "pictures before words", inputs.captions, {"vision_config": _PICTURE_TOWER}
    ),
    Architecture(
        "llava",
        "LlavaForConditionalGeneration",
        "a picture's patches among the words",
        inputs.picture_tokens,
        {
            "text_config": {"model_type": "llama", **_DECODER_TOWER},
            "vision_config": {"model_type": "clip_vision_model", **_PICTURE_TOWER},
            "image_token_index": 127,
            "image_seq_length": 16,
        },
    ),
    Architecture(
        "idefics2",
        "Idefics2ForConditionalGeneration",
        "pictures summarised by latents",
        inputs.picture_lists,
        {
            "text_config": {"model_type": "mistral", **_DECODER_TOWER},
            "vision_config": _PICTURE_TOWER,
            "perceiver_config": {
                "resampler_n_latents": 4,
                "resampler_depth": 1,
                "resampler_n_heads": 4,
                "num_key_value_heads": 2,
                "resampler_head_dim": 8,
                "hidden_size": 32,
            },
            "image_token_id": 127,
        },
    ),
    Architecture(
        "internvl",
        "InternVLForConditionalGeneration",
        "pixels shuffled into channels",
        inputs.summarised_pictures,
        {
            "text_config": {"model_type": "qwen2", **_DECODER_TOWER},
            "vision_config": {**_TOWER, "image_size": [32, 32], "patch_size": [8, 8]},
            "downsample_ratio": 0.5,
            "image_token_id": 127,
        },
    ),
    Architecture(
        "aria",
        "AriaForConditionalGeneration",
        "queries to a picture, experts",
        inputs.summarised_pictures,
        {
            "text_config": {
                "model_type": "aria_text",
                **_DECODER_TOWER,
                "moe_num_experts": 4,
                "moe_topk": 2,
                "moe_num_shared_experts": 1,
            },
            "vision_config": {"model_type": "idefics3_vision", **_PICTURE_TOWER},
            "projector_patch_to_query_dict": {16: 4},
            "image_token_id": 127,
        },
    ),
    Architecture(
        "chameleon",
        "ChameleonForConditionalGeneration",
        "pictures as words of one vocabulary",
        settings={
            "vq_config": {
                "embed_dim": 8,
                "num_embeddings": 16,
                "latent_channels": 8,
                "resolution": 16,
                "base_channels": 32,
                "channel_multiplier": [1],
                "num_res_blocks": 1,
            },
            "vocabulary_map": {"<image>": 5},
        },
    ),
    Architecture(
        "qwen2_vl",
        "Qwen2VLForConditionalGeneration",
        "rotary in three dimensions",
        inputs.merged_patches,
        {
            "text_config": _DECODER_TOWER
            | {
                "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
            },
            "vision_config": {
                "depth": 2,
                "embed_dim": 32,
                "hidden_size": 32,
                "num_heads": 4,
                "patch_size": 4,
                "mlp_ratio": 2,
            },
            "image_token_id": 127,
            "video_token_id": 126,
            "vision_start_token_id": 125,
            "vision_end_token_id": 124,
        },
    ),
)
