"""`vllm serve`, asked by HTTP for two completions and stopped as by Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPConnection

from generate import LENGTHS, prompt

COMMAND = "from vllm.entrypoints.cli.main import main; main()"
OPTIONS = "--host 127.0.0.1 --dtype float32 --max-model-len 128 --max-num-seqs 4 --served-model-name tiny"
PATH = "/v1/completions"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def start(port: int, *options: str, **environment: str) -> "subprocess.Popen[bytes]":
    """A server of the model that the script's first argument names."""
    command = [sys.executable, "-c", COMMAND, "serve", sys.argv[1], "--port", str(port), *OPTIONS.split()]
    return subprocess.Popen([*command, *options], stdout=sys.stderr, env={**os.environ, **environment})


def wait_for(server: "subprocess.Popen[bytes]", port: int) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
            return
        except urllib.error.URLError:
            time.sleep(0.2)
    sys.exit(f"vllm serve ended with {server.returncode}")


def ask(port: int, body: "dict[str, object]") -> HTTPConnection:
    """A connection by which a request has been sent."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("POST", PATH, json.dumps(body), {"Content-Type": "application/json"})
    return connection


def asked(number: int, tokens: int) -> "dict[str, object]":
    """The request for so many tokens after a prompt."""
    text = prompt(number, LENGTHS[number])
    return {"model": "tiny", "prompt": text, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}


def complete(port: int, number: int, tokens: int) -> "list[int]":
    """The tokens of an answer."""
    answer = json.load(ask(port, asked(number, tokens)).getresponse())
    return [int(word[1:]) for word in answer["choices"][0]["text"].split()]


if __name__ == "__main__":
    port = free_port()
    server = start(port)
    wait_for(server, port)
    tokens = [complete(port, number, 8) for number in range(2)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.killpg(0, signal.SIGINT)  # as a terminal: the server, its engine, and this script
    server.wait()
    print("tokens", json.dumps(tokens))
