#include "event_log.h"

#include "host_clock.h"

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

constexpr size_t kBufferedRecords = 8192;
constexpr auto kFlushInterval = std::chrono::milliseconds(200);

class EventLog {
 public:
  void open(const std::string& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    TORCH_CHECK(file >= 0, "The capture log ", path, " cannot be written: ", std::strerror(errno));
    std::lock_guard<std::mutex> lock(mutex_);
    file_ = file;
    error_ = 0;
    count_ = 0;
    pending_.clear();
    pending_.reserve(kBufferedRecords);
    open_ = true;
    flusher_ = std::thread(&EventLog::flush_while_open, this);
  }

  void close() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!open_) {
        return;
      }
      open_ = false;
    }
    closing_.notify_all();
    flusher_.join();
    flush();
    ::close(file_);
    file_ = -1;
  }

  void append(const Record& record) {
    bool is_full = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!open_ || error_ != 0) {
        return;
      }
      pending_.push_back(record);
      ++count_;
      is_full = pending_.size() >= kBufferedRecords;
    }
    if (is_full) {
      flush();
    }
  }

  void flush() {
    const HostClockPause not_the_users_time;
    std::lock_guard<std::mutex> order(write_mutex_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (pending_.empty() || file_ < 0) {
        return;
      }
      writing_.swap(pending_);
    }
    if (const int error = write_all()) {
      std::lock_guard<std::mutex> lock(mutex_);
      error_ = error;
    }
    writing_.clear();
  }

  void discard_pending() {
    std::lock_guard<std::mutex> lock(mutex_);
    pending_.clear();
  }

  uint64_t count() {
    std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }

  std::string error() {
    std::lock_guard<std::mutex> lock(mutex_);
    return error_ == 0 ? "" : std::strerror(error_);
  }

  void lock_for_fork() {
    write_mutex_.lock();
    mutex_.lock();
  }
  void unlock_after_fork() {
    mutex_.unlock();
    write_mutex_.unlock();
  }
  // A forked child has no flushing thread and must not write into its parent's log.
  void abandon_in_child() {
    if (open_) {
      open_ = false;
      pending_.clear();
      ::close(file_);
      file_ = -1;
      flusher_.detach();
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

  void flush_while_open() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (open_) {
      closing_.wait_for(lock, kFlushInterval);
      if (!pending_.empty()) {
        lock.unlock();
        flush();
        lock.lock();
      }
    }
  }

  std::mutex write_mutex_;  // keeps the order of the file; taken before `mutex_`
  std::mutex mutex_;
  std::condition_variable closing_;
  std::thread flusher_;
  std::vector<Record> pending_;
  std::vector<Record> writing_;
  uint64_t count_ = 0;
  int file_ = -1;
  int error_ = 0;
  bool open_ = false;
};

EventLog& event_log() {
  static auto* log = [] {
    auto* made = new EventLog;
    pthread_atfork(
        [] { event_log().lock_for_fork(); }, [] { event_log().unlock_after_fork(); },
        [] { event_log().abandon_in_child(); });
    std::atexit([] { event_log().flush(); });
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

void append_record(const Record& record) {
  event_log().append(record);
}

void flush_event_log() {
  event_log().flush();
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
