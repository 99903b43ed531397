"""A worker that needs more to end than vLLM grants by itself."""

import time

from neuron_tools.frontends.vllm_platform.worker import NeuronWorker


class SlowWorker(NeuronWorker):
    """Ends in seven seconds."""

    def shutdown(self) -> None:
        """End late."""
        super().shutdown()
        time.sleep(7)
        print("the worker has ended", flush=True)
