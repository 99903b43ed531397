// The Kineto side of profiler.h: a child profiler whose sessions hand device spans over at the end.
#include "profiler.h"

#include "host_clock.h"
#include "recorder.h"

#include <c10/util/ApproximateClock.h>

#include <IActivityProfiler.h>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace neuron {
namespace {

using libkineto::ActivityType;

struct LinkedSpan {
  ProfileSpan span;
  uint64_t correlation;
};

std::mutex profiler_mutex;
std::vector<LinkedSpan> spans;
// The session's start on each clock: spans move by the difference to Kineto's.
int64_t kineto_start_ns = 0;
int64_t virtual_start_ns = 0;
int64_t wall_start_ns = 0;

thread_local std::vector<uint64_t> correlations;

int64_t on_kineto_clock(const ProfileSpan& span, int64_t time_ns) {
  const int64_t start = span.time == ProfileTime::kVirtual ? virtual_start_ns : wall_start_ns;
  return kineto_start_ns + (time_ns - start);
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override {
    std::lock_guard<std::mutex> lock(profiler_mutex);
    spans.clear();
    kineto_start_ns = c10::getTime();
    virtual_start_ns = host_now_ns();
    wall_start_ns = wall_now_ns();
    start_ns_ = kineto_start_ns;
    set_profiling(true);
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    set_profiling(false);
    end_ns_ = c10::getTime();
    status_ = libkineto::TraceStatus::PROCESSING;
  }
  std::vector<std::string> errors() override {
    return {};
  }
  void processTrace(libkineto::ActivityLogger& logger) override {
    collect();
    log_activities(logger);
  }
  void processTrace(
      libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked_activity, int64_t,
      int64_t) override {
    collect();
    for (auto& activity : buffer_.activities) {
      activity->linked = linked_activity(activity->id);
    }
    log_activities(logger);
  }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    const int row = 1000;  // below the host's rows
    return std::make_unique<libkineto::DeviceInfo>(row, row, "neuron", "NeuronCore (simulated)");
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::vector<libkineto::ResourceInfo> rows;
    for (const auto& [device, stream] : rows_) {
      rows.emplace_back(device, stream, stream, "stream " + std::to_string(stream));
    }
    return rows;
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::make_unique<libkineto::CpuTraceBuffer>(std::move(buffer_));
  }
  void pushCorrelationId(uint64_t id) override {
    correlations.push_back(id);
  }
  void popCorrelationId() override {
    if (!correlations.empty()) {
      correlations.pop_back();
    }
  }

 private:
  void collect() {
    buffer_.span = libkineto::TraceSpan(start_ns_, end_ns_, "neuron");
    std::lock_guard<std::mutex> lock(profiler_mutex);
    for (const auto& linked : spans) {
      add(linked.span, linked.correlation);
    }
    spans.clear();
  }
  void add(const ProfileSpan& span, uint64_t correlation) {
    rows_.emplace(span.device, span.stream);
    const auto type = span.is_copy ? ActivityType::GPU_MEMCPY : ActivityType::CONCURRENT_KERNEL;
    buffer_.emplace_activity(buffer_.span, type, span.name);
    auto& activity = *buffer_.activities.back();
    activity.startTime = on_kineto_clock(span, span.start_ns);
    activity.endTime = on_kineto_clock(span, span.end_ns);
    activity.id = static_cast<int32_t>(correlation);
    activity.device = span.device;
    activity.resource = span.stream;
    activity.flow.id = static_cast<uint32_t>(correlation);
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.flow.start = 0;
    activity.addMetadata("simulated", span.time == ProfileTime::kVirtual ? "true" : "false");
    if (span.bytes > 0) {
      activity.addMetadata("bytes", std::to_string(span.bytes));
    }
  }
  void log_activities(libkineto::ActivityLogger& logger) {
    for (auto& activity : buffer_.activities) {
      activity->log(logger);
    }
  }

  libkineto::CpuTraceBuffer buffer_;
  std::set<std::pair<int, int>> rows_;
  int64_t start_ns_ = 0;
  int64_t end_ns_ = 0;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override {
    return name_;
  }
  const std::set<ActivityType>& availableActivities() const override {
    return activities_;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>&, const libkineto::Config&) override {
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& activities, const libkineto::Config& config) override {
    return configure(activities, config);
  }

 private:
  std::string name_{"neuron"};
  std::set<ActivityType> activities_{
      ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY, ActivityType::PRIVATEUSE1_RUNTIME,
      ActivityType::PRIVATEUSE1_DRIVER};
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

}  // namespace

void add_profile_span(ProfileSpan span) {
  const uint64_t correlation = correlations.empty() ? 0 : correlations.back();
  std::lock_guard<std::mutex> lock(profiler_mutex);
  spans.push_back({std::move(span), correlation});
}

}  // namespace neuron
