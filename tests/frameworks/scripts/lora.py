"""LoRA with PEFT, in a loop of one's own."""

import json

import torch
from peft import LoraConfig, get_peft_model
from texts import ON_CPU, SENTENCES, model, tokenizer

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
adapted = get_peft_model(model(), LoraConfig(r=4, lora_dropout=0.0, target_modules=["q_proj", "v_proj"])).to(
    device
)
optimizer = torch.optim.AdamW(adapted.parameters(), lr=1e-2)
batch = tokenizer()(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False).to(device)
losses = []
for _ in range(3):
    loss = adapted(**batch, labels=batch["input_ids"]).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print(json.dumps({"device": loss.device.type, "values": losses}))
