// Virtual host time: wall time less what was excluded (computing values, simulating, recording) plus the
// jumps that waiting for the device makes. One clock for the whole process; nanoseconds from its reset.
#pragma once

#include <cstdint>

namespace neuron {

enum class ClockMode : int {
  kMeasured = 0,
  kFixed = 1,  // every dispatch takes the same time and nothing else does: identical in every run
};

void set_clock_mode(ClockMode mode, int64_t fixed_ns_per_dispatch);
void reset_host_clock();

// Never goes back.
int64_t host_now_ns();

// Whether time passes: nobody has paused it.
bool host_clock_runs();

// What the host spends on one dispatch: moves the fixed clock by its constant, reads the measured one.
int64_t host_dispatch_ns();

// The same while time is paused: the measured clock moves by what the caller measured with `elapsed_now_ns`.
int64_t dispatch_while_paused_ns(int64_t measured_ns);

// Between the two, time does not pass. They nest, also over threads. Pausing gives the time it stopped at.
int64_t pause_host_clock();
void resume_host_clock();

// Moves the host forward to `time_ns`; nothing where it is already past it.
void host_wait_until(int64_t time_ns);

// steady_clock, for times outside virtual time.
int64_t wall_now_ns();

// For durations: cheaper than `wall_now_ns`, from a start of its own.
int64_t elapsed_now_ns();

class HostClockPause {
 public:
  HostClockPause() {
    pause_host_clock();
  }
  ~HostClockPause() {
    resume_host_clock();
  }
  HostClockPause(const HostClockPause&) = delete;
  HostClockPause& operator=(const HostClockPause&) = delete;
};

}  // namespace neuron
