#include "host_clock.h"

#include "spin_lock.h"

#include <c10/util/ApproximateClock.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>

namespace neuron {
namespace {

#ifdef C10_RDTSC

// The kernel drops this clock source where the processor's counter stops, jumps or differs between cores.
bool counter_is_reliable() {
  char name[16] = "";
  if (std::FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r")) {
    if (std::fgets(name, sizeof name, file) == nullptr) {
      name[0] = '\0';
    }
    std::fclose(file);
  }
  return std::strncmp(name, "tsc", 3) == 0;
}

// The processor's counter in nanoseconds: a third of the price of steady_clock. Its rate is measured once.
class TickClock {
 public:
  TickClock() {
    if (!counter_is_reliable()) {
      return;
    }
    const Sample first = sample();
    while (wall_now_ns() - first.wall_ns < kCalibrationNs) {
    }
    const Sample last = sample();
    base_ticks_ = first.ticks;
    ns_per_tick_ = static_cast<double>(last.wall_ns - first.wall_ns) / static_cast<double>(last.ticks - first.ticks);
  }
  int64_t now_ns() const {
    if (ns_per_tick_ == 0) {
      return wall_now_ns();
    }
    return static_cast<int64_t>(static_cast<double>(read() - base_ticks_) * ns_per_tick_);
  }

 private:
  static constexpr int64_t kCalibrationNs = 2'000'000;  // against some 20 ns between the two reads of a sample
  static constexpr int kTries = 8;

  struct Sample {
    int64_t ticks;
    int64_t wall_ns;
  };
  static int64_t read() {
    return static_cast<int64_t>(c10::getApproximateTime());
  }
  // Both clocks at one moment: of several tries the one that nothing interrupted.
  static Sample sample() {
    Sample best{0, 0};
    int64_t smallest = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < kTries; ++i) {
      const int64_t before = read();
      const int64_t wall_ns = wall_now_ns();
      const int64_t gap = read() - before;
      if (gap < smallest) {
        smallest = gap;
        best = {before + gap / 2, wall_ns};
      }
    }
    return best;
  }

  int64_t base_ticks_ = 0;
  double ns_per_tick_ = 0;
};

const TickClock& ticks() {
  static const auto* clock = new TickClock;
  return *clock;
}

int64_t tick_now_ns() {
  return ticks().now_ns();
}

#else

int64_t tick_now_ns() {
  return wall_now_ns();
}

#endif

class HostClock {
 public:
  void configure(ClockMode mode, int64_t fixed_ns) {
    std::lock_guard<SpinLock> lock(lock_);
    const int64_t now = now_locked();
    mode_ = mode;
    fixed_ns_ = fixed_ns;
    offset_ns_ += now - now_locked();
  }
  void reset() {
    std::lock_guard<SpinLock> lock(lock_);
    offset_ns_ -= now_locked();
  }
  int64_t now() {
    std::lock_guard<SpinLock> lock(lock_);
    return now_locked();
  }
  bool runs() {
    std::lock_guard<SpinLock> lock(lock_);
    return pauses_ == 0;
  }
  int64_t dispatch() {
    std::lock_guard<SpinLock> lock(lock_);
    if (mode_ == ClockMode::kFixed) {
      offset_ns_ += fixed_ns_;
    }
    return now_locked();
  }
  int64_t pause() {
    std::lock_guard<SpinLock> lock(lock_);
    if (pauses_++ == 0 && mode_ == ClockMode::kMeasured) {
      paused_at_ns_ = tick_now_ns();
    }
    return now_locked();
  }
  // Another thread's pause holds for this one too.
  int64_t dispatch_while_paused(int64_t measured_ns) {
    std::lock_guard<SpinLock> lock(lock_);
    if (mode_ == ClockMode::kFixed) {
      offset_ns_ += fixed_ns_;
    } else if (pauses_ == 1) {
      offset_ns_ += measured_ns;
    }
    return now_locked();
  }
  void resume() {
    std::lock_guard<SpinLock> lock(lock_);
    if (pauses_ > 0 && --pauses_ == 0 && mode_ == ClockMode::kMeasured) {
      offset_ns_ -= std::max<int64_t>(0, tick_now_ns() - paused_at_ns_);
    }
  }
  void wait_until(int64_t time_ns) {
    std::lock_guard<SpinLock> lock(lock_);
    offset_ns_ += std::max<int64_t>(0, time_ns - now_locked());
  }

 private:
  int64_t now_locked() const {
    if (mode_ == ClockMode::kFixed) {
      return offset_ns_;
    }
    return (pauses_ > 0 ? paused_at_ns_ : tick_now_ns()) + offset_ns_;
  }

  SpinLock lock_;
  ClockMode mode_ = ClockMode::kMeasured;
  int64_t fixed_ns_ = 10'000;
  int64_t offset_ns_ = 0;
  int64_t paused_at_ns_ = 0;
  int pauses_ = 0;
};

HostClock& clock() {
  static auto* instance = [] {
    tick_now_ns();  // measures its rate, which is not to be done under the lock
    return new HostClock;
  }();
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

bool host_clock_runs() {
  return clock().runs();
}

int64_t host_dispatch_ns() {
  return clock().dispatch();
}

int64_t dispatch_while_paused_ns(int64_t measured_ns) {
  return clock().dispatch_while_paused(measured_ns);
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

int64_t elapsed_now_ns() {
  return tick_now_ns();
}

}  // namespace neuron
