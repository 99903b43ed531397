// Shapes and time alone: operators on device tensors are worked out by PyTorch's meta kernels and compute nothing, so that
// a model whose values no machine here could hold still runs. Device memory is then reserved and never written: it reads
// as zeros and takes none of the host's.
//
// Tensors of integers and comparisons are still computed unless they are huge: programs look into them to decide what to
// do next. A large result of small ones (a mask of all rows and columns) is not, nor what is made of such results alone.
// Places that values would choose are chosen in turn.
#pragma once

#include "operators.h"

namespace neuron {

// `NEURON_TOOLS_VALUES=skip` was set when the process began.
bool values_are_skipped();

// Whether the values of this tensor are left out.
bool skips_values_of(const at::Tensor& tensor);

// Whether a copy to the device leaves the values out: many int32 from the host are a model's weights, several packed into
// one. Maps that decide are made on the device; tokens, labels and masks from the host are of other types.
bool skips_values_from_host(const at::Tensor& from, const at::Tensor& to);

// Whether an operation on the arguments that end `stack` need not compute.
bool may_skip(const OperatorInfo& info, const Stack& stack);

// The NeuronCore of the first device tensor among the arguments.
int device_of_arguments(const OperatorInfo& info, const Stack& stack);

// Takes the arguments off and pushes results of the right shape whose memory nobody wrote. False, with the stack as it
// was, where no meta kernel knows the shapes or programs may decide by the results: then they must be computed.
bool skip_operation(const OperatorInfo& info, Stack* stack);

// Memory that reads as zeros and takes no place until it is written.
c10::Storage reserve_host_storage(size_t bytes);

}  // namespace neuron
