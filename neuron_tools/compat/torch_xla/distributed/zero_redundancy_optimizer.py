"""`torch_xla.distributed.zero_redundancy_optimizer`: each rank updates its part of each parameter."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ..core import xla_model as xm  # noqa: TID252  # found as torch_xla

Groups = list[list[int]]
Pair = tuple[nn.Parameter, nn.Parameter]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer of which each rank runs a part.

    A step reduces and scatters the gradients, updates this rank's rows of each parameter, and gathers them.

    Args:
        params: Parameters on the device, or groups of them.
        optimizer_class: The optimizer that updates the parts.
        optimizer_dtype: Element type of the parts and of their state.
        grad_clipping: Whether gradients are clipped to `max_norm`.
        max_norm: Largest norm of all gradients together.
        pin_layout: Accepted for compatibility.
        sharding_groups: Ranks that share the state; all of the job by default.
        grad_norm_groups: Ranks whose norms are added up too: those of model parallelism.
        lazy_init: Leave the parameters whole until `init_zero` is called.
        bucket_cap_mb_all_gather: Megabytes that are gathered at once; 0: one parameter at a time.
        bucket_cap_mb_reduce_scatter: Likewise for gradients.
        use_grad_acc_hook: Add gradients up in `optimizer_dtype` as they come.
        save_master_weights: Let `state_dict` have this rank's parts too.
        higher_cc_precision: Reduce gradients in `optimizer_dtype`.
        **defaults: Options of `optimizer_class`.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        optimizer_dtype: torch.dtype | None = None,
        grad_clipping: bool = True,
        max_norm: float | None = None,
        pin_layout: bool = True,
        sharding_groups: Groups | None = None,
        grad_norm_groups: Groups | None = None,
        lazy_init: bool = False,
        bucket_cap_mb_all_gather: int = 0,
        bucket_cap_mb_reduce_scatter: int = 0,
        use_grad_acc_hook: bool = False,
        save_master_weights: bool = False,
        higher_cc_precision: bool = False,
        **defaults: Any,
    ) -> None:
        super().__init__(params, defaults)
        self.defaults = defaults
        self.optimizer_class = optimizer_class
        self.optimizer_dtype = optimizer_dtype or torch.float32
        self.grad_clipping = grad_clipping
        self.max_norm = 1.0 if max_norm is None else max_norm
        self.global_rank, self.global_world_size = xm.get_ordinal(), xm.xrt_world_size()
        self._sharding_groups = sharding_groups or [list(range(self.global_world_size))]
        self._grad_norm_groups = grad_norm_groups
        self.bucket_cap_mb_all_gather = bucket_cap_mb_all_gather
        self.bucket_cap_mb_reduce_scatter = bucket_cap_mb_reduce_scatter
        self.use_grad_acc_hook = use_grad_acc_hook
        self.save_master_weights = save_master_weights
        self.higher_cc_precision = higher_cc_precision
        self._grad_norm: torch.Tensor | None = None
        self._hooks: list[Any] = []
        self.inited = False
        if not lazy_init:
            self.init_zero()

    def init_zero(self) -> None:
        """Cut the parameters, and make the optimizer of this rank's parts.

        Raises:
            ValueError: This rank is in none of the groups.
        """
        self.remove_hooks()
        own = next((list(group) for group in self._sharding_groups if self.global_rank in group), None)
        if own is None:
            raise ValueError(f"Rank {self.global_rank} is in none of the groups {self._sharding_groups}.")
        self.local_world_size, self.local_rank = len(own), own.index(self.global_rank)
        self.base_optimizer = self.optimizer_class(self._shard_parameters(), **self.defaults)
        self._sync_param_groups(self.param_groups, self.base_optimizer.param_groups)
        self.inited = True

    @property
    def grad_norm(self) -> torch.Tensor | None:
        """Norm of all gradients in the last step, before they were clipped."""
        return self._grad_norm

    @property
    def sharding_groups(self) -> Groups:
        """Ranks that share the state."""
        return self._sharding_groups

    @sharding_groups.setter
    def sharding_groups(self, groups: Groups) -> None:
        """Choose them.

        Raises:
            RuntimeError: `init_zero()` has cut the parameters.
        """
        if self.inited:
            raise RuntimeError("The parameters are cut already: choose the groups before init_zero().")
        self._sharding_groups = groups

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update the parameters on all ranks.

        Args:
            closure: Computes the loss anew.
            **kwargs: Options of the parts' optimizer; `sharding_scheme`, how gradients are reduced one group
                after the other.

        Raises:
            RuntimeError: `init_zero()` has not cut the parameters yet.
        """
        if not self.inited:
            raise RuntimeError("The parameters are not cut yet: call init_zero() first.")
        loss = closure() if closure is not None else None
        with torch.no_grad():
            self._reduce_gradients(**kwargs)
            if self.grad_clipping:
                self._clip_grad_norm(max_norm=self.max_norm)
            self._update_parameters(**kwargs)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, those that were added up too."""
        super().zero_grad(set_to_none=set_to_none)
        for _, shard in self._pairs():
            if hasattr(shard, "main_grad"):
                shard.main_grad.zero_()

    def state_dict(self) -> dict[str, Any]:
        """This rank's part of the state, and the parameters' shapes."""
        state: dict[str, Any] = super().state_dict()
        state["base_state"] = self.base_optimizer.state_dict()["state"]
        state["shape_info"] = self.get_shape_info()
        if self.save_master_weights:
            state["sharded_master_weights"] = {n: shard.data for n, (_, shard) in enumerate(self._pairs())}
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave on the same rank of an equal job."""
        state = copy.deepcopy(dict(state_dict))
        base_state, weights = state.pop("base_state"), state.pop("sharded_master_weights", None)
        state.pop("shape_info", None)
        super().load_state_dict(state)
        self.init_zero()
        self.base_optimizer.load_state_dict({"state": base_state, "param_groups": state["param_groups"]})
        if weights is not None:
            self._load_master_weights(weights)

    def get_shape_info(self) -> dict[int, torch.Size]:
        """Each parameter's whole shape, by its number."""
        return {number: param.shape for number, (param, _) in enumerate(self._pairs())}

    def remove_hooks(self) -> None:
        """Add gradients up no more."""
        while self._hooks:
            self._hooks.pop().remove()

    def _load_master_weights(self, weights: Mapping[int, torch.Tensor]) -> None:
        pairs = list(self._pairs())
        with torch.no_grad():
            for number, (_, shard) in enumerate(pairs):
                shard.copy_(weights[number].to(shard.device))
            xm.mark_step()
            self._gather(pairs, self._get_sharding_scheme({}))
            xm.mark_step()

    def _pairs(self) -> Iterator[Pair]:
        """Each parameter, with this rank's part."""
        for whole, own in zip(self.param_groups, self.base_optimizer.param_groups):
            yield from zip(whole["params"], own["params"])

    def _pairs_with_gradient(self) -> list[Pair]:
        return [
            (param, shard)
            for param, shard in self._pairs()
            if param.grad is not None or hasattr(shard, "main_grad")
        ]

    def _shard_parameters(self) -> list[dict[str, Any]]:
        """The parameter groups with this rank's parts in the parameters' place."""
        devices = {param.device for group in self.param_groups for param in group["params"]}
        assert all(device.type == "xla" for device in devices), (
            f"The parameters are on {sorted(map(str, devices))}: move the model to the device first."
        )
        return [
            {**group, "params": [self._shard_of(param) for param in group["params"]]}
            for group in self.param_groups
        ]

    def _shard_of(self, param: nn.Parameter) -> nn.Parameter:
        rows = self._pad_to_world_size(param.detach().cpu(), self.local_world_size)
        own = rows.chunk(self.local_world_size)[self.local_rank].to(self.optimizer_dtype, copy=True)
        shard = nn.Parameter(own.to(param.device), requires_grad=param.requires_grad)
        if self.use_grad_acc_hook and param.requires_grad:
            self._hooks.append(param.register_post_accumulate_grad_hook(self._adder(shard)))
        return shard

    def _adder(self, shard: nn.Parameter) -> Callable[[torch.Tensor], None]:
        def add(param: torch.Tensor) -> None:
            if param.grad is None:
                return
            gradient, param.grad = param.grad.detach().to(self.optimizer_dtype), None
            if hasattr(shard, "main_grad"):
                gradient = shard.main_grad.add_(gradient)
            shard.main_grad = param.main_grad = gradient

        return add

    def _pad_to_world_size(self, tensor: torch.Tensor, world_size: int) -> torch.Tensor:
        """The tensor with rows of zeros behind it, so that its rows can be shared out."""
        missing = -tensor.size(0) % world_size
        if not missing:
            return tensor
        return nn.functional.pad(tensor, [0, 0] * (tensor.dim() - 1) + [0, missing])

    def _get_sharding_scheme(self, kwargs: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        whole = {
            "scale_factor": 1.0,
            "sharding_group": self.sharding_groups,
            "group_size": self.local_world_size,
        }
        scheme: Sequence[Mapping[str, Any]] = kwargs.get("sharding_scheme", [whole])
        return scheme

    def _reduce_gradients(self, **kwargs: Any) -> None:
        """Give this rank's parts their averaged gradients."""
        self._sync_param_groups(self.param_groups, self.base_optimizer.param_groups)
        pairs = self._pairs_with_gradient()
        gradients = [self._gradient(param, shard) for param, shard in pairs]
        for stage in self._get_sharding_scheme(kwargs):
            gradients = self._reduce_scatter(gradients, stage)
        for (_, shard), gradient in zip(pairs, gradients):
            shard.grad = gradient.to(self.optimizer_dtype)

    def _gradient(self, param: nn.Parameter, shard: nn.Parameter) -> torch.Tensor:
        gradient = getattr(shard, "main_grad", param.grad)
        padded = self._pad_to_world_size(gradient, self.local_world_size)
        return padded.to(self.optimizer_dtype) if self.higher_cc_precision else padded

    def _reduce_scatter(self, gradients: list[torch.Tensor], stage: Mapping[str, Any]) -> list[torch.Tensor]:
        size, groups = stage["group_size"], stage["sharding_group"]
        scale, megabytes = stage["scale_factor"] / size, self.bucket_cap_mb_reduce_scatter
        if megabytes:
            return xm.reduce_scatter_bucketized(
                xm.REDUCE_SUM, gradients, scale, 0, size, groups, bucket_cap_mb=megabytes
            )
        return [xm.reduce_scatter(xm.REDUCE_SUM, each, scale, 0, size, groups) for each in gradients]

    def _calc_grad_norm(self, norm_type: float = 2.0) -> torch.Tensor:
        """Norm of all gradients together; 2 is the only one that there is."""
        if norm_type != 2.0:
            raise RuntimeError(f"Only the norm of order 2 is there, not {norm_type}.")
        gradients = [shard.grad for _, shard in self._pairs() if shard.grad is not None]
        total = torch.stack([gradient.square().sum() for gradient in gradients]).sum()
        for groups in (self._sharding_groups, self._grad_norm_groups):
            if groups is not None:
                xm.all_reduce(xm.REDUCE_SUM, [total], groups=groups)
        return total.sqrt()

    def _clip_grad_norm(self, max_norm: float, norm_type: float = 2.0) -> None:
        self._grad_norm = self._calc_grad_norm(norm_type)
        factor = (max_norm / (self._grad_norm + 1e-6)).clamp(max=1.0)
        for _, shard in self._pairs():
            if shard.grad is not None:
                shard.grad.mul_(factor)

    def _update_parameters(self, **kwargs: Any) -> None:
        """Update this rank's parts, and give all ranks the whole parameters."""
        scheme = self._get_sharding_scheme(kwargs)
        kwargs.pop("sharding_scheme", None)
        self.base_optimizer.step(closure=None, **kwargs)
        self.base_optimizer.zero_grad(set_to_none=True)
        self.allgather_weights_and_update_full_parameter(scheme)
        self._sync_param_groups(self.base_optimizer.param_groups, self.param_groups)

    def allgather_weights_and_update_full_parameter(
        self, sharding_scheme: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Give all ranks the whole of each parameter that has a gradient."""
        self._gather(self._pairs_with_gradient(), sharding_scheme or self._get_sharding_scheme({}))

    def _gather(self, pairs: Sequence[Pair], scheme: Sequence[Mapping[str, Any]]) -> None:
        parts = [shard.detach().to(param.dtype) for param, shard in pairs]
        for stage in reversed(scheme):
            groups, megabytes = stage["sharding_group"], self.bucket_cap_mb_all_gather
            if megabytes:
                parts = xm.all_gather_bucketized(parts, groups=groups, bucket_cap_mb=megabytes)
            else:
                parts = [xm.all_gather(part, groups=groups) for part in parts]
        for (param, _), whole in zip(pairs, parts):
            param.detach().copy_(whole[: param.size(0)])

    @staticmethod
    def _sync_param_groups(source: Sequence[dict[str, Any]], target: Sequence[dict[str, Any]]) -> None:
        """Copy the options of parameter groups, such as a scheduler's learning rate."""
        for given, taken in zip(source, target):
            taken.update({name: value for name, value in given.items() if name != "params"})
