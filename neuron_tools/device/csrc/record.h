// The binary layout of the capture log; its Python twin is `neuron_tools/records/capture_log.py`.
#pragma once

#include <cstdint>

namespace neuron {

enum class RecordKind : uint16_t {
  kOperation = 1,
  kGraph = 2,
  kCopyToDevice = 3,
  kCopyToHost = 4,
  kSynchronize = 5,
  kAllocate = 6,
  kFree = 7,
  kRange = 8,
  kView = 9,
  kStep = 10,
  kModuleCall = 11,
  kCollective = 12,
  kFusedOperation = 13,  // an eager operation that ran as part of the next kFused
  kFused = 14,
};

struct Record {
  RecordKind kind = RecordKind::kOperation;
  uint16_t device = 0;
  uint16_t stream = 0;
  uint16_t flags = 0;
  uint32_t thread = 0;
  uint32_t executable = 0;
  uint32_t stack = 0;
  uint32_t module = 0;
  uint32_t name = 0;
  uint32_t forward_thread = 0;
  int64_t host_start_ns = 0;
  int64_t host_end_ns = 0;
  int64_t device_start_ns = 0;
  int64_t device_end_ns = 0;
  int64_t sequence = -1;
  int64_t forward_sequence = -1;
  int64_t bytes = 0;
  int64_t address = 0;
};
static_assert(sizeof(Record) == 96, "neuron_tools/records/capture_log.py reads 96-byte records");

inline constexpr uint32_t kInOptimizer = 1;
inline constexpr uint32_t kNotNative = 2;
inline constexpr uint32_t kInBackward = 16;
inline constexpr uint32_t kRecordedFlags = kInOptimizer | kNotNative;  // what a cost may bring to a record
// Of a cost, not of a record.
inline constexpr uint32_t kBeginsFusion = 4;  // starts an execution of its own, which others may join
inline constexpr uint32_t kCannotFuse = 8;

}  // namespace neuron
