// Kernels that make, move and reshape memory; views cost no device time.
#include "alias.h"
#include "device.h"
#include "memory.h"
#include "operators.h"
#include "padding.h"
#include "recorder.h"
#include "skipped_values.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace neuron {
namespace {

using Sizes = c10::IntArrayRef;
const c10::DispatchKeySet kDeviceKeys(c10::DispatchKey::PrivateUse1);

bool on_device(const at::Tensor& tensor) {
  return tensor.device().type() == kNeuron;
}

at::Tensor host_view(const at::Tensor& tensor) {
  return on_device(tensor) ? host_alias(tensor) : tensor;
}

void check_strided(std::optional<c10::Layout> layout) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      c10::layout_or_default(layout) == c10::kStrided, "The neuron device has strided tensors only, not ",
      c10::layout_or_default(layout), ".");
}

at::Tensor empty_memory_format(
    Sizes size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
    std::optional<c10::Device> device, std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  static const auto& info = operator_info("aten::empty", "memory_format");
  check_strided(layout);
  const DeviceWork site(info);
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, device_allocator(), kDeviceKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    Sizes size, Sizes stride, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
    std::optional<c10::Device> device, std::optional<bool>) {
  static const auto& info = operator_info("aten::empty_strided", "");
  check_strided(layout);
  const DeviceWork site(info);
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, stride, device_allocator(), kDeviceKeys, c10::dtype_or_default(dtype));
}

// Elsewhere a tensor without memory that stands for zeros; here plain zeros, which every kernel can read.
at::Tensor efficient_zero_tensor(
    Sizes size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
    std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  return empty_memory_format(size, dtype, layout, device, pin_memory, std::nullopt).zero_();
}

void copy_bytes(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (!copies_move_values()) {
    return;
  }
  if (skips_values_of(from) || skips_values_of(to) || skips_values_from_host(from, to)) {
    if (!on_device(to)) {
      at::Tensor(to).zero_();
    }
    return;
  }
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::Tensor target = host_view(to);
  at::_ops::copy_::call(target, host_view(from), non_blocking);
  mark_blank(to.storage(), false);
}

// Both ends on the device: an operation like any other, recorded as the `copy_` that the user sees.
void copy_on_device(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  static const auto& info = operator_info("aten::copy_", "");
  DeviceWork work(info);
  if (timing_is_on()) {
    work.describe({to, from, non_blocking});
  }
  work.begin_compute(to.device().index());
  copy_bytes(from, to, non_blocking);
  if (work.waits()) {
    work.enqueue({to}, 1);
  } else {
    work.finish_operation();
  }
}

void copy_between(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  static const auto& info = operator_info("aten::copy_", "");
  const bool to_device = on_device(to);
  DeviceWork work(info);
  work.begin_compute((to_device ? to : from).device().index());
  copy_bytes(from, to, non_blocking);
  if (to_device && work.is_recorded()) {
    work.tell_padding(padding_of(from));
  }
  const auto& moved = to_device ? to : from;
  work.finish_copy(
      to_device ? RecordKind::kCopyToDevice : RecordKind::kCopyToHost, static_cast<int64_t>(moved.nbytes()),
      !non_blocking);
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (on_device(from) && on_device(to)) {
    copy_on_device(from, to, non_blocking);
  } else {
    copy_between(from, to, non_blocking);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::native::resize_(to, from.sizes(), std::nullopt);
  return copy_from(from, to, false);
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  static const auto& info = operator_info("aten::_local_scalar_dense", "");
  DeviceWork work(info);
  work.begin_compute(tensor.device().index());
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  auto value = at::native::_local_scalar_dense_cpu(host_alias(tensor));
  work.finish_copy(RecordKind::kCopyToHost, static_cast<int64_t>(tensor.itemsize()), true);
  return value;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage) {
  return at::native::set_(self, storage);
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage storage, int64_t offset, Sizes size, Sizes stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (stride.data() != nullptr) {
    impl->set_sizes_and_strides(size, stride, offset);
  } else {
    impl->set_storage_offset(offset);
    impl->set_sizes_contiguous(size);
  }
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return at::native::set_tensor_(self, source);
}

const at::Tensor& resize(const at::Tensor& self, Sizes size, std::optional<c10::MemoryFormat> format) {
  auto alias = host_alias(self);
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    at::native::resize_(alias, size, format);
  }
  follow_host_alias(self, alias);
  return self;
}

// `parameter.data = cpu_tensor.to("neuron")` keeps the Parameter object.
bool has_compatible_shallow_copy_type(const at::Tensor&, const at::Tensor&) {
  return true;
}

// Memory is never handed to another stream: there is nothing to remember.
void record_stream(at::Tensor&, c10::Stream) {}

at::Tensor cpu_alias_of_device(const at::Tensor& tensor) {
  return host_alias(tensor);
}

at::Tensor cpu_alias_of_cpu(const at::Tensor& tensor) {
  return tensor.alias();
}

at::Tensor adopt_host_tensor(const at::Tensor& tensor, int64_t device) {
  return adopt(tensor, static_cast<int>(device));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty_memory_format);
  library.impl("empty_strided", empty_strided);
  library.impl("_efficientzerotensor", efficient_zero_tensor);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", local_scalar);
  library.impl("set_.source_Storage", set_storage);
  library.impl("set_.source_Storage_storage_offset", set_storage_offset);
  library.impl("set_.source_Tensor", set_tensor);
  library.impl("resize_", resize);
  library.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
  library.impl("record_stream", record_stream);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("unfold", at::native::unfold);
}

// The generic fallbacks of lazy conjugation and negation resolve them by a clone, which copies, which
// arrives here again: without these two entries `conj().clone()` never ends.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY(neuron, library) {
  library.def("cpu_alias(Tensor(a) tensor) -> Tensor(a)");
  library.def("adopt(Tensor tensor, int device) -> Tensor");
}
TORCH_LIBRARY_IMPL(neuron, PrivateUse1, library) {
  library.impl("cpu_alias", cpu_alias_of_device);
}
TORCH_LIBRARY_IMPL(neuron, CPU, library) {
  library.impl("cpu_alias", cpu_alias_of_cpu);
  library.impl("adopt", adopt_host_tensor);
}

}  // namespace neuron
