#include "names.h"

#include "operators.h"
#include "python_callbacks.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace neuron {
namespace {

std::mutex name_mutex;
std::unordered_map<std::string, uint32_t> ids;
std::vector<std::string> texts;  // of id 1, 2, ...
std::unordered_map<uint32_t, std::string> modules;
std::atomic<uint64_t> name_numbering{1};  // counts the resets

}  // namespace

uint32_t intern_name(const std::string& text) {
  uint32_t id = 0;
  bool is_new = false;
  {
    std::lock_guard<std::mutex> lock(name_mutex);
    const auto next = static_cast<uint32_t>(ids.size() + 1);
    const auto [entry, inserted] = ids.emplace(text, next);
    id = entry->second;
    is_new = inserted;
    if (is_new) {
      texts.push_back(text);
    }
  }
  if (is_new) {
    tell_name(id, text);
  }
  return id;
}

uint32_t name_of(const OperatorInfo& info) {
  const uint64_t current = name_numbering.load(std::memory_order_relaxed);
  const uint64_t known = info.announced_name.load(std::memory_order_relaxed);
  if (known >> 32 == current) {
    return static_cast<uint32_t>(known);
  }
  const uint32_t id = intern_name(info.name);
  info.announced_name.store(current << 32 | id, std::memory_order_relaxed);
  return id;
}

const std::string& operator_name(const OperatorInfo& info) {
  return info.name;
}

std::string name_text(uint32_t name) {
  std::lock_guard<std::mutex> lock(name_mutex);
  return name > 0 && name <= texts.size() ? texts[name - 1] : "";
}

void reset_names() {
  std::lock_guard<std::mutex> lock(name_mutex);
  ids.clear();
  texts.clear();
  modules.clear();
  ++name_numbering;
}

void describe_module(uint32_t module, const std::string& text) {
  std::lock_guard<std::mutex> lock(name_mutex);
  modules[module] = text;
}

std::string module_text(uint32_t module) {
  std::lock_guard<std::mutex> lock(name_mutex);
  const auto found = modules.find(module);
  return found == modules.end() ? "" : found->second;
}

}  // namespace neuron
