"""Direct preference optimisation with TRL, beside a frozen reference model."""

import json
import tempfile

from datasets import Dataset
from texts import ON_CPU, SENTENCES, model, tokenizer
from trl import DPOConfig, DPOTrainer

with tempfile.TemporaryDirectory() as folder:
    arguments = DPOConfig(
        output_dir=folder,
        max_steps=2,
        per_device_train_batch_size=2,
        logging_steps=1,
        report_to=[],
        max_length=16,
        use_cpu=ON_CPU,
        bf16=False,
        save_strategy="no",
        disable_tqdm=True,
        gradient_checkpointing=False,
    )
    pairs = zip(SENTENCES, SENTENCES[::-1], strict=True)
    data = Dataset.from_list([{"prompt": "the", "chosen": one, "rejected": other} for one, other in pairs])
    trainer = DPOTrainer(
        model=model(), ref_model=model(1), args=arguments, train_dataset=data, processing_class=tokenizer()
    )
    trainer.train()
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
print(json.dumps({"device": trainer.model.device.type, "values": losses}))
