#include "device.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

namespace neuron {
namespace {

int default_count = 2;

int integer_variable(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') {
    return otherwise;
  }
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return end == text ? otherwise : static_cast<int>(value);
}

// "0-3,6" names five cores; 0 where the text names none.
int count_core_list(const char* text) {
  int count = 0;
  while (text != nullptr && *text != '\0') {
    char* end = nullptr;
    const long first = std::strtol(text, &end, 10);
    if (end == text) {
      return 0;
    }
    long last = first;
    if (*end == '-') {
      last = std::strtol(end + 1, &end, 10);
    }
    count += static_cast<int>(std::max(0L, last - first + 1));
    text = *end == ',' ? end + 1 : nullptr;
  }
  return count;
}

int count_from_environment() {
  int count = integer_variable("NEURON_RT_NUM_CORES", 0);
  if (count <= 0) {
    count = count_core_list(std::getenv("NEURON_RT_VISIBLE_CORES"));
  }
  if (count <= 0) {
    count = std::max(default_count, integer_variable("LOCAL_WORLD_SIZE", 0));
  }
  return std::min(count, kMaxDevices);
}

int initial_device() {
  static const int initial = std::max(0, integer_variable("LOCAL_RANK", 0)) % device_count();
  return initial;
}

std::atomic<int> process_device{-1};
thread_local int thread_device = -1;

}  // namespace

void set_default_device_count(int count) {
  default_count = std::max(1, count);
}

int device_count() {
  static const int count = count_from_environment();
  return count;
}

int current_device() {
  if (thread_device >= 0) {
    return thread_device;
  }
  const int chosen = process_device.load(std::memory_order_relaxed);
  return chosen >= 0 ? chosen : initial_device();
}

void check_device(int64_t index) {
  TORCH_CHECK(
      index >= 0 && index < device_count(),
      "There is no device neuron:", index, ": this process has ", device_count(),
      " NeuronCore(s); set NEURON_RT_NUM_CORES to have more.");
}

void set_current_device(int index) {
  check_device(index);
  thread_device = index;
}

void choose_device(int index) {
  set_current_device(index);
  process_device.store(index, std::memory_order_relaxed);
}

int exchange_current_device(int index) {
  const int previous = current_device();
  if (index >= 0) {
    set_current_device(index);
  }
  return previous;
}

int index_of(c10::Device device) {
  return device.index() < 0 ? current_device() : device.index();
}

}  // namespace neuron
