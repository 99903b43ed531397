// The kernel behind almost every operator: it shows the operator's arguments to the CPU as aliases, lets
// the CPU compute, and gives the results back as device tensors. Values are the host's; time is not.
#pragma once

#include "operators.h"

namespace neuron {

// Computes on a stack whose tensors are CPU aliases: takes the arguments off and pushes the results.
using HostFunction = void (*)(const OperatorInfo& info, Stack* stack, int device);

// The operator's own CPU kernel.
void call_cpu_kernel(const OperatorInfo& info, Stack* stack, int device);

void run_on_host(const OperatorInfo& info, Stack* stack, HostFunction compute);

template <HostFunction Compute>
void boxed_kernel(const c10::OperatorHandle& handle, Stack* stack) {
  run_on_host(operator_info(handle), stack, Compute);
}

}  // namespace neuron
