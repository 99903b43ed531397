// Numbers for the names in the capture log. A name is told to Python before the first record that uses it.
#pragma once

#include "operator_types.h"

#include <cstdint>
#include <string>

namespace neuron {

// May call Python. 0 stands for no name.
uint32_t intern_name(const std::string& text);
uint32_t name_of(const OperatorInfo& info);

const std::string& operator_name(const OperatorInfo& info);

// The text of a number; empty where there is none.
std::string name_text(uint32_t name);

// Forgets every name and starts numbering anew.
void reset_names();

// Modules are numbered by whoever records; telling their names makes them readable in memory tables.
void describe_module(uint32_t module, const std::string& text);
std::string module_text(uint32_t module);

}  // namespace neuron
