// Reading a table that threads share.
#pragma once

#include <cstdint>
#include <mutex>

namespace neuron {

// Whether the table has `key`; `value` is then what stands there.
template <class Table>
bool look_up(std::mutex& mutex, const Table& table, uint64_t key, typename Table::mapped_type* value) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = table.find(key);
  if (found != table.end()) {
    *value = found->second;
  }
  return found != table.end();
}

}  // namespace neuron
