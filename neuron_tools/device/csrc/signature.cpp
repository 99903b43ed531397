#include <Python.h>

#include "signature.h"

#include "alias.h"
#include "device.h"
#include "operators.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <cmath>
#include <functional>
#include <sstream>

namespace neuron {
namespace {

// Storages in order of first appearance: two tensors with one number share memory.
class StorageNumbers {
 public:
  uint64_t number(const at::Tensor& tensor) {
    if (!tensor.has_storage()) {
      return ~0ull;
    }
    const auto* storage = tensor.storage().unsafeGetStorageImpl();
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i] == storage) {
        return i;
      }
    }
    seen_.push_back(storage);
    return seen_.size() - 1;
  }

 private:
  c10::SmallVector<const c10::StorageImpl*, 8> seen_;
};

bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// A learning rate that changes in each step is not another signature: an ordinary number stands for all of its sign
// on its side of 1/2 and 1. Special ones (whole and half numbers up to 16, infinities) stand for themselves.
// The front ends' twin is `neuron_tools/frontends/torch_eager/canonical.py`.
double standing_for(double number) {
  constexpr double kLargestSpecial = 16;
  const double magnitude = std::fabs(number);
  if (!std::isfinite(number) || (magnitude <= kLargestSpecial && std::trunc(2 * number) == 2 * number)) {
    return number;
  }
  return std::copysign(magnitude < 0.5 ? 0.3 : magnitude < 1 ? 0.7 : 1.7, number);
}

class Hasher {
 public:
  void value(const c10::IValue& value) {
    if (value.isTensor()) {
      tensor(value.toTensor());
    } else if (value.isInt()) {
      mix(1, static_cast<uint64_t>(value.toInt()));
    } else if (value.isDouble()) {
      mix(2, std::bit_cast<uint64_t>(standing_for(value.toDouble())));
    } else if (value.isBool()) {
      mix(3, value.toBool());
    } else if (value.isNone()) {
      mix(4, 0);
    } else if (value.isIntList()) {
      mix(5, 0);
      for (const int64_t item : value.toIntVector()) {
        mix(6, static_cast<uint64_t>(item));
      }
    } else {
      rare_value(value);
    }
  }

  Signature signature() const {
    return {hash_, requires_grad_};
  }

  void mix(uint64_t tag, uint64_t word) {
    hash_ = (hash_ ^ (word + (tag << 56))) * 0x9E3779B97F4A7C15ull;
    hash_ ^= hash_ >> 29;
  }

 private:
  void tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      mix(7, 0);
      return;
    }
    const auto* impl = tensor.unsafeGetTensorImpl();
    requires_grad_ |= impl->requires_grad();
    mix(8, static_cast<uint64_t>(tensor.scalar_type()) | static_cast<uint64_t>(tensor.dim()) << 8 |
            static_cast<uint64_t>(is_number(tensor)) << 16 | static_cast<uint64_t>(is_on_device(tensor)) << 17);
    if (!is_number(tensor)) {
      mix(9, storages_.number(tensor));
    }
    if (tensor.layout() != c10::kStrided) {
      return;
    }
    for (const int64_t size : impl->sizes()) {
      mix(10, static_cast<uint64_t>(size));
    }
    for (const int64_t stride : impl->strides()) {
      mix(11, static_cast<uint64_t>(stride));
    }
  }

  void rare_value(const c10::IValue& value) {
    if (value.isTensorList()) {
      mix(12, 0);
      for (const at::Tensor& item : value.toTensorVector()) {
        tensor(item);
      }
    } else if (value.isOptionalTensorList()) {
      mix(13, 0);
      for (const auto& item : value.toOptionalTensorVector()) {
        tensor(item.value_or(at::Tensor()));
      }
    } else if (value.isList()) {
      mix(14, 0);
      for (const c10::IValue& item : value.toListRef()) {
        this->value(item);
      }
    } else if (value.isString()) {
      mix(15, std::hash<std::string>()(value.toStringRef()));
    } else if (value.isComplexDouble()) {
      const auto number = value.toComplexDouble();
      mix(16, std::bit_cast<uint64_t>(number.real()));
      mix(16, std::bit_cast<uint64_t>(number.imag()));
    } else if (value.isDevice()) {
      mix(17, static_cast<uint64_t>(value.toDevice().type()));
    } else {
      mix(18, 0);
    }
  }

  uint64_t hash_ = 0;
  bool requires_grad_ = false;
  StorageNumbers storages_;
};

PyObject* integers(c10::IntArrayRef values) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
  for (size_t i = 0; tuple != nullptr && i < values.size(); ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  }
  return tuple;
}

template <class Items, class Make>
PyObject* list_entry(const Items& items, Make make) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(items.size()));
  Py_ssize_t position = 0;
  for (const auto& item : items) {
    PyObject* entry = tuple == nullptr ? nullptr : make(item);
    if (entry == nullptr) {
      Py_XDECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, position++, entry);
  }
  return tuple == nullptr ? nullptr : Py_BuildValue("(sN)", "list", tuple);
}

class PythonArguments {
 public:
  PyObject* entry(const c10::IValue& value, ArgumentKind kind) {
    if (value.isInt()) {
      return integer(value.toInt(), kind);
    }
    if (value.isTensor()) {
      return tensor(value.toTensor());
    }
    if (value.isDouble()) {
      return PyFloat_FromDouble(value.toDouble());
    }
    if (value.isBool()) {
      return PyBool_FromLong(value.toBool());
    }
    if (value.isString()) {
      return PyUnicode_FromString(value.toStringRef().c_str());
    }
    if (value.isComplexDouble()) {
      return PyComplex_FromDoubles(value.toComplexDouble().real(), value.toComplexDouble().imag());
    }
    if (value.isDevice()) {
      return Py_BuildValue("(ss)", "device", value.toDevice().str().c_str());
    }
    if (value.isGenerator()) {
      return Py_BuildValue("(s)", "generator");
    }
    if (value.isOptionalTensorList()) {
      return list_entry(value.toOptionalTensorVector(), [this](const std::optional<at::Tensor>& item) {
        return tensor(item.value_or(at::Tensor()));
      });
    }
    if (value.isList()) {
      const auto items = value.toList().vec();
      return list_entry(items, [this](const c10::IValue& item) { return entry(item, ArgumentKind::kValue); });
    }
    Py_RETURN_NONE;
  }

 private:
  static PyObject* integer(int64_t value, ArgumentKind kind) {
    switch (kind) {
      case ArgumentKind::kDtype:
        return Py_BuildValue("(ss)", "dtype", dtype_name(static_cast<at::ScalarType>(value)));
      case ArgumentKind::kLayout:
        return Py_BuildValue("(sL)", "layout", static_cast<long long>(value));
      case ArgumentKind::kMemoryFormat:
        return Py_BuildValue("(sL)", "memory_format", static_cast<long long>(value));
      default:
        return PyLong_FromLongLong(value);
    }
  }

  PyObject* tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      Py_RETURN_NONE;
    }
    const char* dtype = dtype_name(tensor.scalar_type());
    if (is_number(tensor)) {
      return Py_BuildValue("(ss)", "number_tensor", dtype);
    }
    const bool strided = tensor.layout() == c10::kStrided;
    PyObject* sizes = integers(tensor.sizes());
    PyObject* strides = integers(strided ? tensor.strides() : c10::IntArrayRef());
    PyObject* on_device = is_on_device(tensor) ? Py_True : Py_False;
    return Py_BuildValue(
        "(ssNNnO)", "tensor", dtype, sizes, strides, static_cast<Py_ssize_t>(storages_.number(tensor)), on_device);
  }

  StorageNumbers storages_;
};

}  // namespace

const char* dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte: return "uint8";
    case at::kChar: return "int8";
    case at::kShort: return "int16";
    case at::kInt: return "int32";
    case at::kLong: return "int64";
    case at::kHalf: return "float16";
    case at::kFloat: return "float32";
    case at::kDouble: return "float64";
    case at::kComplexHalf: return "complex32";
    case at::kComplexFloat: return "complex64";
    case at::kComplexDouble: return "complex128";
    case at::kBool: return "bool";
    case at::kBFloat16: return "bfloat16";
    case at::kFloat8_e5m2: return "float8_e5m2";
    case at::kFloat8_e4m3fn: return "float8_e4m3fn";
    case at::kUInt16: return "uint16";
    case at::kUInt32: return "uint32";
    case at::kUInt64: return "uint64";
    default: return c10::toString(dtype);
  }
}

Signature signature_of(const OperatorInfo& info, const Stack& stack) {
  Hasher hasher;
  hasher.mix(0, info.hash);
  hasher.mix(19, static_cast<uint64_t>(c10::typeMetaToScalarType(c10::get_default_dtype())));  // of what names none
  const size_t base = stack.size() - info.argument_count;
  for (int i = 0; i < info.argument_count; ++i) {
    hasher.value(stack[base + i]);
  }
  return hasher.signature();
}

PyObject* signature_arguments(const OperatorInfo& info, const Stack& stack) {
  PythonArguments arguments;
  PyObject* tuple = PyTuple_New(info.argument_count);
  const size_t base = stack.size() - info.argument_count;
  for (int i = 0; i < info.argument_count; ++i) {
    PyObject* entry = tuple == nullptr ? nullptr : arguments.entry(stack[base + i], info.argument_kinds[i]);
    if (entry == nullptr) {
      Py_XDECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, entry);
  }
  return tuple;
}

}  // namespace neuron
