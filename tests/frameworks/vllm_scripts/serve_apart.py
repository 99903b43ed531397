"""Two `vllm serve`, one prefills and one decodes, behind a proxy that asks both, as vLLM's examples have it.

Arguments: the model's folder, how many tokens each answer has, how many cores each server has.
"""

import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from generate import LENGTHS
from serve import ask, complete, free_port, start, wait_for

ROLES = ("kv_producer", "kv_consumer")


class Proxy(BaseHTTPRequestHandler):
    """Has a prompt prefilled, then answered."""

    ports: "tuple[int, ...]" = ()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prefill, decode = self.ports
        ask(prefill, {**body, "max_tokens": 1}).getresponse().read()
        answer = ask(decode, body).getresponse().read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    tokens, cores = (int(each) for each in sys.argv[2:])
    kv_port, Proxy.ports = free_port(), (free_port(), free_port())
    servers = []
    for place, (role, port) in enumerate(zip(ROLES, Proxy.ports)):
        transfer = {"kv_connector": "NeuronConnector", "kv_role": role, "kv_port": kv_port}
        options = ("--kv-transfer-config", json.dumps(transfer), "--tensor-parallel-size", str(cores))
        own = ",".join(str(place * cores + core) for core in range(cores))
        servers.append(start(port, *options, "--no-enable-prefix-caching", NEURON_RT_VISIBLE_CORES=own))
    for server, port in zip(servers, Proxy.ports):
        wait_for(server, port)
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    Thread(target=proxy.serve_forever, daemon=True).start()
    with ThreadPoolExecutor(4) as clients:
        answers = [
            clients.submit(complete, proxy.server_address[1], number, tokens)
            for number in range(len(LENGTHS))
        ]
    for server in servers:
        server.send_signal(signal.SIGINT)
    for server in servers:
        server.wait()
    print("tokens", json.dumps([answer.result() for answer in answers]))
