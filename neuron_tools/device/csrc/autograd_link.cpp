#include "autograd_link.h"

#include "python_stack.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace neuron {
namespace {

thread_local ForwardOperation running;
thread_local ForwardOperation recent;
constexpr uint32_t kNoNode = UINT32_MAX;
thread_local uint32_t stack_below = kNoNode;  // of the node that runs: the Python that called for the backward pass

std::mutex link_mutex;
std::unordered_map<uint64_t, uint32_t> ordinals;  // by autograd's thread number
std::atomic<uint64_t> link_numbering{1};
std::optional<at::CallbackHandle> watcher;

struct KnownOrdinal {
  uint64_t numbering = 0;
  uint32_t ordinal = 0;
};
thread_local KnownOrdinal own;

uint32_t ordinal_of(uint64_t autograd_thread) {
  std::lock_guard<std::mutex> lock(link_mutex);
  const auto next = static_cast<uint32_t>(ordinals.size());
  return ordinals.emplace(autograd_thread, next).first->second;
}

struct OuterOperation : at::ObserverContext {
  ForwardOperation outer;
  uint32_t outer_stack_below = kNoNode;
};

std::unique_ptr<at::ObserverContext> node_begins(const at::RecordFunction& node) {
  auto context = std::make_unique<OuterOperation>();
  context->outer = running;
  context->outer_stack_below = std::exchange(stack_below, capture_stack());
  running = {node.seqNr(), node.forwardThreadId() == 0 ? 0 : ordinal_of(node.forwardThreadId())};
  if (running.sequence >= 0) {
    recent = running;
  }
  return context;
}

void node_ends(const at::RecordFunction&, at::ObserverContext* context) {
  const auto* before = static_cast<OuterOperation*>(context);
  running = before->outer;
  stack_below = before->outer_stack_below;
}

}  // namespace

void watch_backward() {
  if (!watcher) {
    watcher = at::addGlobalCallback(
        at::RecordFunctionCallback(&node_begins, &node_ends).scopes({at::RecordScope::BACKWARD_FUNCTION}));
  }
}

void stop_watching_backward() {
  if (watcher) {
    at::removeCallback(*watcher);
    watcher.reset();
  }
}

ForwardOperation current_forward(bool is_worker) {
  return running.sequence < 0 && is_worker ? recent : running;
}

bool is_autograds_own(uint32_t stack) {
  return stack == stack_below;
}

bool in_backward_pass() {
  return torch::autograd::get_current_graph_task_id() != -1;
}

int64_t last_made_sequence() {
  return static_cast<int64_t>(at::sequence_number::peek()) - 1;
}

uint32_t thread_ordinal() {
  const uint64_t current = link_numbering.load(std::memory_order_relaxed);
  if (own.numbering != current) {
    own = {current, ordinal_of(at::RecordFunction::currentThreadId())};
  }
  return own.ordinal;
}

void reset_threads() {
  std::lock_guard<std::mutex> lock(link_mutex);
  ordinals.clear();
  ++link_numbering;
}

}  // namespace neuron
