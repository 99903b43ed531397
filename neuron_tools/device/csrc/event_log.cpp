#include "event_log.h"

#include "host_clock.h"
#include "spin_lock.h"

#include <c10/util/Exception.h>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace neuron {
namespace {

constexpr size_t kRecordsToWake = 8192;  // many: waking a thread costs the one that wakes it some microseconds
constexpr size_t kBufferedRecords = 4 * kRecordsToWake;
constexpr auto kFlushInterval = std::chrono::milliseconds(200);

// A thread of its own writes, so that the program does not wait for the file system unless it is far ahead of it.
class EventLog {
 public:
  void open(const std::string& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    TORCH_CHECK(file >= 0, "The capture log ", path, " cannot be written: ", std::strerror(errno));
    closing_ = false;
    {
      std::lock_guard<SpinLock> lock(lock_);
      file_ = file;
      error_ = 0;
      count_ = 0;
      pending_.clear();
      pending_.reserve(kBufferedRecords);
      writing_.reserve(kBufferedRecords);
      open_ = true;
    }
    writer_ = std::thread(&EventLog::write_while_open, this);
  }

  void close() {
    {
      std::lock_guard<SpinLock> lock(lock_);
      if (!open_) {
        return;
      }
      open_ = false;
    }
    {
      std::lock_guard<std::mutex> lock(wake_mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    writer_.join();
    write_pending();
    ::close(file_);
    file_ = -1;
  }

  bool append(const Record& record) {
    size_t pending = 0;
    {
      std::lock_guard<SpinLock> lock(lock_);
      if (!open_ || error_ != 0) {
        return true;
      }
      pending_.push_back(record);
      ++count_;
      pending = pending_.size();
    }
    if (pending == kRecordsToWake) {
      wake_.notify_one();
    }
    return pending < kBufferedRecords;
  }

  void write_pending() {
    std::lock_guard<std::mutex> order(write_mutex_);
    {
      std::lock_guard<SpinLock> lock(lock_);
      if (pending_.empty() || file_ < 0) {
        return;
      }
      writing_.swap(pending_);
    }
    if (const int error = write_all()) {
      std::lock_guard<SpinLock> lock(lock_);
      error_ = error;
    }
    writing_.clear();
  }

  void discard_pending() {
    std::lock_guard<SpinLock> lock(lock_);
    pending_.clear();
  }

  uint64_t count() {
    std::lock_guard<SpinLock> lock(lock_);
    return count_;
  }

  std::string error() {
    std::lock_guard<SpinLock> lock(lock_);
    return error_ == 0 ? "" : std::strerror(error_);
  }

  void lock_for_fork() {
    write_mutex_.lock();
    wake_mutex_.lock();
    lock_.lock();
  }
  void unlock_after_fork() {
    lock_.unlock();
    wake_mutex_.unlock();
    write_mutex_.unlock();
  }
  // A forked child has no writing thread and must not write into its parent's log.
  void abandon_in_child() {
    if (open_) {
      open_ = false;
      pending_.clear();
      ::close(file_);
      file_ = -1;
      writer_.detach();
    }
    unlock_after_fork();
  }

 private:
  int write_all() {
    const char* bytes = reinterpret_cast<const char*>(writing_.data());
    size_t left = writing_.size() * sizeof(Record);
    while (left > 0) {
      const ssize_t written = ::write(file_, bytes, left);
      if (written < 0 && errno != EINTR) {
        return errno;
      }
      if (written > 0) {
        bytes += written;
        left -= static_cast<size_t>(written);
      }
    }
    return 0;
  }

  void write_while_open() {
    std::unique_lock<std::mutex> lock(wake_mutex_);
    while (!closing_) {
      wake_.wait_for(lock, kFlushInterval);
      lock.unlock();
      write_pending();
      lock.lock();
    }
  }

  std::mutex write_mutex_;  // keeps the order of the file; taken before the others
  std::mutex wake_mutex_;
  SpinLock lock_;
  std::condition_variable wake_;
  std::thread writer_;
  std::vector<Record> pending_;
  std::vector<Record> writing_;
  uint64_t count_ = 0;
  int file_ = -1;
  int error_ = 0;
  bool open_ = false;
  bool closing_ = false;  // guarded by `wake_mutex_`
};

EventLog& event_log() {
  static auto* log = [] {
    auto* made = new EventLog;
    pthread_atfork(
        [] { event_log().lock_for_fork(); }, [] { event_log().unlock_after_fork(); },
        [] { event_log().abandon_in_child(); });
    std::atexit([] { event_log().write_pending(); });
    return made;
  }();
  return *log;
}

}  // namespace

void open_event_log(const std::string& path) {
  event_log().open(path);
}

void close_event_log() {
  event_log().close();
}

bool append_record(const Record& record) {
  return event_log().append(record);
}

void flush_event_log() {
  const HostClockPause not_the_users_time;
  event_log().write_pending();
}

void discard_pending_records() {
  event_log().discard_pending();
}

uint64_t record_count() {
  return event_log().count();
}

std::string event_log_error() {
  return event_log().error();
}

}  // namespace neuron
