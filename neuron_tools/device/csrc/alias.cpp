#include "alias.h"

#include "device.h"
#include "memory.h"
#include "skipped_values.h"

#include <algorithm>
#include <cstring>

namespace neuron {
namespace {

// Lazy conjugation and negation are part of a tensor's value and go with it to the other side.
const c10::DispatchKeySet kValueKeys({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});

constexpr size_t kKeptWithoutValues = size_t{1} << 20;  // small integers, which are computed

int device_of(const c10::StorageImpl* storage) {
  return std::max<int>(0, storage->device().index());
}

Buffer* buffer_or_make(c10::StorageImpl* storage) {
  if (Buffer* buffer = buffer_of(storage)) {
    return buffer;
  }
  storage->set_data_ptr_noswap(device_pointer(allocate_host_storage(storage->nbytes()), device_of(storage)));
  return buffer_of(storage);
}

// Storages made by at::from_blob or DLPack have memory but no Buffer: they are borrowed.
c10::Storage borrow_foreign(const c10::Storage& storage) {
  auto* keep = new c10::Storage(storage);
  auto release = [](void* context) { delete static_cast<c10::Storage*>(context); };
  c10::DataPtr pointer(const_cast<void*>(storage.data()), keep, release, c10::Device(c10::kCPU));
  return c10::Storage(c10::Storage::use_byte_size_t{}, storage.nbytes(), std::move(pointer), nullptr, false);
}

c10::Storage host_storage_of(const c10::Storage& storage) {
  auto* impl = storage.unsafeGetStorageImpl();
  if (buffer_of(impl) == nullptr && impl->data() != nullptr) {
    return borrow_foreign(storage);
  }
  return buffer_or_make(impl)->host;
}

at::Tensor make_like(const c10::TensorImpl& model, c10::Storage storage, c10::DispatchKey key) {
  const auto keys = c10::DispatchKeySet(key) | (model.key_set() & kValueKeys);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, model.dtype());
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(model.sizes(), model.strides(), model.storage_offset());
  if (model.is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  return tensor;
}

bool same_memory(const c10::StorageImpl* device_storage, const c10::Storage& host_storage) {
  const Buffer* buffer = buffer_of(device_storage);
  return buffer != nullptr && buffer->host.unsafeGetStorageImpl() == host_storage.unsafeGetStorageImpl() &&
      device_storage->nbytes() == host_storage.nbytes() && device_storage->data() == host_storage.data();
}

bool same_geometry(const c10::TensorImpl& a, const c10::TensorImpl& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset();
}

}  // namespace

at::Tensor host_alias(const at::Tensor& device_tensor) {
  const auto& impl = *device_tensor.unsafeGetTensorImpl();
  return make_like(impl, host_storage_of(impl.storage()), c10::DispatchKey::CPU);
}

at::Tensor on_device_storage(const at::Tensor& host_tensor, c10::Storage device_storage) {
  return make_like(*host_tensor.unsafeGetTensorImpl(), std::move(device_storage), c10::DispatchKey::PrivateUse1);
}

c10::Storage adopt_storage(const c10::Storage& host_storage, int device) {
  return c10::Storage(
      c10::Storage::use_byte_size_t{}, host_storage.nbytes(), device_pointer(host_storage, device),
      device_allocator(), true);
}

at::Tensor adopt(const at::Tensor& host_tensor, int device) {
  return on_device_storage(host_tensor, adopt_storage(host_tensor.storage(), device));
}

void follow_host_alias(const at::Tensor& device_tensor, const at::Tensor& host_tensor) {
  auto& to = *device_tensor.unsafeGetTensorImpl();
  const auto& from = *host_tensor.unsafeGetTensorImpl();
  auto* storage = to.storage().unsafeGetStorageImpl();
  if (!same_memory(storage, from.storage())) {
    const c10::Storage host = from.storage();
    storage->set_data_ptr_noswap(device_pointer(host, device_of(storage)));
    storage->set_nbytes(host.nbytes());
  }
  if (!same_geometry(to, from)) {
    to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
  }
}

void resize_device_storage(const c10::Storage& storage, size_t bytes) {
  auto* impl = storage.unsafeGetStorageImpl();
  const Buffer* buffer = buffer_or_make(impl);
  auto host = allocate_host_storage(bytes);
  const size_t kept = std::min(bytes, impl->nbytes());
  if (kept > 0 && !(values_are_skipped() && kept > kKeptWithoutValues)) {
    std::memcpy(host.mutable_data(), buffer->host.data(), kept);
  }
  impl->set_data_ptr_noswap(device_pointer(std::move(host), buffer->device));
  impl->set_nbytes(bytes);
}

}  // namespace neuron
