#include "skipped_values.h"

#include "alias.h"
#include "chosen_places.h"
#include "device.h"
#include "memory.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/Exceptions.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace neuron {
namespace {

constexpr int64_t kComputedIntegers = int64_t{1} << 20;
constexpr int64_t kComputedPlaces = int64_t{1} << 26;  // a router's map has a column for each expert
constexpr size_t kReservedBytes = size_t{1} << 16;  // below it the allocator's memory is cheaper than pages

// Calls a function with each tensor in a value.
template <class Function>
void for_each_tensor(const c10::IValue& value, Function function) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      function(value.toTensor());
    }
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined()) {
        function(tensor);
      }
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor.has_value() && tensor->defined()) {
        function(*tensor);
      }
    }
  }
}

// How many integers of a type are computed. Places, masks and counts are wide or boolean; bytes hold quantized values,
// which decide nothing and are what most of a model's memory may be.
int64_t computed_integers(c10::ScalarType type) {
  const bool is_wide = type == c10::kLong || type == c10::kInt || type == c10::kBool;
  return is_wide ? kComputedPlaces : kComputedIntegers;
}

// Whether the tensors in the arguments that end `stack` are small, and broadcast together large: a mask of places is so,
// of rows against columns.
bool broadcasts_to_large(const OperatorInfo& info, const Stack& stack) {
  c10::SmallVector<int64_t, 8> sizes;  // innermost first
  int64_t largest = 0;
  for (auto value = stack.end() - info.argument_count; value != stack.end(); ++value) {
    for_each_tensor(*value, [&](const at::Tensor& tensor) {
      if (!is_on_device(tensor)) {
        return;
      }
      largest = std::max(largest, tensor.numel());
      const auto rank = static_cast<size_t>(tensor.dim());
      sizes.resize(std::max(sizes.size(), rank), 1);
      for (size_t dimension = 0; dimension < rank; ++dimension) {
        const int64_t size = tensor.size(static_cast<int64_t>(rank - 1 - dimension));
        sizes[dimension] = sizes[dimension] == 1 ? size : sizes[dimension];
      }
    });
  }
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    elements *= size;
  }
  return elements > std::max(largest, kComputedIntegers);
}

bool is_blank(const at::Tensor& tensor) {
  const auto* buffer = buffer_of(tensor.storage().unsafeGetStorageImpl());
  return buffer != nullptr && buffer->is_blank.load(std::memory_order_relaxed);
}

// Whether all large tensors that the arguments which end `stack` read are results whose values were left out: masks of
// rows and columns that are joined or turned round.
bool reads_only_blanks(const OperatorInfo& info, const Stack& stack) {
  bool any = false;
  bool all = true;
  for (int argument = 0; argument < info.argument_count; ++argument) {
    const bool is_written = argument < 64 && (info.written_arguments >> argument & 1) != 0;
    for_each_tensor(*(stack.end() - info.argument_count + argument), [&](const at::Tensor& tensor) {
      if (is_on_device(tensor) && tensor.numel() > kComputedIntegers) {
        any = true;
        all &= !is_written && is_blank(tensor);
      }
    });
  }
  return any && all;
}

struct Reservation {
  void* address;
  size_t bytes;
};

void release(void* context) {
  auto* reservation = static_cast<Reservation*>(context);
  ::munmap(reservation->address, reservation->bytes);
  delete reservation;
}

c10::Storage meta_storage(size_t bytes) {
  return c10::Storage(
      c10::Storage::use_byte_size_t{}, bytes, c10::DataPtr(nullptr, c10::Device(c10::kMeta)),
      c10::GetAllocator(c10::kMeta), true);
}

// A call's tensors without memory. What shares a storage on the device shares one here, so that results which are
// views of arguments are recognised.
class MetaTensors {
 public:
  explicit MetaTensors(int device) : device_(device) {}

  c10::IValue to_meta(const c10::IValue& value) {
    if (value.isTensor()) {
      return value.toTensor().defined() ? c10::IValue(tensor_to_meta(value.toTensor())) : value;
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> converted;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        converted.push_back(tensor.defined() ? tensor_to_meta(tensor) : tensor);
      }
      return converted;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> converted;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        const bool there = tensor.has_value() && tensor->defined();
        converted.push_back(there ? std::optional(tensor_to_meta(*tensor)) : tensor);
      }
      return converted;
    }
    if (value.isDevice() && value.toDevice().type() == kNeuron) {
      return c10::Device(c10::kMeta);
    }
    if (value.isGenerator()) {
      return c10::IValue();
    }
    return value;
  }

  c10::IValue to_device(const c10::IValue& value) {
    if (value.isTensor()) {
      return tensor_to_device(value.toTensor());
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> converted;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        converted.push_back(tensor_to_device(tensor));
      }
      return converted;
    }
    return value;
  }

  // Outputs that the kernel gave other sizes.
  void follow_writes() const {
    for (const auto& pair : tensors_) {
      auto& to = *pair.first.unsafeGetTensorImpl();
      const auto& from = *pair.second.unsafeGetTensorImpl();
      if (from.storage().nbytes() > to.storage().nbytes()) {
        resize_device_storage(to.storage(), from.storage().nbytes());
      }
      if (to.sizes() != from.sizes() || to.strides() != from.strides()) {
        to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
      }
    }
  }

 private:
  at::Tensor tensor_to_meta(const at::Tensor& tensor) {
    if (!is_on_device(tensor)) {
      return tensor;
    }
    for (const auto& pair : tensors_) {
      if (pair.first.unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl()) {
        return pair.second;
      }
    }
    const auto& impl = *tensor.unsafeGetTensorImpl();
    auto meta = at::detail::make_tensor<c10::TensorImpl>(
        storage_to_meta(impl.storage()), c10::DispatchKeySet(c10::DispatchKey::Meta), impl.dtype());
    meta.unsafeGetTensorImpl()->set_sizes_and_strides(impl.sizes(), impl.strides(), impl.storage_offset());
    if (impl.is_wrapped_number()) {
      meta.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    tensors_.emplace_back(tensor, meta);
    return meta;
  }

  c10::Storage storage_to_meta(const c10::Storage& storage) {
    for (const auto& pair : storages_) {
      if (pair.first.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) {
        return pair.second;
      }
    }
    storages_.emplace_back(storage, meta_storage(storage.nbytes()));
    return storages_.back().second;
  }

  at::Tensor tensor_to_device(const at::Tensor& tensor) {
    if (!tensor.defined() || is_on_device(tensor)) {
      return tensor;
    }
    if (tensor.device().type() == c10::kCPU) {
      return adopt(tensor, device_);
    }
    for (const auto& pair : tensors_) {
      if (pair.second.unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl()) {
        return pair.first;
      }
    }
    return on_device_storage(tensor, storage_to_device(tensor.storage()));
  }

  c10::Storage storage_to_device(const c10::Storage& storage) {
    for (const auto& pair : storages_) {
      if (pair.second.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) {
        return pair.first;
      }
    }
    storages_.emplace_back(adopt_storage(allocate_host_storage(storage.nbytes()), device_), storage);
    mark_blank(storages_.back().first, true);
    return storages_.back().first;
  }

  int device_;
  c10::SmallVector<std::pair<at::Tensor, at::Tensor>, 8> tensors_;      // on the device, without memory
  c10::SmallVector<std::pair<c10::Storage, c10::Storage>, 8> storages_;  // the same
};

void drop_arguments(const OperatorInfo& info, Stack* stack) {
  stack->erase(stack->end() - info.argument_count, stack->end());
}

// An operator that only writes its arguments leaves everything as it is.
void keep_written(const OperatorInfo& info, Stack* stack) {
  std::vector<c10::IValue> written;
  const size_t base = stack->size() - info.argument_count;
  for (int i = 0; i < info.argument_count && static_cast<int>(written.size()) < info.return_count; ++i) {
    if (i < 64 && (info.written_arguments >> i & 1) != 0) {
      written.push_back((*stack)[base + i]);
    }
  }
  drop_arguments(info, stack);
  stack->insert(stack->end(), written.begin(), written.end());
}

// Nothing makes the values of tensors that a call was to fill.
void mark_outputs_blank(const OperatorInfo& info, const Stack& stack) {
  for (int argument = 0; argument < info.argument_count; ++argument) {
    if (info.handle.schema().arguments()[argument].is_out()) {
      for_each_tensor(*(stack.end() - info.argument_count + argument), [](const at::Tensor& tensor) {
        if (is_on_device(tensor) && tensor.nbytes() == tensor.storage().nbytes()) {
          mark_blank(tensor.storage(), true);
        }
      });
    }
  }
}

// Not a request to end, as an interrupt is.
bool is_failure(const python_error& error) {
  const pybind11::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(error.type, PyExc_Exception) != 0;
}

// Whether the arguments that end `stack` are not masks, places and counts alone.
bool reads_values(const OperatorInfo& info, const Stack& stack) {
  bool any = false;
  for (auto value = stack.end() - info.argument_count; value != stack.end(); ++value) {
    for_each_tensor(*value, [&](const at::Tensor& tensor) {
      any |= is_on_device(tensor) && !at::isIntegralType(tensor.scalar_type(), true);
    });
  }
  return any;
}

// Whether a call compares values, which read as zeros: programs decide by the outcome, whether an update is finite say,
// so it must be what zeros give. `results` are the call's, without memory.
bool compares(const OperatorInfo& info, const Stack& stack, const Stack& results) {
  return info.handle.hasTag(at::Tag::pointwise) && reads_values(info, stack) && !broadcasts_to_large(info, stack) &&
      std::all_of(results.begin(), results.end(), [](const c10::IValue& result) {
        return result.isTensor() && result.toTensor().scalar_type() == c10::kBool &&
            result.toTensor().numel() <= kComputedPlaces;
      });
}

// False where no kernel works out the shapes, in C++ or, as many are written, in Python.
bool run_meta_kernel(const OperatorInfo& info, Stack* shapes) {
  try {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    info.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), shapes);
  } catch (const c10::Error&) {
    return false;
  } catch (const python_error& error) {
    if (!is_failure(error)) {
      throw;
    }
    return false;
  }
  return true;
}

}  // namespace

bool values_are_skipped() {
  static const bool skipped = [] {
    const char* text = std::getenv("NEURON_TOOLS_VALUES");
    return text != nullptr && std::string_view(text) == "skip";
  }();
  return skipped;
}

bool skips_values_of(const at::Tensor& tensor) {
  return values_are_skipped() && is_on_device(tensor) &&
      (!at::isIntegralType(tensor.scalar_type(), true) || tensor.numel() > computed_integers(tensor.scalar_type()));
}

bool skips_values_from_host(const at::Tensor& from, const at::Tensor& to) {
  return values_are_skipped() && !is_on_device(from) && is_on_device(to) && to.scalar_type() == c10::kInt &&
      to.numel() > kComputedIntegers;
}

bool may_skip(const OperatorInfo& info, const Stack& stack) {
  if (!values_are_skipped() || info.is_view || info.changes_geometry || call_needs_values(info, stack)) {
    return false;
  }
  bool any = false;
  for (auto value = stack.end() - info.argument_count; value != stack.end(); ++value) {
    for_each_tensor(*value, [&](const at::Tensor& tensor) { any |= skips_values_of(tensor); });
  }
  return any ||
      (info.handle.hasTag(at::Tag::pointwise) &&
       (broadcasts_to_large(info, stack) || reads_only_blanks(info, stack)));
}

int device_of_arguments(const OperatorInfo& info, const Stack& stack) {
  int device = -1;
  for (auto value = stack.end() - info.argument_count; value != stack.end() && device < 0; ++value) {
    for_each_tensor(*value, [&](const at::Tensor& tensor) {
      device = device < 0 && is_on_device(tensor) ? tensor.device().index() : device;
    });
  }
  return device < 0 ? current_device() : device;
}

// Which results a call of a backward operator wants: all, but where a mask among its arguments says otherwise. Kernels
// leave the others undefined; some that work out shapes make them nevertheless.
static std::vector<bool> wanted_results(const OperatorInfo& info, const Stack& stack) {
  const auto first = stack.end() - info.argument_count;
  for (int argument = 0; argument < info.argument_count; ++argument) {
    const std::string& name = info.handle.schema().arguments()[argument].name();
    if (name == "output_mask" || name == "grad_input_mask") {
      const auto mask = first[argument].toBoolList();
      return {mask.begin(), mask.end()};
    }
  }
  return std::vector<bool>(info.return_count, true);
}

bool skip_operation(const OperatorInfo& info, Stack* stack) {
  if (info.only_writes) {
    keep_written(info, stack);
    return true;
  }
  MetaTensors tensors(device_of_arguments(info, *stack));
  Stack shapes;
  for (auto value = stack->end() - info.argument_count; value != stack->end(); ++value) {
    shapes.push_back(tensors.to_meta(*value));
  }
  if (!run_meta_kernel(info, &shapes) || compares(info, *stack, shapes)) {
    return false;
  }
  const auto wanted = wanted_results(info, *stack);
  const ChosenPlaces places(info, *stack);
  tensors.follow_writes();
  mark_outputs_blank(info, *stack);
  drop_arguments(info, stack);
  for (size_t number = 0; number < shapes.size(); ++number) {
    const bool is_unwanted = shapes[number].isTensor() && !wanted.at(number);
    stack->push_back(is_unwanted ? c10::IValue(at::Tensor()) : tensors.to_device(shapes[number]));
  }
  if (places.any()) {
    places.fill(*stack, info.return_count);
  }
  return true;
}

c10::Storage reserve_host_storage(size_t bytes) {
  auto* host = c10::GetAllocator(c10::kCPU);
  if (bytes < kReservedBytes) {
    auto memory = host->allocate(bytes);
    if (bytes > 0) {
      std::memset(memory.get(), 0, bytes);
    }
    return c10::Storage(c10::Storage::use_byte_size_t{}, bytes, std::move(memory), host, true);
  }
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  TORCH_CHECK(address != MAP_FAILED, "No address space is left for ", bytes, " bytes of device memory.");
  c10::DataPtr memory(address, new Reservation{address, bytes}, &release, c10::Device(c10::kCPU));
  return c10::Storage(c10::Storage::use_byte_size_t{}, bytes, std::move(memory), host, true);
}

}  // namespace neuron
