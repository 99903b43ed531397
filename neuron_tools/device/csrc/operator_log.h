// Which operators the device ran, for programs that ask.
#pragma once

#include <string>
#include <vector>

namespace neuron {

// Begins anew with none; from the first call on, each operator with a tensor of the device is kept by its name.
void clear_operator_log();

// Names of those that ran, "aten::add" and "aten::add.Tensor", sorted. Composite ones are among them, views
// are not.
std::vector<std::string> logged_operators();

}  // namespace neuron
