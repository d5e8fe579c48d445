# SPDX-License-Identifier: Apache-2.0
"""The tools of the agents in this directory: what the model reads about them, and what happens when it calls one."""
import lodge

MOST = 20_000  # characters of one result: more is of no use to a model

TOOLS = {
    "bash": {
        "description": "Run bash in a Linux machine of this conversation. Each call is a new shell; files stay. There is no network.",
        "schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
    "write_file": {
        "description": "Write a text file in the machine. Directories are created as needed.",
        "schema": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                   "required": ["path", "content"]},
    },
}


def shorten(text):
    """Keep both ends: the beginning says what ran, the end how it failed."""
    if len(text) <= MOST:
        return text
    return f"{text[:MOST // 2]}\n... ({len(text) - MOST} characters left out) ...\n{text[-MOST // 2:]}"


def bash(box, command):
    r = box.run(command, timeout=60)
    notes = [r.timed_out and "killed after 60 seconds", r.truncated and "part of the output is missing",
             *(hit for hit in r.limits_hit if hit not in ("TIMEOUT", "LIMIT_OUTPUT")),
             f"exit code {r.exit_code}" if r.signal is None else f"killed by signal {r.signal}"]
    return f"{shorten(r.stdout)}{shorten(r.stderr)}({', '.join(n for n in notes if n)})", r.ok


def write_file(box, path, content):
    return f"wrote {box.files.write(path, content)['size']} bytes", True


def call(box, name, arguments):
    """Return the result as text, and whether the call succeeded.

    What the model did wrong is a result: it reads it and tries again. What it cannot change is an exception: the key,
    the service, the connection."""
    try:
        tool = {"bash": bash, "write_file": write_file}[name]
        if not isinstance(arguments, dict) or set(arguments) != set(TOOLS[name]["schema"]["required"]):
            return f"{name}: the arguments must be {', '.join(TOOLS[name]['schema']['required'])}", False
        return tool(box, **arguments)
    except KeyError:
        return f"no tool {name}; there are {', '.join(TOOLS)}", False
    except (lodge.InvalidError, lodge.DeniedError, lodge.PolicyError, lodge.LimitError, lodge.NotFoundError) as e:
        return f"{name}: {e}", False


def sandbox(conversation):
    """The sandbox of a conversation, which is kept with its files; without a name, one that `with` deletes."""
    options = {"memory": "512M", "idle_timeout": 600}
    return lodge.Sandbox.get_or_create(conversation, **options) if conversation else lodge.Sandbox.create(**options)
