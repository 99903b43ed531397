// Eager operations that wait for the device: those that wait together may run as one execution.
//
// Values are computed when an operation is called, so that nothing here changes them. What waits is the operation's
// time: it is placed when the device comes to it, or when somebody looks.
#pragma once

#include "operator_types.h"
#include "python_callbacks.h"
#include "record.h"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace at {
class Tensor;
}

namespace neuron {

enum class FusionMode : int {
  kOff = 0,  // every operation is an execution of its own, placed at once
  kBusy = 1,  // what is issued while the device works on something else
  kLazy = 2,  // everything, until an operation comes that cannot join or somebody looks
};

void set_fusion_mode(FusionMode mode);

// Operations may wait: fusion is on, and the program has not asked for deterministic algorithms.
bool operations_may_wait();

inline constexpr int64_t kHostBuffer = -1;
inline constexpr int64_t kUnknownBuffer = -2;  // of the device, but not made by its allocator

struct TensorPlace {
  int64_t buffer = kHostBuffer;
  int64_t offset = 0;  // in elements
};

struct TensorResult {
  TensorPlace place;
  c10::ScalarType dtype;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

struct WaitingOperation {
  const OperatorInfo* info = nullptr;
  Cost cost;
  Record record;  // without times of the device
  int device = 0;
  int stream = 0;
  bool recorded = false;
  bool profiled = false;
  bool needs_values = false;  // the host waits for it
  bool in_order = true;  // its tensors are all in known memory
  uint64_t boundary = 0;
  std::vector<TensorPlace> uses;  // each tensor argument, in order
  std::vector<TensorResult> results;
};

// What operations wait for their turn as, when Python is asked what they cost together.
struct FusionRequest {
  std::vector<const WaitingOperation*> operations;
  std::vector<bool> needed;  // by result, all operations' in a row: somebody can still read it
};

// Asks Python unless the same operations were seen before.
FusedCost fused_cost_of(const FusionRequest& request);

// Each tensor among the last `count` values of the stack.
void collect_places(const Stack& stack, int count, std::vector<TensorPlace>* places);
void collect_results(const Stack& stack, int count, std::vector<TensorResult>* results);

// Places the operation when its turn comes, and those before it whose turn has come.
void add_waiting(WaitingOperation operation);

// Places all that waits on a device. Whoever asks the timeline for a time calls it first.
void run_waiting(int device);
void run_all_waiting();

// A fused execution does not reach over it: a range or a step begins or ends.
void mark_boundary();

// A buffer's memory was given back: where only waiting operations knew it, it need not be written.
void tell_freed(int64_t buffer);

// Without placing them.
void forget_waiting();

}  // namespace neuron
