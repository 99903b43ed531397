"""LoRA on the U-Net of a small latent diffusion model, as Diffusers trains it, and a denoised sample."""

import json

import torch
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DConditionModel
from peft import LoraConfig
from texts import ON_CPU

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
unet = UNet2DConditionModel(
    sample_size=8,
    block_out_channels=(16, 32),
    layers_per_block=1,
    cross_attention_dim=16,
    attention_head_dim=8,
    norm_num_groups=8,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
)
unet.requires_grad_(False)
unet.add_adapter(
    LoraConfig(r=4, init_lora_weights="gaussian", target_modules=["to_q", "to_k", "to_v", "to_out.0"])
)
unet.to(device)
lora = [parameter for parameter in unet.parameters() if parameter.requires_grad]
optimizer = torch.optim.AdamW(lora, lr=1e-2)
latents, noise = torch.randn(2, 2, 4, 8, 8).to(device)
text = torch.randn(2, 6, 16).to(device)
scheduler = DDPMScheduler()
values = []
for step in (700, 300):
    times = torch.full((2,), step, device=device)
    guess = unet(scheduler.add_noise(latents, noise, times), times, encoder_hidden_states=text).sample
    loss = torch.nn.functional.mse_loss(guess, noise)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(lora, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    values.append(loss.item())
sampler = DDIMScheduler()
sampler.set_timesteps(2)
with torch.no_grad():
    for time in sampler.timesteps:
        noise = sampler.step(unet(noise, time, encoder_hidden_states=text).sample, time, noise).prev_sample
values += [noise.abs().mean().item(), noise.std().item()]
print(json.dumps({"device": noise.device.type, "values": values}))
