# SPDX-License-Identifier: Apache-2.0
"""A model server on loopback that follows a script, with the message shapes of Anthropic and OpenAI. It checks what
it is sent as strictly as the real ones: a wrong message is answered with status 400, and the test sees why."""
import contextlib
import http.server
import json
import threading

ANSWER = "The program said: "
# what the model wants in each of its replies: a text, and calls of (tool, arguments)
SCRIPT = [
    ("I write a program and run it.", [("write_file", {"path": "work/hello.sh", "content": "echo hello from $((6 * 7)); ls work\n"}),
                                       ("bash", {"command": "sh work/hello.sh"})]),
    ("", [("bash", {"command": "echo wrong >&2; exit 3"}), ("bash", {"cmd": "ls"}), ("browse", {"url": "http://example.org"}),
          ("write_file", {"path": "/proc/1/mem", "content": "x"})]),
    ("", [("bash", {"command": "head -c 100000 /dev/zero | tr '\\0' x; echo end"})]),
]


class Refused(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Refused(what)


class Anthropic:
    path, key = "/v1/messages", "x-api-key"

    @staticmethod
    def check(body, headers):
        need(headers["x-api-key"] == "model-key" and headers["anthropic-version"] == "2023-06-01", "headers")
        need(isinstance(body["max_tokens"], int) and body["model"] == "scripted", "model or max_tokens")
        need(all(set(t) == {"name", "description", "input_schema"} for t in body["tools"]), "tools")
        open_ids = []
        for i, m in enumerate(body["messages"]):
            need(set(m) == {"role", "content"} and m["role"] == ("user", "assistant")[i % 2], f"message {i}: role")
            blocks = [{"type": "text", "text": m["content"]}] if isinstance(m["content"], str) else m["content"]
            results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            need(results == open_ids, f"message {i}: tool_use ids {open_ids} need tool_result blocks, not {results}")
            need(all(isinstance(b["content"], str) and isinstance(b["is_error"], bool) for b in blocks if b["type"] == "tool_result"),
                 f"message {i}: content of a tool_result")
            open_ids = [b["id"] for b in blocks if b["type"] == "tool_use"]
        need(not open_ids, "the last message has no tool_result")

    @staticmethod
    def results(body):
        """Text and success of the last calls."""
        last = body["messages"][-1]["content"]
        return [] if isinstance(last, str) else [(b["content"], not b["is_error"]) for b in last if b["type"] == "tool_result"]

    @staticmethod
    def reply(text, calls):
        blocks = [{"type": "text", "text": text}] if text else []
        blocks += [{"type": "tool_use", "id": f"toolu_{i}", "name": n, "input": a} for i, n, a in calls]
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": blocks,
                "stop_reason": "tool_use" if calls else "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}


class OpenAI:
    path = "/v1/chat/completions"

    @staticmethod
    def check(body, headers):
        need(headers["authorization"] == "Bearer model-key", "authorization")
        need(body["model"] == "scripted", "model")
        need(all(t["type"] == "function" and {"name", "description", "parameters"} <= set(t["function"]) for t in body["tools"]), "tools")
        open_ids = []
        for i, m in enumerate(body["messages"]):
            if m["role"] == "tool":
                need(m["tool_call_id"] in open_ids, f"message {i}: no tool_call {m['tool_call_id']}")
                need(isinstance(m["content"], str), f"message {i}: content")
                open_ids.remove(m["tool_call_id"])
                continue
            need(not open_ids, f"message {i}: tool_calls {open_ids} need tool messages")
            need(m["role"] in ("user", "assistant"), f"message {i}: role")
            open_ids = [c["id"] for c in m.get("tool_calls") or () if c["type"] == "function" and isinstance(c["function"]["arguments"], str)]
        need(not open_ids, "tool_calls without tool messages")

    @staticmethod
    def results(body):
        """The API has no mark for failure."""
        messages, found = body["messages"], []
        while messages[-1 - len(found)]["role"] == "tool":
            found.insert(0, (messages[-1 - len(found)]["content"], None))
        return found

    @staticmethod
    def reply(text, calls):
        message = {"role": "assistant", "content": text or None, "refusal": None}
        if calls:
            message["tool_calls"] = [{"id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
                                     for i, n, a in calls]
        return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
                "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


class ModelServer:
    """`results` has what the calls of each scripted reply gave: lists of (text, success)."""

    def __init__(self, script=None):
        self.script, self.results, self.refused, self.asked, self.calls = script or SCRIPT, [], [], 0, 0
        self.spoil = {}  # by the id of a call: arguments that are no JSON
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    status, answer = 200, server.answer(self.path, json.loads(body), self.headers)
                except (Refused, KeyError, ValueError, TypeError) as e:
                    server.refused.append(repr(e))
                    status, answer = 400, {"type": "error", "error": {"type": "invalid_request_error", "message": repr(e)}}
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def environment(self):
        return {"MODEL": "scripted", "ANTHROPIC_API_KEY": "model-key", "ANTHROPIC_BASE_URL": self.url,
                "OPENAI_API_KEY": "model-key", "OPENAI_BASE_URL": self.url + "/v1"}

    def answer(self, path, body, headers):
        api, = [a for a in (Anthropic, OpenAI) if a.path == path]
        api.check(body, headers)
        if self.asked:
            self.results.append(api.results(body))
        self.asked += 1
        text, calls = self.script[self.asked - 1] if self.asked <= len(self.script) else (self.final(), [])
        numbered = []
        for name, arguments in calls:
            self.calls += 1
            numbered.append((self.calls, name, arguments))
        reply = api.reply(text, numbered)
        for call in reply.get("choices", [{"message": {}}])[0]["message"].get("tool_calls", ()):
            call["function"]["arguments"] = self.spoil.get(call["id"], call["function"]["arguments"])
        return reply

    def final(self):
        """The answer repeats what the second call gave, or the only one."""
        return ANSWER + [text for results in self.results for text, _ in results][:2][-1]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def check(server, out):
    """What an agent must have done with SCRIPT, whatever API and language it used."""
    assert server.refused == [] and len(server.results) == len(SCRIPT)
    texts = [[text for text, _ in results] for results in server.results]
    succeeded = [[ok for _, ok in results] for results in server.results]
    assert succeeded in ([[None] * len(calls) for _, calls in SCRIPT], [[True, True], [False] * 4, [True]]), succeeded
    assert texts[0] == ["wrote 36 bytes", "hello from 42\nhello.sh\n(exit code 0)"], texts[0]
    assert texts[1][:3] == ["wrong\n(exit code 3)", "bash: the arguments must be command",
                            "no tool browse; there are bash, write_file"], texts[1]
    assert texts[1][3].startswith("write_file: "), texts[1][3]
    assert "(80004 characters left out)" in texts[2][0] and texts[2][0].endswith("xend\n(exit code 0)") and len(texts[2][0]) < 21000
    assert out == ANSWER + "hello from 42\nhello.sh\n(exit code 0)\n", out


@contextlib.contextmanager
def model_server(script=None):
    with contextlib.closing(ModelServer(script)) as server:
        yield server
