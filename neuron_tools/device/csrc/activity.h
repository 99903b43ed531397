// What each NeuronCore of this process has done, for the simulated driver: a few nanoseconds per operation, whether
// anything is recorded or not.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace neuron {

// A time falls into one of eight steps between two powers of two.
inline constexpr int kLatencySteps = 8;
inline constexpr int kLatencyBuckets = 62 * kLatencySteps;

inline int latency_bucket(int64_t ns) {
  if (ns < kLatencySteps) {
    return ns < 0 ? 0 : static_cast<int>(ns);
  }
  const int exponent = std::bit_width(static_cast<uint64_t>(ns)) - 1;
  return (exponent - 2) * kLatencySteps + static_cast<int>(ns >> (exponent - 3) & (kLatencySteps - 1));
}

struct CoreActivity {
  int64_t untimed_executions = 0;  // while no virtual time was kept
  int64_t failed_executions = 0;  // the operator raised an error
  int64_t bytes_to_device = 0;
  int64_t bytes_to_host = 0;
  int64_t busy_ns = 0;  // virtual
  std::vector<int64_t> executions;  // by executable; 0 counts those that have none
  std::array<int64_t, kLatencyBuckets> latency{};  // virtual, from dispatch to finish
};

void count_untimed_execution(int device);
void count_failed_execution(int device);
void count_copy(int device, int64_t bytes, bool to_device);
void count_execution(int device, uint32_t executable, int64_t busy_ns, int64_t latency_ns);

// What was counted since this was last called.
CoreActivity take_activity(int device);

}  // namespace neuron
