// Device work as torch.profiler shows it, beside its own rows, through Kineto.
#pragma once

#include <cstdint>
#include <string>

namespace neuron {

enum class ProfileTime : uint8_t { kVirtual, kWall };

struct ProfileSpan {
  std::string name;
  bool is_copy = false;
  int device = 0;
  int stream = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t bytes = 0;
  ProfileTime time = ProfileTime::kVirtual;
};

// Links the span to the operation that the calling thread is in.
void add_profile_span(ProfileSpan span);

}  // namespace neuron
