// Virtual time and the capture log, as the kernels and the guard see them: each piece of device work opens a
// DeviceWork, which is nearly free while nobody looks.
#pragma once

#include "memory.h"
#include "operator_types.h"
#include "python_callbacks.h"
#include "record.h"
#include "waiting.h"

#include <cstdint>
#include <string>
#include <vector>

namespace neuron {

// Virtual time is kept (a recording or a timing session is on) and the thread is not suppressed.
bool timing_is_on();

// No session may be on, and the callbacks must be set. Throws where the log cannot be made.
void start_recording(const std::string& log_path);
// Virtual time without a log.
void start_timing();
// Ends either.
void stop_recording();
// Ends either without writing what was not written yet: the state that a forked child starts in.
void abandon_recording();
bool recording_is_on();
// A recording or a timing session is on, whatever the calling thread does.
bool session_is_on();

// A profiling session wants to see device work.
void set_profiling(bool on);

// Of the calling thread; each returns what held before.
uint32_t exchange_module(uint32_t module);
bool exchange_in_optimizer(bool in_optimizer);
bool exchange_suppressed(bool suppressed);

// One piece of device work, from its dispatch to its completion.
class DeviceWork {
 public:
  explicit DeviceWork(const OperatorInfo& info);
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  // Looks up what this operator with these arguments costs; `stack` ends with the arguments. From here to the end of
  // the object, time is not the user's, but for what passes until `begin_compute`: the dispatch.
  void describe(const Stack& stack);

  // From here to the end of the object, time is not the user's. Called again, for values that must be computed after
  // all, it counts no second dispatch.
  void begin_compute(int device);

  void finish_operation();

  // Operations may wait for the device, to run together with others: then `enqueue` stands for `finish_operation`,
  // when the results have their memory. `results`: the stack that ends with them.
  bool waits() const;
  void enqueue(const Stack& results, int count);
  void finish_copy(RecordKind kind, int64_t bytes, bool blocking);

  // Of a copy: what `padding_of` says of it.
  bool is_recorded() const;
  void tell_padding(int64_t padding) { padding_ = padding; }

 private:
  void start();
  void complete(Record& record) const;
  void show_to_profiler(int64_t start_ns, int64_t end_ns, RecordKind kind, int64_t bytes) const;

  const OperatorInfo& info_;
  const OperatorInfo* outer_operation_;
  uint32_t outer_stack_;
  uint8_t observers_;
  bool started_ = false;  // time stands still until the end of the object
  bool computing_ = false;
  bool counted_ = false;  // begun, and not a view: it ends well or it failed
  bool finished_ = false;
  bool needs_values_ = false;  // the host waits for them
  int device_ = 0;
  Cost cost_;
  int64_t sequence_ = -1;
  int64_t host_start_ns_ = 0;
  int64_t host_end_ns_ = 0;
  int64_t described_ns_ = 0;  // by `elapsed_now_ns`
  int64_t wall_start_ns_ = 0;
  int64_t padding_ = 0;
  std::vector<TensorPlace> uses_;
};

// One execution of a compiled graph on the current device and stream.
void record_graph(uint32_t executable, int64_t duration_ns, uint32_t name);

// A closed host range.
void record_range(uint32_t name, int64_t start_ns, int64_t end_ns, RecordKind kind);

// A collective of several processes, from its issue to the moment when its times are known. It runs on the links, beside
// compute: whoever waits for it holds a stream until its end.
struct CollectiveIssue {
  Record record;
  bool recorded = false;
  int64_t ready_ns = 0;  // its inputs are there: the host has issued it and the current stream has come to it
};
CollectiveIssue issue_collective(int device, bool has_user_frames);
void record_collective(const CollectiveIssue& issue, const Record& record, const std::string& title);

// The host waits for the device: its clock moves to `finish_ns`.
void record_synchronize(int device, int stream, int64_t finish_ns);

AllocationSite record_allocate(int device, int64_t bytes, int64_t ordinal);
void record_free(int device, int64_t bytes, int64_t ordinal);

// "file:line in module" as far as it is known, else empty.
std::string describe_place(uint32_t stack, uint32_t module);

}  // namespace neuron
