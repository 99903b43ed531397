"""`vllm serve`, whose clients hang up: after some tokens, and while others leave no room for their request.

Arguments: the model's folder, more options of the server.
"""

import json
import signal
import sys
from http.client import HTTPResponse

from serve import ask, asked, complete, free_port, start, wait_for

AT_ONCE, TOKENS, SHORT = 4, 100, 8


def read(answer: HTTPResponse, chunks: int) -> None:
    for _ in range(chunks):
        while not answer.readline().startswith(b"data:"):
            pass


if __name__ == "__main__":
    port = free_port()
    server = start(port, *sys.argv[2:])
    wait_for(server, port)
    clients = [ask(port, {**asked(number, TOKENS), "stream": True}) for number in range(AT_ONCE)]
    answers = [client.getresponse() for client in clients]
    for answer in answers:
        read(answer, 2)
    waiting = ask(port, {**asked(AT_ONCE, TOKENS), "stream": True})
    read(answers[0], 4)
    for client in (waiting, *clients[1:]):
        client.close()
    answers[0].read()
    print("tokens", json.dumps(complete(port, 0, SHORT)))
    server.send_signal(signal.SIGINT)
    server.wait()
