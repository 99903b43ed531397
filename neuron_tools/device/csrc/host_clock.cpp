#include "host_clock.h"

#include <chrono>
#include <mutex>

namespace neuron {
namespace {

class HostClock {
 public:
  void configure(ClockMode mode, int64_t fixed_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t now = now_locked();
    mode_ = mode;
    fixed_ns_ = fixed_ns;
    offset_ns_ += now - now_locked();
  }
  void reset() {
    std::lock_guard<std::mutex> lock(mutex_);
    offset_ns_ -= now_locked();
  }
  int64_t now() {
    std::lock_guard<std::mutex> lock(mutex_);
    return now_locked();
  }
  int64_t dispatch() {
    std::lock_guard<std::mutex> lock(mutex_);
    spend_dispatch_locked();
    return now_locked();
  }
  int64_t pause() {
    std::lock_guard<std::mutex> lock(mutex_);
    return pause_locked();
  }
  int64_t dispatch_and_pause() {
    std::lock_guard<std::mutex> lock(mutex_);
    spend_dispatch_locked();
    return pause_locked();
  }
  void resume() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (pauses_ > 0 && --pauses_ == 0 && mode_ == ClockMode::kMeasured) {
      offset_ns_ -= wall_now_ns() - paused_at_ns_;
    }
  }
  void wait_until(int64_t time_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t now = now_locked();
    if (time_ns > now) {
      offset_ns_ += time_ns - now;
    }
  }

 private:
  void spend_dispatch_locked() {
    if (mode_ == ClockMode::kFixed) {
      offset_ns_ += fixed_ns_;
    }
  }
  int64_t pause_locked() {
    if (pauses_++ == 0 && mode_ == ClockMode::kMeasured) {
      paused_at_ns_ = wall_now_ns();
    }
    return now_locked();
  }
  int64_t now_locked() const {
    if (mode_ == ClockMode::kFixed) {
      return offset_ns_;
    }
    return (pauses_ > 0 ? paused_at_ns_ : wall_now_ns()) + offset_ns_;
  }

  std::mutex mutex_;
  ClockMode mode_ = ClockMode::kMeasured;
  int64_t fixed_ns_ = 10'000;
  int64_t offset_ns_ = 0;
  int64_t paused_at_ns_ = 0;
  int pauses_ = 0;
};

HostClock& clock() {
  static auto* instance = new HostClock;
  return *instance;
}

}  // namespace

int64_t wall_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void set_clock_mode(ClockMode mode, int64_t fixed_ns_per_dispatch) {
  clock().configure(mode, fixed_ns_per_dispatch);
}

void reset_host_clock() {
  clock().reset();
}

int64_t host_now_ns() {
  return clock().now();
}

int64_t host_dispatch_ns() {
  return clock().dispatch();
}

int64_t dispatch_and_pause_host_clock() {
  return clock().dispatch_and_pause();
}

int64_t pause_host_clock() {
  return clock().pause();
}

void resume_host_clock() {
  clock().resume();
}

void host_wait_until(int64_t time_ns) {
  clock().wait_until(time_ns);
}

}  // namespace neuron
