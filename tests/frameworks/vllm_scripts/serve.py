"""`vllm serve`, asked by HTTP for two completions and stopped as by Ctrl-C."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from generate import LENGTHS, prompt

with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
ADDRESS = f"http://127.0.0.1:{port}"
COMMAND = "from vllm.entrypoints.cli.main import main; main()"
OPTIONS = "--host 127.0.0.1 --dtype float32 --max-model-len 128 --max-num-seqs 4 --served-model-name tiny"


def wait_for(server: "subprocess.Popen[bytes]") -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"{ADDRESS}/health").close()
            return
        except urllib.error.URLError:
            time.sleep(0.2)
    sys.exit(f"vllm serve ended with {server.returncode}")


def complete(text: str) -> str:
    asked = {"model": "tiny", "prompt": text, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
    request = urllib.request.Request(
        f"{ADDRESS}/v1/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        found: str = json.load(answer)["choices"][0]["text"]
    return found


if __name__ == "__main__":
    options = ["serve", sys.argv[1], "--port", str(port), *OPTIONS.split()]
    server = subprocess.Popen([sys.executable, "-c", COMMAND, *options], stdout=sys.stderr)
    wait_for(server)
    words = [complete(prompt(number, LENGTHS[number])) for number in range(2)]
    server.send_signal(signal.SIGINT)
    server.wait()
    print("tokens", json.dumps([[int(word[1:]) for word in text.split()] for text in words]))
