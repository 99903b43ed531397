#include "operator_log.h"

#include "device.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace neuron {
namespace {

std::mutex operator_mutex;
std::set<std::string> operator_names;
std::optional<at::CallbackHandle> operator_watcher;

// Storages on the device of the tensors among values.
using DeviceStorages = std::vector<const c10::StorageImpl*>;

void add_device_storage(const at::Tensor& tensor, DeviceStorages& storages) {
  if (tensor.defined() && tensor.device().type() == kNeuron && tensor.has_storage()) {
    storages.push_back(tensor.storage().unsafeGetStorageImpl());
  }
}

void add_device_storages(const c10::IValue& value, DeviceStorages& storages) {
  if (value.isTensor()) {
    add_device_storage(value.toTensor(), storages);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      add_device_storage(tensor, storages);
    }
  }
}

struct LoggedCall : at::ObserverContext {
  DeviceStorages given;
};

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction& function) {
  auto call = std::make_unique<LoggedCall>();
  for (const c10::IValue& value : function.inputs()) {
    add_device_storages(value, call->given);
  }
  return call;
}

bool writes_arguments(const at::RecordFunction& function) {
  const auto& schema = function.operator_schema();
  return schema && schema->is_mutable();
}

// Views are not work: what they give lies where what they were given does.
bool operator_worked(const at::RecordFunction& function, const DeviceStorages& given) {
  DeviceStorages made;
  for (const c10::IValue& result : function.outputs()) {
    add_device_storages(result, made);
  }
  if (made.empty() || writes_arguments(function)) {
    return !made.empty() || !given.empty();
  }
  return std::any_of(made.begin(), made.end(), [&](const c10::StorageImpl* storage) {
    return std::find(given.begin(), given.end(), storage) == given.end();
  });
}

void operator_ends(const at::RecordFunction& function, at::ObserverContext* call) {
  if (call == nullptr || !operator_worked(function, static_cast<LoggedCall*>(call)->given)) {
    return;
  }
  std::lock_guard<std::mutex> lock(operator_mutex);
  operator_names.insert(function.name());
  if (const auto& full_name = function.operator_name(); full_name && !full_name->overload_name.empty()) {
    operator_names.insert(full_name->name + "." + full_name->overload_name);
  }
}

}  // namespace

void clear_operator_log() {
  std::lock_guard<std::mutex> lock(operator_mutex);
  operator_names.clear();
  if (!operator_watcher) {
    operator_watcher = at::addGlobalCallback(at::RecordFunctionCallback(&operator_begins, &operator_ends)
                                        .needsInputs(true)
                                        .needsOutputs(true)
                                        .scopes({at::RecordScope::FUNCTION}));
  }
}

std::vector<std::string> logged_operators() {
  std::lock_guard<std::mutex> lock(operator_mutex);
  return {operator_names.begin(), operator_names.end()};
}

}  // namespace neuron
