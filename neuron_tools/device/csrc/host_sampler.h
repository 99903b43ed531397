// Writes, at a steady rate of wall time, what the host's threads are doing where virtual time passes.
//
// A thread of its own takes the GIL and looks. It has it after Python's switch interval at the latest, wherever the
// program is then: the shorter that is, the fewer samples fall on the next line that gives the GIL away by itself.
#pragma once

#include <cstdint>

struct _object;
using PyObject = _object;

namespace neuron {

struct Sampling {
  // Called as `describe(code, offset in bytes, (line, last line, column, last column), is innermost)` for each frame
  // that is new, alone and as the innermost one of a stack: what the file of stacks says of it.
  PyObject* describe;
  int file;                   // where the records go; stays the caller's
  int stacks_file;            // where a line goes for each stack that is new; stays the caller's
  unsigned long main_thread;  // as `threading.get_ident` gives it
  int64_t interval_ns;        // longer where a look costs over a hundredth of the program's work
  bool always;                // look where virtual time does not pass, too
};

// The virtual clock stands still during a look. Needs the GIL, as do the others.
void start_sampling(const Sampling& sampling);

// No call or record comes after it. A forked child does not sample.
void stop_sampling();

// Garbage was collected on this thread, between these virtual and wall times: told by the collector's callback, whose
// own `frames` are left out.
struct Collection {
  int64_t start_ns, wall_start_ns, end_ns, wall_end_ns;
  int frames;
};
void record_collection(const Collection& collection);

}  // namespace neuron
