// Names of the dispatcher's types for headers that need no more: the dispatcher itself takes seconds to compile.
#pragma once

#include <vector>

namespace c10 {
struct IValue;
}

namespace neuron {

struct OperatorInfo;

// torch::jit::Stack: an operator's arguments are its last elements.
using Stack = std::vector<c10::IValue>;

}  // namespace neuron
