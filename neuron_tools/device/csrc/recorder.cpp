#include "recorder.h"

#include "activity.h"
#include "autograd_link.h"
#include "device.h"
#include "event_log.h"
#include "host_clock.h"
#include "names.h"
#include "operators.h"
#include "profiler.h"
#include "python_stack.h"
#include "signature.h"
#include "timeline.h"
#include "waiting.h"

#include <c10/core/GradMode.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace neuron {
namespace {

constexpr uint8_t kTiming = 1;
constexpr uint8_t kRecording = 2;
constexpr uint8_t kProfiling = 4;

std::atomic<uint8_t> observers{0};
std::mutex session_mutex;

// What the calling thread is doing.
struct ThreadState {
  const OperatorInfo* operation = nullptr;
  uint32_t stack = 0;
  uint32_t module = 0;
  int64_t claimed_node = -1;  // the last autograd node that a call was found to have made
  bool in_optimizer = false;
  bool suppressed = false;
};
thread_local ThreadState thread_state;

uint8_t current_observers() {
  return thread_state.suppressed ? 0 : observers.load(std::memory_order_relaxed);
}

bool is_recording() {
  return (observers.load(std::memory_order_relaxed) & kRecording) != 0;
}

// The autograd node that this call made; -1 where it made none. What a tensor subclass (DTensor) calls inside needs
// no gradient itself, and what the forward of an autograd function of Python calls may not: the node is that of the
// call from outside, made just before, and no other call's.
int64_t claim_node(bool requires_grad) {
  const int64_t last = last_made_sequence();
  const bool is_new = last != std::exchange(thread_state.claimed_node, last);
  const bool is_differentiated = c10::GradMode::is_enabled();
  return (is_differentiated && requires_grad) || (is_new && (is_differentiated || !in_backward_pass())) ? last : -1;
}

constexpr int kCollectiveStream = kStreams;  // torch.profiler's row of collectives: they run beside all streams

Record make_record(RecordKind kind, int device, uint32_t stack) {
  const bool is_below_python = stack != 0 && !is_autograds_own(stack);
  const auto forward = current_forward(!is_below_python);
  Record record;
  record.kind = kind;
  record.device = static_cast<uint16_t>(device);
  record.stream = static_cast<uint16_t>(current_stream(device));
  record.thread = thread_ordinal();
  record.stack = is_below_python ? stack : 0;
  record.module = thread_state.module;
  record.forward_sequence = forward.sequence;
  record.forward_thread = forward.thread;
  record.flags = (thread_state.in_optimizer ? kInOptimizer : 0) | (in_backward_pass() ? kInBackward : 0);
  return record;
}

Record make_host_record(RecordKind kind, int device, uint32_t stack, int64_t start_ns, int64_t end_ns) {
  Record record = make_record(kind, device, stack);
  record.host_start_ns = start_ns;
  record.host_end_ns = end_ns;
  return record;
}

void log_record(const Record& record) {
  if (!append_record(record)) {
    flush_event_log();
  }
}

void log_memory_record(
    RecordKind kind, int device, uint32_t stack, const OperatorInfo* operation, int64_t bytes, int64_t ordinal) {
  const int64_t now = host_now_ns();
  Record record = make_host_record(kind, device, stack, now, now);
  record.name = operation == nullptr ? 0 : name_of(*operation);
  record.bytes = bytes;
  record.address = ordinal;
  log_record(record);
}

// A forked child goes on computing, unrecorded: the log is its parent's.
void stop_in_forked_child() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { observers = 0; });
  (void)registered;
}

void begin_session(uint8_t bits) {
  stop_in_forked_child();
  reset_threads();
  reset_names();
  reset_stacks();
  reset_timeline();
  forget_waiting();
  reset_host_clock();
  watch_backward();
  observers |= bits;
}

void end_session() {
  observers &= static_cast<uint8_t>(~(kTiming | kRecording));
  stop_watching_backward();
}

}  // namespace

void start_recording(const std::string& log_path) {
  std::lock_guard<std::mutex> lock(session_mutex);
  open_event_log(log_path);
  begin_session(kTiming | kRecording);
  for (const auto& live : live_allocations()) {
    log_memory_record(RecordKind::kAllocate, live.device, 0, live.operation, live.bytes, live.ordinal);
  }
}

void start_timing() {
  std::lock_guard<std::mutex> lock(session_mutex);
  begin_session(kTiming);
}

void stop_recording() {
  std::lock_guard<std::mutex> lock(session_mutex);
  run_all_waiting();
  end_session();
  close_event_log();
}

void abandon_recording() {
  std::lock_guard<std::mutex> lock(session_mutex);
  end_session();
  forget_waiting();
  discard_pending_records();
  close_event_log();
}

bool session_is_on() {
  return (observers.load() & (kTiming | kRecording)) != 0;
}

bool recording_is_on() {
  return is_recording();
}

bool timing_is_on() {
  return (current_observers() & kTiming) != 0;
}

void set_profiling(bool on) {
  if (on) {
    observers |= kProfiling;
  } else {
    observers &= static_cast<uint8_t>(~kProfiling);
  }
}

uint32_t exchange_module(uint32_t module) {
  return std::exchange(thread_state.module, module);
}

bool exchange_in_optimizer(bool in_optimizer) {
  return std::exchange(thread_state.in_optimizer, in_optimizer);
}

bool exchange_suppressed(bool suppressed) {
  return std::exchange(thread_state.suppressed, suppressed);
}

// Executions stand in the log in the order in which they run on the device.
static Interval place_in_order(int device, int64_t issued_ns, int64_t duration_ns, Record* record) {
  bool has_room = true;
  const auto log = [&](const Interval& interval) {
    if (record != nullptr) {
      record->device_start_ns = interval.start_ns;
      record->device_end_ns = interval.end_ns;
      has_room = append_record(*record);
    }
  };
  const auto interval = place_compute(device, current_stream(device), issued_ns, duration_ns, log);
  if (!has_room) {
    flush_event_log();
  }
  return interval;
}

DeviceWork::DeviceWork(const OperatorInfo& info)
    : info_(info),
      outer_operation_(std::exchange(thread_state.operation, &info)),
      outer_stack_(thread_state.stack),
      observers_(current_observers()) {}

DeviceWork::~DeviceWork() {
  if (started_) {
    resume_host_clock();
  }
  if (counted_ && !finished_) {
    count_failed_execution(device_);
  }
  thread_state.operation = outer_operation_;
  thread_state.stack = outer_stack_;
}

void DeviceWork::start() {
  started_ = true;
  host_start_ns_ = pause_host_clock();
  if ((observers_ & kRecording) != 0) {
    thread_state.stack = capture_stack();
  }
}

void DeviceWork::describe(const Stack& stack) {
  if ((observers_ & kTiming) == 0) {
    return;
  }
  if (info_.is_view) {
    claim_node(false);
    return;
  }
  start();
  needs_values_ = call_needs_values(info_, stack);
  if (operations_may_wait()) {
    collect_places(stack, info_.argument_count, &uses_);
  }
  const auto signature = signature_of(info_, stack);
  cost_ = cost_of(signature.hash, info_, stack);
  sequence_ = claim_node(signature.requires_grad);
  described_ns_ = elapsed_now_ns();
}

void DeviceWork::begin_compute(int device) {
  if (computing_) {
    return;
  }
  device_ = device;
  counted_ = !info_.is_view && !thread_state.suppressed;
  if (observers_ == 0 || info_.is_view) {
    return;
  }
  if ((observers_ & kTiming) != 0) {
    const int64_t dispatch_ns = started_ ? elapsed_now_ns() - described_ns_ : 0;
    if (!started_) {
      start();
    }
    host_end_ns_ = dispatch_while_paused_ns(dispatch_ns);
  }
  if ((observers_ & kProfiling) != 0) {
    wall_start_ns_ = wall_now_ns();
  }
  computing_ = true;
}

// May call Python (a new name): not to be called while executions are put in order.
void DeviceWork::complete(Record& record) const {
  record.executable = cost_.executable;
  record.flags |= cost_.flags & kRecordedFlags;
  record.name = name_of(info_);
  record.host_start_ns = host_start_ns_;
  record.host_end_ns = host_end_ns_;
  record.sequence = sequence_;
}

void DeviceWork::show_to_profiler(int64_t start_ns, int64_t end_ns, RecordKind kind, int64_t bytes) const {
  ProfileSpan span;
  span.is_copy = kind != RecordKind::kOperation;
  span.name = kind == RecordKind::kCopyToDevice ? "Memcpy HtoD" : span.is_copy ? "Memcpy DtoH" : info_.name;
  span.device = device_;
  span.stream = current_stream(device_);
  span.start_ns = start_ns;
  span.end_ns = end_ns;
  span.bytes = bytes;
  if ((observers_ & kTiming) == 0) {
    span.time = ProfileTime::kWall;
    span.start_ns = wall_start_ns_;
    span.end_ns = wall_now_ns();
  }
  add_profile_span(std::move(span));
}

bool DeviceWork::waits() const {
  return computing_ && (observers_ & kTiming) != 0 && operations_may_wait();
}

void DeviceWork::enqueue(const Stack& results, int count) {
  finished_ = true;
  WaitingOperation operation;
  operation.info = &info_;
  operation.cost = cost_;
  operation.needs_values = needs_values_;
  operation.device = device_;
  operation.stream = current_stream(device_);
  operation.recorded = (observers_ & kRecording) != 0;
  operation.profiled = (observers_ & kProfiling) != 0;
  operation.record = make_record(RecordKind::kOperation, device_, thread_state.stack);
  complete(operation.record);
  operation.uses = std::move(uses_);
  collect_results(results, count, &operation.results);
  add_waiting(std::move(operation));
  if (needs_values_) {
    run_waiting(device_);
    host_wait_until(stream_finish_ns(device_, current_stream(device_)));
  }
}

void DeviceWork::finish_operation() {
  finished_ = true;
  if (counted_ && (observers_ & kTiming) == 0) {
    count_untimed_execution(device_);
  }
  if (!computing_) {
    return;
  }
  Interval interval;
  if ((observers_ & kTiming) != 0) {
    run_waiting(device_);
    const bool recorded = (observers_ & kRecording) != 0;
    Record record;
    if (recorded) {
      record = make_record(RecordKind::kOperation, device_, thread_state.stack);
      complete(record);
    }
    interval = place_in_order(device_, host_end_ns_, cost_.duration_ns, recorded ? &record : nullptr);
    count_execution(device_, cost_.executable, interval.end_ns - interval.start_ns, interval.end_ns - host_start_ns_);
    if (needs_values_) {
      host_wait_until(interval.end_ns);
    }
  }
  if ((observers_ & kProfiling) != 0) {
    show_to_profiler(interval.start_ns, interval.end_ns, RecordKind::kOperation, 0);
  }
}

bool DeviceWork::is_recorded() const {
  return computing_ && (observers_ & kRecording) != 0;
}

void DeviceWork::finish_copy(RecordKind kind, int64_t bytes, bool blocking) {
  finished_ = true;
  if (counted_) {
    count_copy(device_, bytes, kind == RecordKind::kCopyToDevice);
  }
  if (!computing_) {
    return;
  }
  Interval interval;
  if ((observers_ & kTiming) != 0) {
    run_waiting(device_);
    interval = place_copy(device_, current_stream(device_), host_end_ns_, bytes);
    if (blocking) {
      host_wait_until(interval.end_ns);
      host_end_ns_ = std::max(host_end_ns_, interval.end_ns);
    }
    if ((observers_ & kRecording) != 0) {
      Record record = make_record(kind, device_, thread_state.stack);
      record.bytes = bytes;
      record.address = padding_;
      complete(record);
      record.device_start_ns = interval.start_ns;
      record.device_end_ns = interval.end_ns;
      log_record(record);
    }
  }
  if ((observers_ & kProfiling) != 0) {
    show_to_profiler(interval.start_ns, interval.end_ns, kind, bytes);
  }
}

void record_graph(uint32_t executable, int64_t duration_ns, uint32_t name) {
  const uint8_t watching = current_observers();
  if ((watching & kTiming) == 0) {
    return;
  }
  const int device = current_device();
  const int64_t host_start = pause_host_clock();
  run_waiting(device);
  const int64_t host_end = dispatch_while_paused_ns(0);
  const bool recorded = (watching & kRecording) != 0;
  Record record;
  if (recorded) {
    record = make_host_record(RecordKind::kGraph, device, capture_stack(), host_start, host_end);
    record.executable = executable;
    record.name = name;
    // A compiled graph's node is made before it runs: its backward graph runs for that number.
    record.sequence = last_made_sequence();
  }
  const auto interval = place_in_order(device, host_end, duration_ns, recorded ? &record : nullptr);
  count_execution(device, executable, interval.end_ns - interval.start_ns, interval.end_ns - host_start);
  if ((watching & kProfiling) != 0) {
    add_profile_span({name_text(name), false, device, current_stream(device), interval.start_ns, interval.end_ns});
  }
  resume_host_clock();
}

void record_range(uint32_t name, int64_t start_ns, int64_t end_ns, RecordKind kind) {
  if (!is_recording()) {
    return;
  }
  if (kind != RecordKind::kModuleCall) {
    mark_boundary();
  }
  const HostClockPause not_the_users_time;
  Record record = make_host_record(kind, current_device(), capture_stack(), start_ns, end_ns);
  record.name = name;
  log_record(record);
}

CollectiveIssue issue_collective(int device, bool has_user_frames) {
  const HostClockPause not_the_users_time;
  CollectiveIssue issue;
  run_waiting(device);
  const int64_t start = host_now_ns();
  const int64_t end = dispatch_while_paused_ns(0);
  issue.ready_ns = std::max(end, stream_finish_ns(device, current_stream(device)));
  issue.recorded = (current_observers() & kRecording) != 0;
  issue.record.device = static_cast<uint16_t>(device);
  if (issue.recorded) {
    issue.record = make_host_record(
        RecordKind::kCollective, device, has_user_frames ? capture_stack() : 0, start, end);
  }
  return issue;
}

void record_collective(const CollectiveIssue& issue, const Record& record, const std::string& title) {
  if (issue.recorded && is_recording()) {
    log_record(record);
  }
  if ((observers.load() & kProfiling) != 0) {
    add_profile_span({title, false, issue.record.device, kCollectiveStream, record.device_start_ns, record.device_end_ns});
  }
}

void record_synchronize(int device, int stream, int64_t finish_ns) {
  const uint8_t watching = current_observers();
  if ((watching & kTiming) == 0) {
    return;
  }
  const int64_t start = host_now_ns();
  host_dispatch_ns();
  host_wait_until(finish_ns);
  if ((watching & kRecording) != 0) {
    const HostClockPause not_the_users_time;
    Record record = make_host_record(RecordKind::kSynchronize, device, capture_stack(), start, host_now_ns());
    record.stream = static_cast<uint16_t>(stream);
    log_record(record);
  }
}

AllocationSite record_allocate(int device, int64_t bytes, int64_t ordinal) {
  AllocationSite site{thread_state.operation, thread_state.stack, thread_state.module};
  if (is_recording()) {
    if (site.stack == 0) {
      const HostClockPause not_the_users_time;
      site.stack = capture_stack();
    }
    log_memory_record(RecordKind::kAllocate, device, site.stack, site.operation, bytes, ordinal);
  }
  return site;
}

void record_free(int device, int64_t bytes, int64_t ordinal) {
  tell_freed(ordinal);
  if (is_recording()) {
    log_memory_record(RecordKind::kFree, device, 0, nullptr, bytes, ordinal);
  }
}

std::string describe_place(uint32_t stack, uint32_t module) {
  std::string place = stack_place(stack);
  const std::string owner = module_text(module);
  if (!owner.empty()) {
    place += (place.empty() ? "in " : " in ") + owner;
  }
  return place;
}

}  // namespace neuron
