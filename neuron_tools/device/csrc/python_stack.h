// The Python source stack of the calling thread, kept as a number. Capturing hashes code objects and
// instruction offsets; lines and names are worked out once for each new stack.
#pragma once

#include <cstdint>
#include <string>

namespace neuron {

// 0 where the thread runs no Python. Takes the GIL for a stack that is new.
uint32_t capture_stack();

// Files under these folders are not the user's: their frames are left out. Needs the GIL.
void add_internal_folder(const std::string& folder);

// Forgets every stack and starts numbering anew. Needs the GIL.
void reset_stacks();

// "file:line" of the innermost user frame; empty for 0.
std::string stack_place(uint32_t stack);

}  // namespace neuron
