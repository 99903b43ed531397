// Virtual time and the capture log, as the kernels and the guard see them: each piece of device work opens a
// DeviceWork, which is nearly free while nobody looks.
#pragma once

#include "memory.h"
#include "operators.h"
#include "record.h"

#include <cstdint>
#include <string>

namespace neuron {

// Virtual time is kept (a recording or a timing session is on) and the thread is not suppressed.
bool timing_is_on();

struct WorkContext;

// One piece of device work, from its dispatch to its completion.
class DeviceWork {
 public:
  explicit DeviceWork(const OperatorInfo& info);
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  // Looks up what this operator with these arguments costs; `stack` ends with the arguments.
  void describe(const torch::jit::Stack& stack);

  // From here to the end of the object, time is not the user's.
  void begin_compute(int device);

  void finish_operation();
  void finish_copy(RecordKind kind, int64_t bytes, bool blocking);

 private:
  bool timed() const;

  const OperatorInfo& info_;
  const std::string* outer_operation_;
  uint32_t outer_stack_ = 0;
  uint8_t observers_ = 0;
  bool paused_ = false;
  int device_ = 0;
  uint32_t executable_ = 0;
  uint32_t flags_ = 0;
  uint32_t name_ = 0;
  uint32_t stack_ = 0;
  int64_t duration_ns_ = 0;
  int64_t sequence_ = -1;
  int64_t host_start_ns_ = 0;
  int64_t host_end_ns_ = 0;
};

// The host waits for the device: its clock moves to `finish_ns`.
void record_synchronize(int device, int stream, int64_t finish_ns);

AllocationSite record_allocate(int device, int64_t bytes, int64_t ordinal);
void record_free(int device, int64_t bytes, int64_t ordinal);

// "file:line in module" as far as it is known, else empty.
std::string describe_place(uint32_t stack, uint32_t module);

}  // namespace neuron
