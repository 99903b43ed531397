#include "operators.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace neuron {
namespace {

// Their results' shapes depend on values, so the host waits for the device.
constexpr std::array<std::string_view, 14> kValueDependent = {
    "aten::nonzero",       "aten::masked_select",      "aten::_unique",       "aten::_unique2",
    "aten::unique_dim",    "aten::unique_consecutive", "aten::unique_dim_consecutive",
    "aten::equal",         "aten::is_nonzero",         "aten::allclose",
    "aten::nonzero_static", "aten::_linalg_check_errors", "aten::_ctc_loss",  "aten::linalg_lstsq",
};

std::mutex operator_mutex;

bool is_write(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

ArgumentKind kind_of(const c10::Argument& argument) {
  auto type = argument.real_type();
  if (type->kind() == c10::TypeKind::OptionalType) {
    type = type->expectRef<c10::OptionalType>().getElementType();
  }
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return ArgumentKind::kDtype;
    case c10::TypeKind::LayoutType:
      return ArgumentKind::kLayout;
    case c10::TypeKind::MemoryFormatType:
      return ArgumentKind::kMemoryFormat;
    default:
      return ArgumentKind::kValue;
  }
}

// Indices by place are of 32 or 64 bits; PyTorch takes bytes for truth values.
bool is_mask(const std::optional<at::Tensor>& index) {
  return index.has_value() && index->defined() &&
      (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte);
}

bool has_mask(const c10::IValue& value) {
  if (!value.isOptionalTensorList()) {
    return false;
  }
  const auto indices = value.toOptionalTensorVector();
  return std::any_of(indices.begin(), indices.end(), is_mask);
}

}  // namespace

OperatorInfo::OperatorInfo(const c10::OperatorHandle& from) : handle(from) {
  const auto& schema = handle.schema();
  name = schema.name();
  needs_values = std::find(kValueDependent.begin(), kValueDependent.end(), name) != kValueDependent.end();
  takes_host_indices = name.find("index") != std::string::npos;
  takes_masks = name == "aten::index";
  if (!schema.overload_name().empty()) {
    name += "." + schema.overload_name();
  }
  hash = std::hash<std::string>()(name);
  argument_count = static_cast<int>(schema.arguments().size());
  return_count = static_cast<int>(schema.returns().size());
  for (int i = 0; i < argument_count; ++i) {
    const auto& argument = schema.arguments()[i];
    argument_kinds.push_back(kind_of(argument));
    if (is_write(argument) && i < 64) {
      written_arguments |= 1ull << i;
    }
    if (argument.type()->str().find("Generator") != std::string::npos) {
      generator_argument = i;
    }
  }
  changes_geometry = handle.hasTag(at::Tag::inplace_view);
  only_writes = written_arguments != 0 && !changes_geometry &&
      std::none_of(schema.arguments().begin(), schema.arguments().end(), [](const auto& one) { return one.is_out(); }) &&
      std::all_of(schema.returns().begin(), schema.returns().end(), is_write);
  is_view = std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& value) {
    return value.alias_info() != nullptr && !value.alias_info()->isWrite();
  });
}

bool call_needs_values(const OperatorInfo& info, const Stack& stack) {
  return info.needs_values ||
      (info.takes_masks && std::any_of(stack.end() - info.argument_count, stack.end(), has_mask));
}

const OperatorInfo& operator_info(const c10::OperatorHandle& handle) {
  static auto* all = new std::unordered_map<const void*, const OperatorInfo*>;
  thread_local std::unordered_map<const void*, const OperatorInfo*> seen;
  const void* key = &handle.schema();
  auto& entry = seen[key];
  if (entry == nullptr) {
    std::lock_guard<std::mutex> lock(operator_mutex);
    auto& shared = (*all)[key];
    if (shared == nullptr) {
      shared = new OperatorInfo(handle);
    }
    entry = shared;
  }
  return *entry;
}

const OperatorInfo& operator_info(const char* name, const char* overload) {
  return operator_info(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

}  // namespace neuron
