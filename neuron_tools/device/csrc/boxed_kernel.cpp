#include "boxed_kernel.h"

#include "alias.h"
#include "device.h"
#include "generator.h"
#include "memory.h"
#include "recorder.h"
#include "registration.h"
#include "skipped_values.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <utility>

namespace neuron {
namespace {

struct AliasPair {
  at::Tensor device_tensor;
  at::Tensor host_tensor;
  int argument;
};

// The arguments of one call, turned into what the CPU kernel can read.
class HostArguments {
 public:
  HostArguments(const OperatorInfo& info, Stack* stack) : info_(info) {
    const size_t base = stack->size() - info.argument_count;
    for (int i = 0; i < info.argument_count; ++i) {
      convert((*stack)[base + i], i);
    }
    check_one_device();
    if (device_ < 0) {
      device_ = current_device();
    }
    if (info.generator_argument >= 0) {
      auto& generator = (*stack)[base + info.generator_argument];
      if (generator.isNone()) {
        generator = draw_host_generator(default_generator(device_));
      }
    }
  }

  int device() const {
    return device_;
  }

  // Written arguments may have been resized or given other memory.
  void follow_writes() const {
    if (info_.written_arguments == 0) {
      return;
    }
    for (const auto& pair : pairs_) {
      if (pair.argument < 64 && (info_.written_arguments >> pair.argument & 1) != 0) {
        follow_host_alias(pair.device_tensor, pair.host_tensor);
        mark_blank(pair.device_tensor.storage(), false);
      }
    }
  }

  void convert_results(Stack* stack) {
    const size_t base = stack->size() - info_.return_count;
    for (int i = 0; i < info_.return_count; ++i) {
      c10::IValue& value = (*stack)[base + i];
      if (value.isTensor()) {
        value = to_device(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> converted;
        for (const at::Tensor& tensor : value.toTensorVector()) {
          converted.push_back(to_device(tensor));
        }
        value = std::move(converted);
      }
    }
  }

 private:
  void convert(c10::IValue& value, int argument) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (!tensor.defined()) {
        return;
      }
      if (is_on_device(tensor)) {
        value = to_host(at::Tensor(tensor), argument);
      } else {
        has_host_tensor_ |= tensor.dim() > 0;
      }
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> converted;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        converted.push_back(to_host(tensor, argument));
      }
      value = std::move(converted);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> converted;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        converted.push_back(tensor.has_value() ? std::optional(to_host(*tensor, argument)) : std::nullopt);
      }
      value = std::move(converted);
    } else if (value.isGenerator()) {
      const auto generator = value.toGenerator();
      if (generator.defined() && generator.device().type() == kNeuron) {
        value = draw_host_generator(generator);
      }
    } else if (value.isDevice() && value.toDevice().type() == kNeuron) {
      if (device_ < 0) {
        device_ = value.toDevice().index();
      }
      value = c10::Device(c10::kCPU);
    }
  }

  at::Tensor to_host(const at::Tensor& tensor, int argument) {
    if (!tensor.defined()) {
      return tensor;
    }
    if (!is_on_device(tensor)) {
      has_host_tensor_ |= tensor.dim() > 0;
      return tensor;
    }
    const int index = tensor.device().index();
    TORCH_CHECK(
        pairs_.empty() || device_ == index,
        "Expected all tensors to be on the same device, but found at least two devices, neuron:", device_,
        " and neuron:", index, "! (when running ", info_.name, ")");
    for (const auto& pair : pairs_) {
      if (pair.device_tensor.unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl()) {
        return pair.host_tensor;
      }
    }
    TORCH_CHECK_NOT_IMPLEMENTED(
        tensor.layout() == c10::kStrided, "The neuron device has strided tensors only; ", info_.name, " got a ",
        tensor.layout(), " one. Call .to_dense() first.");
    device_ = index;
    pairs_.push_back({tensor, host_alias(tensor), argument});
    return pairs_.back().host_tensor;
  }

  void check_one_device() const {
    TORCH_CHECK(
        !has_host_tensor_ || pairs_.empty() || info_.takes_host_indices,
        "Expected all tensors to be on the same device, but found at least two devices, neuron:", device_,
        " and cpu! (when running ", info_.name, ")");
  }

  at::Tensor to_device(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != c10::kCPU) {
      return tensor;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(
        tensor.layout() == c10::kStrided, "The neuron device has strided tensors only; ", info_.name, " makes a ",
        tensor.layout(), " one. Compute it on the CPU.");
    const auto* storage = tensor.storage().unsafeGetStorageImpl();
    for (const auto& pair : pairs_) {
      if (pair.host_tensor.unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl()) {
        return pair.device_tensor;
      }
      if (pair.host_tensor.storage().unsafeGetStorageImpl() == storage) {
        return on_device_storage(tensor, pair.device_tensor.storage());
      }
    }
    for (const auto& [host_storage, device_storage] : adopted_) {
      if (host_storage == storage) {
        return on_device_storage(tensor, device_storage);
      }
    }
    adopted_.emplace_back(storage, adopt_storage(tensor.storage(), device_));
    return on_device_storage(tensor, adopted_.back().second);
  }

  const OperatorInfo& info_;
  c10::SmallVector<AliasPair, 8> pairs_;
  c10::SmallVector<std::pair<const c10::StorageImpl*, c10::Storage>, 4> adopted_;
  int device_ = -1;
  bool has_host_tensor_ = false;
};

}  // namespace

void call_cpu_kernel(const OperatorInfo& info, Stack* stack, int) {
  info.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

// Results of the right shapes in place of values; false where they must be computed.
static bool run_without_values(const OperatorInfo& info, Stack* stack, DeviceWork* work) {
  if (!may_skip(info, *stack)) {
    return false;
  }
  work->begin_compute(device_of_arguments(info, *stack));
  if (!skip_operation(info, stack)) {
    return false;
  }
  if (work->waits()) {
    work->enqueue(*stack, info.return_count);
  } else {
    work->finish_operation();
  }
  return true;
}

void run_on_host(const OperatorInfo& info, Stack* stack, HostFunction compute) {
  DeviceWork work(info);
  work.describe(*stack);
  if (run_without_values(info, stack, &work)) {
    return;
  }
  HostArguments arguments(info, stack);
  work.begin_compute(arguments.device());
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    compute(info, stack, arguments.device());
  }
  const bool waits = work.waits();
  if (!waits) {
    work.finish_operation();
  }
  arguments.follow_writes();
  arguments.convert_results(stack);
  if (waits) {
    work.enqueue(*stack, info.return_count);
  }
}

// `_foreach_*` operators have no CPU kernel of their own: without one of ours each would fall apart into an
// operator, and so a device execution, per tensor. Copies may cross devices, so they are left to fall apart.
static bool is_multi_tensor(const std::string& name) {
  return name.rfind("aten::_foreach_", 0) == 0 && name.rfind("aten::_foreach_copy", 0) != 0;
}

int register_boxed_kernels() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  int count = 0;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) {
      continue;
    }
    const auto handle = dispatcher.findOp(name);
    if (!handle || !handle->hasSchema() || handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1) ||
        !(handle->hasKernelForDispatchKey(c10::DispatchKey::CPU) || is_multi_tensor(name.name))) {
      continue;
    }
    std::string short_name = name.name.substr(6);
    if (!name.overload_name.empty()) {
      short_name += "." + name.overload_name;
    }
    library->impl(short_name.c_str(), torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&call_cpu_kernel>>());
    ++count;
  }
  return count;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&call_cpu_kernel>>());
}

}  // namespace neuron
