// When device work runs: clocks of a NeuronCore's compute engines, its DMA queues and its streams.
// Times are virtual nanoseconds, as the host clock's.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace neuron {

inline constexpr int kStreams = 64;

struct Interval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

void reset_timeline();

// Compute of all streams of one NeuronCore is serialised. `placed` is called in the order in which executions run,
// whichever threads issue them: it holds up all others and must not call Python.
Interval place_compute(
    int device, int stream, int64_t issued_ns, int64_t duration_ns, c10::function_ref<void(const Interval&)> placed);

// When the next execution on a stream could be launched, if it is issued at `issued_ns`.
int64_t next_start_ns(int device, int stream, int64_t issued_ns);

// Copies run beside compute and queue behind each other.
Interval place_copy(int device, int stream, int64_t issued_ns, int64_t bytes);

// Of what is placed: `run_waiting` comes first where the answer is for the program.
int64_t stream_finish_ns(int device, int stream);
int64_t device_finish_ns(int device);

// Events that the calling thread records happen at this time, not when it has come to them; negative: as usual. Returns
// what held before. A collective's end is known before the host is there.
int64_t exchange_event_time(int64_t time_ns);
int64_t event_time();

// The stream does nothing before `time_ns`.
void hold_stream_until(int device, int stream, int64_t time_ns);

void set_launch_overhead_ns(int64_t overhead_ns);
void set_copy_model(double bytes_per_second, int64_t latency_ns);

// The calling thread's current stream of a device.
int current_stream(int device);
void set_current_stream(int device, int stream);
int next_pool_stream();

}  // namespace neuron
