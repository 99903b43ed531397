"""Architectures of text: decoders, mixtures of experts, recurrences, encoders, pairs of both."""

from __future__ import annotations

from benchmarks.zoo import inputs
from benchmarks.zoo.architectures.architecture import Architecture, Settings, without_text

_MAMBA2_MIX: Settings = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_d_state": 8,
    "mamba_chunk_size": 4,
}

_LATENT: Settings = {
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "num_key_value_heads": 4,
}
_GROUPED: Settings = {"n_routed_experts": 8, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1}

DECODERS = (
    Architecture("mistral", "MistralForCausalLM", "sliding window", settings={"sliding_window": 4}),
    Architecture(
        "gemma2", "Gemma2ForCausalLM", "soft caps, local and global layers", settings={"sliding_window": 4}
    ),
    Architecture(
        "gemma3", "Gemma3ForCausalLM", "two rotary bases, normalised heads", settings={"sliding_window": 4}
    ),
    Architecture("phi3", "Phi3ForCausalLM", "joint projections"),
    Architecture("falcon", "FalconForCausalLM", "one key head, ALiBi", settings={"alibi": True}),
    Architecture("bloom", "BloomForCausalLM", "ALiBi, joint projections"),
    Architecture("mpt", "MptForCausalLM", "ALiBi without biases", settings={"max_seq_len": 64}),
    Architecture(
        "opt", "OPTForCausalLM", "learnt positions with an offset", settings={"word_embed_proj_dim": 32}
    ),
    Architecture("gpt_neox", "GPTNeoXForCausalLM", "attention and MLP in parallel"),
    Architecture("gptj", "GPTJForCausalLM", "rotary over a part of a head", settings={"rotary_dim": 4}),
    Architecture(
        "gpt_neo",
        "GPTNeoForCausalLM",
        "local attention",
        settings={"attention_types": [[["global", "local"], 1]], "window_size": 4},
    ),
    Architecture("gpt_bigcode", "GPTBigCodeForCausalLM", "one key head, softmax in fp32"),
    Architecture("olmo2", "Olmo2ForCausalLM", "norms behind the layers"),
    Architecture(
        "cohere2", "Cohere2ForCausalLM", "interleaved rotary, scaled logits", settings={"sliding_window": 4}
    ),
    Architecture("stablelm", "StableLmForCausalLM", "norms per head", settings={"qk_layernorm": True}),
    Architecture("nemotron", "NemotronForCausalLM", "squared ReLU"),
    Architecture("smollm3", "SmolLM3ForCausalLM", "layers without positions"),
    Architecture("diffllama", "DiffLlamaForCausalLM", "one attention less another"),
    Architecture("apertus", "ApertusForCausalLM", "an activation with learnt slopes"),
    Architecture("doge", "DogeForCausalLM", "masks made of the values"),
    Architecture(
        "gemma3n",
        "Gemma3nForCausalLM",
        "several residual streams, sparse MLPs, shared keys",
        settings={
            "num_hidden_layers": 4,
            "num_kv_shared_layers": 2,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 128,
            "laurel_rank": 8,
            "sliding_window": 4,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0],
        },
    ),
    Architecture(
        "xlnet", "XLNetLMHeadModel", "two-stream relative attention", settings={"d_head": 8}, generates=False
    ),
)

MIXTURES = (
    Architecture("qwen2_moe", "Qwen2MoeForCausalLM", "a shared expert behind a gate"),
    Architecture("qwen3_moe", "Qwen3MoeForCausalLM", "mixture of experts"),
    Architecture(
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        "latent attention, grouped experts",
        settings={**_LATENT, **_GROUPED},
    ),
    Architecture(
        "deepseek_v2",
        "DeepseekV2ForCausalLM",
        "rotary as complex numbers",
        settings={**_LATENT, **_GROUPED, "head_dim": 8},
    ),
    Architecture(
        "deepseek_v32",
        "DeepseekV32ForCausalLM",
        "an indexer picks the keys",
        settings={
            **_LATENT,
            **_GROUPED,
            "head_dim": 8,
            "index_topk": 4,
            "index_head_dim": 16,
            "index_n_heads": 2,
        },
    ),
    Architecture(
        "longcat_flash",
        "LongcatFlashForCausalLM",
        "experts that do nothing",
        settings={
            **_LATENT,
            "head_dim": 8,
            "moe_topk": 2,
            "n_routed_experts": 4,
            "zero_expert_num": 2,
            "expert_ffn_hidden_size": 16,
        },
    ),
    Architecture("jetmoe", "JetMoeForCausalLM", "experts of attention", settings={"kv_channels": 8}),
    Architecture("phimoe", "PhimoeForCausalLM", "a router with a margin"),
    Architecture(
        "gpt_oss", "GptOssForCausalLM", "attention sinks, clamped experts", settings={"sliding_window": 4}
    ),
    Architecture("olmoe", "OlmoeForCausalLM", "normalised queries, experts"),
    Architecture("granitemoe", "GraniteMoeForCausalLM", "scaled residuals, stacked experts"),
    Architecture(
        "llama4",
        "Llama4ForCausalLM",
        "chunked attention, one expert and a shared one",
        settings={"num_experts_per_tok": 1, "attention_chunk_size": 4, "intermediate_size_mlp": 64},
    ),
    Architecture(
        "dbrx",
        "DbrxForCausalLM",
        "experts in one table",
        settings={
            "max_seq_len": 64,
            "attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0},
            "ffn_config": {"hidden_size": 32, "ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
        },
    ),
    Architecture(
        "switch_transformers",
        "SwitchTransformersForConditionalGeneration",
        "experts with a capacity",
        settings={
            "num_sparse_encoder_layers": 1,
            "num_sparse_decoder_layers": 1,
            "expert_capacity": 8,
            "decoder_start_token_id": 1,
        },
    ),
)

RECURRENT = (
    Architecture("mamba", "MambaForCausalLM", "selective state space", settings={"state_size": 8}),
    Architecture(
        "falcon_mamba", "FalconMambaForCausalLM", "normalised state space", settings={"state_size": 8}
    ),
    Architecture(
        "mamba2",
        "Mamba2ForCausalLM",
        "state space in chunks",
        settings={"num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 2, "chunk_size": 4},
    ),
    Architecture(
        "jamba",
        "JambaForCausalLM",
        "Mamba, attention and experts",
        settings={
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "use_mamba_kernels": False,
            "mamba_d_state": 8,
        },
    ),
    Architecture(
        "bamba",
        "BambaForCausalLM",
        "Mamba 2 and attention",
        settings={**_MAMBA2_MIX, "attn_layer_indices": [1]},
    ),
    Architecture(
        "falcon_h1",
        "FalconH1ForCausalLM",
        "Mamba 2 beside attention",
        settings={**_MAMBA2_MIX, "mamba_d_ssm": 64},
    ),
    Architecture(
        "recurrent_gemma",
        "RecurrentGemmaForCausalLM",
        "linear recurrence, local attention",
        settings={
            "lru_width": 32,
            "attention_window_size": 4,
            "num_hidden_layers": 3,
            "num_key_value_heads": 1,
        },
    ),
    Architecture(
        "qwen3_next",
        "Qwen3NextForCausalLM",
        "gated delta rule",
        settings={
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
    Architecture(
        "minimax",
        "MiniMaxForCausalLM",
        "lightning attention",
        settings={"block_size": 4, "layer_types": ["linear_attention", "full_attention"]},
    ),
    Architecture(
        "lfm2",
        "Lfm2ForCausalLM",
        "gated short convolutions",
        settings={"layer_types": ["conv", "full_attention"]},
    ),
    Architecture(
        "nemotron_h",
        "NemotronHForCausalLM",
        "Mamba 2, attention, experts, one a layer",
        settings={
            "mamba_num_heads": 8,
            "mamba_head_dim": 8,
            "ssm_state_size": 8,
            "n_groups": 2,
            "chunk_size": 4,
            "use_mamba_kernels": False,
            "layers_block_type": ["mamba", "attention", "moe"],
            "moe_shared_expert_intermediate_size": 32,
            "n_routed_experts": 4,
        },
    ),
    Architecture(
        "granitemoehybrid",
        "GraniteMoeHybridForCausalLM",
        "Mamba 2, attention and experts",
        settings={**_MAMBA2_MIX, "layer_types": ["mamba", "attention"]},
    ),
    Architecture(
        "kimi_linear",
        "KimiLinearForCausalLM",
        "delta rule with a gate for each channel",
        settings={
            **_LATENT,
            "q_lora_rank": None,
            "linear_head_dim": 8,
            "linear_num_heads": 4,
            "layer_types": ["linear_attention", "full_attention"],
            "mlp_layer_types": ["dense", "sparse"],
        },
    ),
    Architecture(
        "olmo_hybrid",
        "OlmoHybridForCausalLM",
        "delta rule with negative eigenvalues",
        settings={
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
    Architecture(
        "rwkv",
        "RwkvForCausalLM",
        "a recurrence over time",
        settings={"context_length": 64, "attention_hidden_size": 32},
    ),
)

ENCODERS = without_text(
    ("albert", "AlbertForMaskedLM", "one layer shared by all", inputs.masked_text, {}),
    ("distilbert", "DistilBertForMaskedLM", "half of BERT", inputs.masked_text, {}),
    ("electra", "ElectraForMaskedLM", "narrow embeddings", inputs.masked_text, {"embedding_size": 16}),
    (
        "deberta_v2",
        "DebertaV2ForMaskedLM",
        "positions apart from contents",
        inputs.masked_text,
        {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
    ),
    (
        "modernbert",
        "ModernBertForMaskedLM",
        "local and global rotary, gated MLP",
        inputs.masked_text,
        {"local_attention": 8, "bos_token_id": 2, "cls_token_id": 2, "sep_token_id": 3},
    ),
    ("mpnet", "MPNetForMaskedLM", "buckets of distance", inputs.masked_text, {}),
    (
        "longformer",
        "LongformerForMaskedLM",
        "windows as overlapping views",
        inputs.masked_text,
        {"attention_window": 8},
    ),
    ("fnet", "FNetForMaskedLM", "Fourier transforms for attention", inputs.text, {}),
    (
        "funnel",
        "FunnelForMaskedLM",
        "pooled sequences",
        inputs.masked_text,
        {"block_sizes": [1, 1], "d_head": 8},
    ),
    ("convbert", "ConvBertForMaskedLM", "convolutions made of each word", inputs.masked_text, {}),
    ("squeezebert", "SqueezeBertForMaskedLM", "grouped convolutions", inputs.masked_text, {}),
    (
        "nystromformer",
        "NystromformerForMaskedLM",
        "pseudo-inverse through landmarks",
        inputs.text,
        {"num_landmarks": 4, "segment_means_seq_len": 8, "conv_kernel_size": 5},
    ),
    (
        "roc_bert",
        "RoCBertForMaskedLM",
        "shapes and sounds of characters",
        inputs.spelt_text,
        {
            "pronunciation_vocab_size": 128,
            "shape_vocab_size": 128,
            "pronunciation_embed_dim": 8,
            "shape_embed_dim": 8,
        },
    ),
    ("mra", "MraForMaskedLM", "attention in two resolutions", inputs.long_text, {}),
    ("tapas", "TapasForMaskedLM", "places in a table", inputs.table_text, {}),
    ("layoutlm", "LayoutLMForMaskedLM", "boxes on a page", inputs.boxed_text, {}),
    (
        "perceiver",
        "PerceiverForMaskedLM",
        "latents that ask the input",
        inputs.bytes_text,
        {
            "num_latents": 8,
            "d_latents": 32,
            "num_self_attends_per_block": 2,
            "num_self_attention_heads": 4,
            "num_cross_attention_heads": 4,
            "max_position_embeddings": 16,
            "qk_channels": 32,
            "v_channels": 32,
        },
    ),
)

PAIRS = (
    Architecture("bart", "BartForConditionalGeneration", "encoder and decoder", inputs.masked_text),
    Architecture("blenderbot_small", "BlenderbotSmallForConditionalGeneration", "norms behind the layers"),
    Architecture("pegasus", "PegasusForConditionalGeneration", "sine positions"),
    Architecture(
        "longt5",
        "LongT5ForConditionalGeneration",
        "local blocks and a global summary",
        settings={
            "local_radius": 3,
            "global_block_size": 4,
            "encoder_attention_type": "transient-global",
            "decoder_start_token_id": 1,
        },
    ),
    Architecture(
        "prophetnet",
        "ProphetNetForConditionalGeneration",
        "predicts several words ahead",
        settings={
            "num_encoder_layers": 2,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
        },
    ),
    Architecture(
        "led",
        "LEDForConditionalGeneration",
        "windows before a decoder",
        settings={
            "attention_window": 8,
            "max_encoder_position_embeddings": 64,
            "max_decoder_position_embeddings": 64,
        },
    ),
    Architecture(
        "speech_to_text",
        "Speech2TextForConditionalGeneration",
        "convolutions over a spectrogram, a decoder",
        inputs.spectrogram_to_text,
        {"input_feat_per_channel": 16, "conv_channels": 32, "pad_token_id": 1, "max_source_positions": 64},
    ),
)
