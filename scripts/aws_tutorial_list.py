"""The tutorials of `aws_tutorials.py`: where each stands, what is edited, and what is compared."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aws_tutorial_decoders as decoders

TRAINING = "aws-neuron-samples/torch-neuronx/training"
SAMPLES = "aws-neuron-samples/torch-neuronx/inference"
INFERENCE = "aws-neuron-sdk/src/examples/pytorch"


@dataclass(frozen=True)
class Tutorial:
    """One script, or one notebook.

    Attributes:
        source: Its folder in the fetched copies.
        script: Its file. The cells of a notebook (`.ipynb`) become one script.
        shown: Pattern of a figure that it prints; the figures are compared with those of a run on the CPU.
        outputs: Instead, for inference: expression of what the device gave -> of what the CPU gives; these
            are kept when the script ends.
        arguments: Of its command.
        compiles: Arguments of a run on the device before that, which is not captured.
        edits: Text -> text in the script; data, model hub and sizes alone.
        for_cpu: Further edits for the CPU's run.
        cpu_arguments: Arguments of the CPU's run, where they are others.
        launch: What starts it.
        packages: What it imports besides PyTorch.
        target: The simulated device.
        environment: Variables of the device's run.
        tolerance: How far figures may be apart, as a share; of an output's largest value.
    """

    source: str
    script: str
    shown: str = ""
    arguments: Sequence[str] = ()
    compiles: Sequence[str] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    edits: Mapping[str, str] = field(default_factory=dict)
    for_cpu: Mapping[str, str] = field(default_factory=dict)
    cpu_arguments: Sequence[str] | None = None
    launch: Sequence[str] = ()
    packages: Sequence[str] = ()
    target: str = "trn1"
    environment: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 1e-4


_TORCHRUN = ("-m", "torch.distributed.run", "--tee", "3", "--nproc_per_node")
ONE_RANK = (*_TORCHRUN, "1")
TWO_RANKS = (*_TORCHRUN, "2")
_BERT = shlex.split(
    "--data_dir data --batch_size 4 --max_steps 6 --steps_this_run 4 --warmup_steps 1 --grad_accum_usteps 2 "
    "--lr 1e-3 --seq_len 32 --enable_fp32 --print_grad_norm --disable_dropout"
)
_GPT2 = shlex.split(
    "--model_name_or_path gpt2 --load_tokenized_dataset data --config_name config.json --tokenizer_name tok "
    "--per_device_train_batch_size 2 --max_train_steps 4 --learning_rate 0.0015 --lr_scheduler_type cosine "
    "--gradient_checkpointing --seed 1234 --num_warmup_steps 1 --use_grad_clipping --num_train_epochs 1 "
    "--output_dir out"
)
_GLUE = shlex.split(
    "--model_name_or_path bert-base-cased --train_file train.csv --validation_file validation.csv --do_train "
    "--do_eval --max_seq_length 32 --per_device_train_batch_size 4 --learning_rate 1e-3 --num_train_epochs 1 "
    "--logging_steps 1 --overwrite_output_dir --output_dir out"
)
_LLAMA = shlex.split(
    "--model_path config --data_dir data --tensor_parallel_size 2 --batch_size 2 --max_steps 8 --seq_len 32 "
    "--steps_this_run 4 --warmup_steps 1 --lr 1e-3 --grad_accum_usteps 2 --use_flash_attention 0 "
    "--print_grad_norm"
)
_NXD_ON_CPU = (
    "import argparse, os; os.environ['NXD_CPU_MODE'] = '1'\n"
    "import torch, torch_xla.core.xla_model as xla; xla.xla_device = lambda *_: torch.device('cpu')"
)
_WITHOUT_XLA = (
    "from accelerate.logging import get_logger\n"
    "import accelerate.state; accelerate.state.is_torch_xla_available = lambda *a, **k: False"
)
_FEWER_CALLS = {"batches_per_thread=1000": "batches_per_thread=2", ", 2, 3, 4, 5, 6, 7, 8, 9, 10]": ", 2]"}
_CLASSES = (
    'urllib.request.urlretrieve("https://s3.amazonaws.com/deep-learning-models/image-models/'
    'imagenet_class_index.json","imagenet_class_index.json")\n'
)
_TRAINING: Mapping[str, Tutorial] = {
    "mlp": Tutorial(f"{TRAINING}/mnist_mlp", "train.py", r"Final loss is ([\d.]+)"),
    "mlp_torchrun": Tutorial(
        f"{TRAINING}/mnist_mlp", "train_torchrun.py", r"Final loss is ([\d.]+)", launch=TWO_RANKS
    ),
    "mlp_trace": Tutorial(
        f"{TRAINING}/mnist_mlp",
        "eval_using_trace.py",
        r"Accuracy: ([\d.]+)",
        for_cpu={"torch_neuronx.trace(model, test_x)": "model"},
    ),
    "bert_pretraining": Tutorial(
        f"{TRAINING}/dp_bert_hf_pretrain",
        "dp_bert_large_hf_pretrain_hdf5.py",
        r"step_loss : ([\d.]+)",
        _BERT,
        edits={"'bert-large-uncased'": "'model'"},
        launch=ONE_RANK,
        packages=("h5py", "tensorboard", "transformers", "requests"),
    ),
    "zero1_gpt2": Tutorial(
        f"{TRAINING}/zero1_gpt2",
        "run_clm_no_trainer.py",
        r"step_loss : ([\d.]+)",
        (*_GPT2, "--use_zero1"),
        edits={
            '"n_embd": 1536': '"n_embd": 48',
            '"n_head": 24': '"n_head": 4',
            "50304 if": "320 if",
            'shuffle=(os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY", None) == None)': "shuffle=False",
            "average_throughput >= 14": "average_throughput >= 0",
        },
        for_cpu={
            "320 if args.use_zero1": "320 if True",
            "if args.use_zero1:\n            model_config": "if True:\n            model_config",
            "from accelerate.logging import get_logger": _WITHOUT_XLA,
        },
        cpu_arguments=_GPT2,
        launch=ONE_RANK,
        packages=("accelerate", "datasets", "tensorboard", "transformers", "requests"),
    ),
    "hf_bert_single": Tutorial(
        f"{TRAINING}/hf_sentiment_analysis/code/01-trainium-single-core",
        "train.py",
        r"Loss ([\d.]+)",
        edits={"num_epochs = 6": "num_epochs = 3", "shuffle=True": "shuffle=False"},
        for_cpu={'device = "xla"': 'device = "cpu"'},
        packages=("datasets", "pandas", "transformers"),
    ),
    "hf_bert_two_ranks": Tutorial(
        f"{TRAINING}/hf_sentiment_analysis/code/02-trainium-distributed-training",
        "train.py",
        r"Loss ([\d.]+)",
        edits={"num_epochs = 6": "num_epochs = 3"},
        for_cpu={
            'device = "xla"': 'device = "cpu"',
            "init_process_group(device)": "init_process_group('gloo')",
        },
        launch=TWO_RANKS,
        packages=("datasets", "pandas", "transformers"),
        environment={"TQDM_DISABLE": "1"},  # bars end no line, so that a rank's name is missing
    ),
    "hf_trainer_glue": Tutorial(
        f"{TRAINING}/hf_text_classification",
        "run_glue.py",
        r"(?:'loss':|'grad_norm':|eval_loss +=) +([\d.]+)",
        _GLUE,
        edits={
            'evaluate.load("accuracy")': "None",
            "use_auth_token=True if model_args.use_auth_token else None,": "",
        },
        for_cpu={
            "import os\n": "import os; os.environ['NEURON_TOOLS_TORCH_XLA'] = '0'\n",
        },
        cpu_arguments=(*_GLUE, "--use_cpu", "True"),
        launch=TWO_RANKS,
        packages=("datasets", "evaluate", "pandas", "transformers"),
        environment={"NEURON_TOOLS_TORCH_XLA": "1"},
    ),
    "tp_zero1_llama": Tutorial(
        "neuronx-distributed/examples/training/llama",
        "tp_zero1_llama_hf_pretrain/tp_zero1_llama_hf_pretrain.py",
        r"(?:step_loss|grad-norm) : ([\d.]+)",
        (*_LLAMA, "--use_zero_1"),
        for_cpu={
            "import argparse": _NXD_ON_CPU,
            "from modeling_llama_nxd": "from cpu_modeling_llama_nxd",
            'init_process_group("xla")': 'init_process_group("gloo")',
            "get_mixed_precision_config(flags.use_gpu_compatible_precision > 0)": "None",
        },
        cpu_arguments=_LLAMA,
        launch=TWO_RANKS,
        packages=("neuronx_distributed", "datasets", "tensorboard", "transformers", "requests"),
    ),
}
_KITTEN = (
    'request.urlretrieve("https://raw.githubusercontent.com/awslabs/mxnet-model-server/master/docs/images/'
    'kitten_small.jpg",\n                    "./torch_neuron_test/images/kitten_small.jpg")\n'
)
_YOLO_WEIGHTS = (
    "pretrained_dict = torch.load(weightfile, map_location=torch.device('cpu'))\n"
    "model.load_state_dict(pretrained_dict)\n"
)
_YOLO = Tutorial(
    INFERENCE,
    "yolo_v4.ipynb",
    outputs={"torch.jit.load('yolo_v4_neuron.pt')(image)": "model(image)"},
    edits={
        "n_cores = 16": "n_cores = 4",
        "download_file_from_google_drive('1wv_LiFeCRYwtpkqREPeI13-gPELBDwuJ', './yolo_v4.pth')": "",
        _YOLO_WEIGHTS: "",
        "mask = score > score_threshold": "mask = score >= score.topk(50).values[-1]",
        "latency[1000:]": "latency",
    },
    packages=("torchvision", "PIL", "pycocotools", "matplotlib", "requests"),
    target="inf1",
    environment={"MPLBACKEND": "Agg"},
)
_INF1: Mapping[str, Tutorial] = {
    "inf1_bert": Tutorial(
        f"{INFERENCE}/bert_tutorial",
        "tutorial_pretrained_bert.ipynb",
        outputs={
            "paraphrase_classification_logits_neuron[0]": "model(**paraphrase)[0]",
            "not_paraphrase_classification_logits_neuron[0]": "model(**not_paraphrase)[0]",
            "torch.jit.load('bert_neuron_b6.pt')(*example_inputs_paraphrase)[0]": (
                "model(*example_inputs_paraphrase)[0]"
            ),
        },
        edits={
            "import tensorflow ": "# ",
            "num_cores = 16": "num_cores = 4",
            "window_size=1)": "window_size=100)",
        },
        packages=("transformers",),
        target="inf1",
    ),
    "inf1_resnet50": Tutorial(
        INFERENCE,
        "resnet50.ipynb",
        outputs={"output_neuron": "output_cpu", "model_neuron_parallel(image)": "model(image)"},
        edits={
            _KITTEN: "",
            f"request.{_CLASSES.partition('request.')[2]}": "",
            "num_infers = 100": "num_infers = 2",
            "num_neuron_cores = 16": "num_neuron_cores = 4",
            "[2, 3, 4, 5, 6, 7]": "[2]",
        },
        packages=("torchvision", "PIL"),
        target="inf1",
        environment={"NEURON_RT_NUM_CORES": "4"},
    ),
    "inf1_yolo_v4": _YOLO,
    "inf1_pipeline": Tutorial(
        f"{INFERENCE}/pipeline_tutorial",
        "neuroncore_pipeline_pytorch.ipynb",
        outputs={
            "neuron_pipeline_model(inputs['input_ids'], inputs['attention_mask'])": (
                "model(inputs['input_ids'], inputs['attention_mask'])"
            ),
            "model_list[15](inputs['input_ids'], inputs['attention_mask'])": (
                "model(inputs['input_ids'], inputs['attention_mask'])"
            ),
        },
        edits={"range(100)": "range(2)", "range(30000)": "range(24)", "model_list*1500": "model_list*1"},
        packages=("joblib", "transformers"),
        target="inf1",
        environment={"NEURON_RT_NUM_CORES": "16"},
    ),
}
_GENERATED = shlex.split(
    "--model-path consolidated.00.pth --tokenizer-path tokenizer.model --prompts \"['how tall','what is']\""
)
_NXDI_PACKAGES = ("neuronx_distributed_inference", "neuronx_distributed", "nkilib", "transformers")
_LLAMA_ON_CPU = "__import__('transformers').LlamaForCausalLM.from_pretrained(model_path)"
_T5_ON_CPU = (
    "T5ForConditionalGeneration.from_pretrained(model_name).generate(**tokenizer(prompt, "
    "max_length=max_length, truncation=True, padding='max_length', return_tensors='pt'), "
    "max_length=max_length, num_beams=num_beams, num_return_sequences=num_return_sequences, do_sample=False)"
)
_PICTURE = {"Image.open(requests.get(url, stream=True).raw)": "Image.open('000000039769.jpg')"}
_INF2: Mapping[str, Tutorial] = {
    "clip": Tutorial(
        SAMPLES,
        "hf_pretrained_clip_base_inference_on_inf2.ipynb",
        outputs={"output_neuron": "output_cpu"},
        edits={"torchvision.datasets import CIFAR100": "cifar import CIFAR100"},
        packages=("transformers", "PIL"),
        target="inf2",
    ),
    **{
        name: Tutorial(
            SAMPLES,
            f"hf_pretrained_{notebook}_on_trn1.ipynb",
            outputs={"output_neuron": "output_cpu"},
            packages=("transformers",),
        )
        for name, notebook in (
            ("bert_features", "bert_inference"),
            ("distilbert", "distilbert_Inference"),
            ("gpt2_features", "gpt2_feature_extraction"),
        )
    },
    "roberta": Tutorial(
        SAMPLES,
        "hf_pretrained_roberta_inference_on_frn1.ipynb",
        outputs={"output_neuron": "output_cpu"},
        packages=("transformers",),
    ),
    "vit": Tutorial(
        SAMPLES,
        "hf_pretrained_vit_inference_on_inf2.ipynb",
        outputs={"output_neuron": "output_cpu"},
        edits={**_PICTURE, ", torchscript=True": ""},
        packages=("transformers", "PIL", "requests"),
        target="inf2",
    ),
    "wav2vec2_rope": Tutorial(
        SAMPLES,
        "hf_pretrained_wav2vec2_conformer_rope_inference_on_inf2.ipynb",
        outputs={"output_neuron": "output_cpu"},
        edits={
            "from datasets import load_dataset": "import numpy",
            "if tc_req is None:": "if False:",
            'ds = load_dataset("hf-internal-testing/librispeech_asr_dummy", "clean", split="validation", '
            "trust_remote_code=True)": "sound = numpy.random.default_rng(0).standard_normal(16_000)",
            'ds[0]["audio"]["array"]': "sound",
        },
        packages=("transformers",),
        target="inf2",
    ),
    **{
        name: Tutorial(
            SAMPLES,
            f"tv_pretrained_{notebook}_inference_on_trn1.ipynb",
            outputs={"output_neuron": "output_cpu"},
            edits={**_PICTURE, f"urllib.request.{_CLASSES.partition('request.')[2]}": ""},
            packages=("torchvision", "PIL", "requests"),
        )
        for name, notebook in (("tv_resnet50", "resnet50"), ("tv_vgg11", "vgg"))
    },
    "bert_mrpc": Tutorial(
        f"{INFERENCE}/torch-neuronx",
        "bert-base-cased-finetuned-mrpc-inference-on-trn1-tutorial.ipynb",
        outputs={
            "neuron_paraphrase_logits": "cpu_paraphrase_logits",
            "neuron_not_paraphrase_logits": "cpu_not_paraphrase_logits",
            "torch.jit.load('model_batch_size_2.pt')(*example)": "model(*example)",
        },
        edits=_FEWER_CALLS,
        packages=("transformers",),
        target="inf2",
    ),
    "nxdi_llama": Tutorial(
        "neuronx-distributed-inference/examples",
        "generation_demo.py",
        r"<(\d+)>",
        edits={
            "/home/ubuntu/model_hf/Llama-3.1-8B/": "model/",
            "/home/ubuntu/traced_model/Llama-3.1-8B/": "traced/",
            "tp_degree=32": "tp_degree=2, torch_dtype=torch.float32",
            "The color of the sky is": "The colour of the evening sky is",
        },
        for_cpu={
            "model = NeuronLlamaForCausalLM(model_path, config)\n    model.compile(traced_model_path)": "",
            "NeuronLlamaForCausalLM(traced_model_path)\n    model.load(traced_model_path)": _LLAMA_ON_CPU,
            "HuggingFaceGenerationAdapter(model)": "model",
            "sampling_params=sampling_params,": "",
            "model.config.neuron_config.max_length": "64",
        },
        packages=_NXDI_PACKAGES,
        target="inf2",
    ),
    **{
        name: Tutorial(
            decoders.SOURCE,
            "inference_demo.py",
            decoders.SHOWN,
            decoder.arguments(),
            edits=decoders.EDITS,
            for_cpu=decoders.FOR_CPU,
            cpu_arguments=decoder.arguments(decoder.length),
            packages=(*_NXDI_PACKAGES, "torchvision", "PIL"),
            target="inf2",
        )
        for name, decoder in decoders.DECODERS.items()
    },
    "nxd_llama": Tutorial(
        "neuronx-distributed/examples/inference/llama",
        "run.py",
        r"(\d+)(?=[^\n]*\|>)",
        ("generate_nxd", "--compiled-model-path", "compiled", *_GENERATED),
        compiles=shlex.split(
            "compile --tp-degree 2 --seq-len 32 --model-path consolidated.00.pth --output-path compiled"
        ),
        cpu_arguments=("generate_cpu", "--seq-len", "32", *_GENERATED),
        packages=("neuronx_distributed", "fire", "tiktoken", "regex", "termcolor"),
        target="inf2",
    ),
    "t5": Tutorial(
        f"{INFERENCE}/torch-neuronx",
        "t5-inference-tutorial.ipynb",
        outputs={"output": _T5_ON_CPU},
        edits={"max_length = 128": "max_length = 32", "ones((1,128,1))": "ones((1,32,1))"},
        packages=("optimum", "sentencepiece", "transformers"),
        target="inf2",
    ),
    "resnet50": Tutorial(
        f"{INFERENCE}/torch-neuronx",
        "resnet50-inference-on-trn1-tutorial.ipynb",
        outputs={
            "output_neuron": "output_cpu",
            "torch.jit.load('model_batch_size_2.pt')(*example)": "model(*example)",
        },
        edits={**_FEWER_CALLS, _CLASSES: ""},
        packages=("torchvision", "PIL"),
        target="inf2",
    ),
}
TUTORIALS: Mapping[str, Tutorial] = {**_TRAINING, **_INF2, **_INF1}
