#include "chosen_places.h"

#include "alias.h"
#include "memory.h"
#include "skipped_values.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/arange.h>
#include <ATen/WrapDimUtils.h>

namespace neuron {
namespace {

// Which result is places: the one that the schema calls so, or the only one of these.
int result_of_places(const OperatorInfo& info) {
  const auto& returns = info.handle.schema().returns();
  for (size_t number = 0; number < returns.size(); ++number) {
    if (returns[number].name() == "indices") {
      return static_cast<int>(number);
    }
  }
  const std::string& name = info.handle.schema().name();
  const bool chooses = name == "aten::argmax" || name == "aten::argmin" || name == "aten::multinomial";
  return chooses ? 0 : -1;
}

// What the call names `dim`: the last dimension where the operator has no such argument.
std::optional<int64_t> dimension_of(const OperatorInfo& info, const Stack& stack) {
  const auto first = stack.end() - info.argument_count;
  for (int argument = 0; argument < info.argument_count; ++argument) {
    if (info.handle.schema().arguments()[argument].name() == "dim") {
      return first[argument].toOptional<int64_t>();
    }
  }
  return -1;
}

// Row by row: `count` places of `extent`, going on where the row before ended.
at::Tensor places_in_turn(int64_t rows, int64_t count, int64_t extent) {
  const at::Tensor in_turn = at::arange(rows * count, at::TensorOptions().dtype(at::kLong).device(at::kCPU));
  return in_turn.remainder(extent).view({rows, count});
}

}  // namespace

ChosenPlaces::ChosenPlaces(const OperatorInfo& info, const Stack& stack) {
  const int result = result_of_places(info);
  const c10::IValue& input = *(stack.end() - info.argument_count);
  if (result < 0 || !input.isTensor() || input.toTensor().dim() == 0) {
    return;
  }
  result_ = result;
  input_ = input.toTensor();
  dimension_ = dimension_of(info, stack);
}

void ChosenPlaces::fill(const Stack& stack, int return_count) const {
  const at::Tensor& places = (stack.end() - return_count)[result_].toTensor();
  const int64_t dimension = dimension_ ? at::maybe_wrap_dim(*dimension_, input_.dim()) : 0;
  const int64_t extent = dimension_ ? input_.size(dimension) : input_.numel();
  if (places.scalar_type() != at::kLong || places.numel() == 0 || extent == 0 || skips_values_of(places)) {
    return;
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const bool keeps = dimension_ && places.dim() == input_.dim();
  const int64_t count = keeps ? places.size(dimension) : 1;
  at::Tensor target = host_alias(places);
  target = keeps ? target.movedim(dimension, -1) : target;
  target.copy_(places_in_turn(places.numel() / count, count, extent).view(target.sizes()));
  mark_blank(places.storage(), false);
}

}  // namespace neuron
