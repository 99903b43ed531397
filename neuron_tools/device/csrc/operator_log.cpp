#include "operator_log.h"

#include "device.h"

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace neuron {
namespace {

std::mutex operator_mutex;
std::set<std::string> operator_names;
std::optional<at::CallbackHandle> operator_watcher;

bool touches_device(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() && tensor.device().type() == kNeuron;
  }
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined() && tensor.device().type() == kNeuron) {
        return true;
      }
    }
  }
  return false;
}

bool touches_device(c10::ArrayRef<const c10::IValue> values) {
  for (const c10::IValue& value : values) {
    if (touches_device(value)) {
      return true;
    }
  }
  return false;
}

void keep_operator(const at::RecordFunction& call) {
  std::lock_guard<std::mutex> lock(operator_mutex);
  operator_names.insert(call.name());
  if (const auto& full_name = call.operator_name(); full_name && !full_name->overload_name.empty()) {
    operator_names.insert(full_name->name + "." + full_name->overload_name);
  }
}

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction& call) {
  if (touches_device(call.inputs())) {
    keep_operator(call);
  }
  return nullptr;
}

// What makes tensors has them among its results alone.
void operator_ends(const at::RecordFunction& call, at::ObserverContext*) {
  for (const c10::IValue& result : call.outputs()) {
    if (touches_device(result)) {
      keep_operator(call);
      return;
    }
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
