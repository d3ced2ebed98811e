#!/usr/bin/env python3
"""A peer with three tools: it keeps notes as long as the session lives.

Bailey runs this program inside the walls. In config.toml:

    [peers.notes]
    command = ["/usr/bin/python3", "/path/to/notes.py"]
    effects = { add = "write", find = "read" }

`forget` is not named there, so Bailey asks before each call of it.

The program and Bailey speak over standard input and output in frames: the length of the JSON text as four
bytes, the highest first, and then the text. The first frame names the tools. Each question has a number, and
its answer has the same one. An answer may hold "tools" again, when they have changed.
"""

import json
import struct
import sys

TOOLS = [
    {
        "name": "add",
        "description": "Keep a note.",
        "schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
    },
    {
        "name": "find",
        "description": "Find the notes that hold a word.",
        "schema": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    },
    # What a peer says of its own tool counts only where it is stricter than the owner's word.
    {"name": "forget", "description": "Forget all notes.", "effect": "destructive"},
]


def write(document):
    body = json.dumps(document).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(body)) + body)
    sys.stdout.buffer.flush()


def read():
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit(0)
    return json.loads(sys.stdin.buffer.read(struct.unpack(">I", head)[0]))


def call(notes, tool, args):
    if tool == "add":
        notes.append(args["text"])
        return f"note {len(notes)} is kept"
    if tool == "find":
        return "\n".join(note for note in notes if args["word"] in note) or "no note holds that word"
    if tool == "forget":
        notes.clear()
        return "all notes are forgotten"
    raise ValueError(f"there is no tool {tool}")


def main():
    notes = []
    write({"ready": 1, "tools": TOOLS})
    while True:
        question = read()
        try:
            ok, text = True, call(notes, question["call"], question["args"])
        except Exception as error:  # The model is told, and may try again.
            ok, text = False, f"{type(error).__name__}: {error}"
        write({"number": question["number"], "ok": ok, "text": text})


main()
