// Asks Python, at a steady rate of wall time, what the host is doing where virtual time passes.
//
// A thread that first had to take the GIL would see the program mostly where it gives the GIL away. So the main
// thread is asked itself, by a pending call, at its next bytecode. Only where it does not answer at once, because
// it waits or another thread has the GIL, the sampling thread takes the GIL and asks in its place.
#pragma once

#include <cstdint>

struct _object;
using PyObject = _object;

namespace neuron {

// Calls `callback(host_ns, wall_ns, answered)` every `interval_ns`, and less often where that costs more than
// 1 % of the time: `answered` says that the main thread itself was asked. The virtual clock stands still meanwhile.
// `always` asks where virtual time does not pass, too. Needs the GIL, as does `stop_sampling`.
void start_sampling(PyObject* callback, int64_t interval_ns, bool always);

// No call comes after it. A forked child does not sample.
void stop_sampling();

}  // namespace neuron
