// The Python source stack of the calling thread, kept as a number. Capturing hashes code objects and
// instruction offsets; lines and names are worked out once for each new stack.
#pragma once

#include <cstdint>
#include <string>

namespace neuron {

// 0 where the thread runs no Python but ours. Takes the GIL for a stack that is new.
uint32_t capture_stack();

// Frames of files under our own folder are left out, those under the framework's where the stack has a user's frame.
// Both end in a separator. Needs the GIL.
void set_internal_folders(const std::string& own, const std::string& framework);

// Forgets every stack and starts numbering anew. Needs the GIL.
void reset_stacks();

// "file:line" of the innermost user frame; empty for 0.
std::string stack_place(uint32_t stack);

}  // namespace neuron
