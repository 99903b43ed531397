// Asks Python, at a steady rate of wall time, what the host is doing where virtual time passes.
//
// A thread of its own takes the GIL and asks. It has it after Python's switch interval at the latest, wherever the
// program is then: the shorter that is, the fewer samples fall on the next line that gives the GIL away by itself.
#pragma once

#include <cstdint>

struct _object;
using PyObject = _object;

namespace neuron {

// Calls `callback(host_ns, wall_ns, was_free)` every `interval_ns`, and less often where that costs more than 2 % of
// the time: `was_free` says that nobody had the GIL. The virtual clock stands still meanwhile.
// `always` asks where virtual time does not pass, too. Needs the GIL, as does `stop_sampling`.
void start_sampling(PyObject* callback, int64_t interval_ns, bool always);

// No call comes after it. A forked child does not sample.
void stop_sampling();

}  // namespace neuron
