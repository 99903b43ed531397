"""The `Trainer` of transformers: losses and gradient norms of a few steps."""

import json
import tempfile

from texts import ON_CPU, SENTENCES, model, tokenizer
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

words = tokenizer()
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=model(),
        args=TrainingArguments(
            output_dir=folder,
            max_steps=3,
            per_device_train_batch_size=2,
            learning_rate=1e-2,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=ON_CPU,
        ),
        train_dataset=[{"input_ids": words(text)["input_ids"]} for text in SENTENCES * 2],
        data_collator=DataCollatorForLanguageModeling(words, mlm=False),
    )
    trainer.train()
logged = trainer.state.log_history
values = [step[name] for step in logged for name in ("loss", "grad_norm") if name in step]
print(json.dumps({"device": trainer.args.device.type, "values": values}))
