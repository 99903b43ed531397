"""Trains a small GPT-2 with the `Trainer` of `transformers`: one line of one's own starts everything."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
config = GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=2, n_head=4, use_cache=False)
tokens = torch.randint(0, 512, (48, 64))
examples = [{"input_ids": row, "labels": row} for row in tokens]

with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=6,
        per_device_train_batch_size=8,
        logging_steps=3,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=examples)
    trainer.train()
