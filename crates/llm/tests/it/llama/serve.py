"""A server of llama.cpp on the loopback, with a model that is made here: it says one sentence, whatever it is asked.

Each token's embedding has a direction of its own, attention and feed-forward add nothing, and the output leads from each
direction to the token that follows. So the server, its tokens, its template and its errors are real, and an answer is known.

    python3 serve.py FOLDER PORT CONTEXT FORWARD

CONTEXT is how many tokens fit; FORWARD is how wide the feed-forward is, which is how long the model takes to load.
"""

import math
import os
import struct
import sys
import time

import xllamacpp

SENTENCE = ":Done it."  # What the template ends with, and each character once.
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
WIDTH, HEADS = 128, 2
FOLDER, PORT, CONTEXT, FORWARD = sys.argv[1], *map(int, sys.argv[2:5])
UNKNOWN, BEGIN, END = 0, 1, 2
NORMAL, NO_TOKEN, CONTROL, BYTE = 1, 2, 3, 6

letters = ["\u2581", "\n"] + [chr(c) for c in range(33, 127)]
tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + letters
kinds = [NO_TOKEN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(letters)
place = {letter: 3 + 256 + n for n, letter in enumerate(letters)}
path = [place[letter] for letter in SENTENCE.replace(" ", "\u2581")] + [END]


def direction(token):
    return max(0, token - 258)


def matrix(rows, columns, ones=()):
    return (columns, rows), {row * columns + column: value for row, column, value in ones}


def vector(value):
    return (WIDTH,), dict.fromkeys(range(WIDTH), value)


tensors = {
    "token_embd.weight": matrix(len(tokens), WIDTH, [(t, direction(t), 1.0) for t in range(len(tokens))]),
    "output.weight": matrix(
        len(tokens), WIDTH, [(to, direction(at), 10.0) for at, to in zip(path, path[1:])] + [(END, 0, 10.0)]
    ),
    "output_norm.weight": vector(1.0),
    "blk.0.attn_norm.weight": vector(1.0),
    "blk.0.ffn_norm.weight": vector(1.0),
    "blk.0.ffn_gate.weight": matrix(FORWARD, WIDTH),
    "blk.0.ffn_up.weight": matrix(FORWARD, WIDTH),
    "blk.0.ffn_down.weight": matrix(WIDTH, FORWARD),
    **{f"blk.0.attn_{name}.weight": matrix(WIDTH, WIDTH) for name in ("q", "k", "v", "output")},
}


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


# A value's type in a GGUF file, and how it is written.
WRITTEN = {
    "u32": (4, lambda value: struct.pack("<I", value)),
    "i32": (5, lambda value: struct.pack("<i", value)),
    "f32": (6, lambda value: struct.pack("<f", value)),
    "bool": (7, lambda value: struct.pack("<?", value)),
    "text": (8, text),
}


def one(name, kind, value):
    number, write = WRITTEN[kind]
    return text(name) + struct.pack("<I", number) + write(value)


def many(name, kind, values):
    number, write = WRITTEN[kind]
    return text(name) + struct.pack("<IIQ", 9, number, len(values)) + b"".join(map(write, values))


def write(path):
    """Writes the model; what is zero is a hole in the file."""
    facts = [
        one("general.architecture", "text", "llama"),
        one("general.name", "text", "one sentence"),
        one("llama.context_length", "u32", CONTEXT),
        one("llama.embedding_length", "u32", WIDTH),
        one("llama.block_count", "u32", 1),
        one("llama.feed_forward_length", "u32", FORWARD),
        one("llama.attention.head_count", "u32", HEADS),
        one("llama.attention.head_count_kv", "u32", HEADS),
        one("llama.attention.layer_norm_rms_epsilon", "f32", 1e-6),
        one("llama.rope.dimension_count", "u32", WIDTH // HEADS),
        one("llama.vocab_size", "u32", len(tokens)),
        one("tokenizer.ggml.model", "text", "llama"),
        one("tokenizer.ggml.pre", "text", "default"),
        many("tokenizer.ggml.tokens", "text", tokens),
        many("tokenizer.ggml.scores", "f32", [0.0] * len(tokens)),
        many("tokenizer.ggml.token_type", "i32", kinds),
        one("tokenizer.ggml.unknown_token_id", "u32", UNKNOWN),
        one("tokenizer.ggml.bos_token_id", "u32", BEGIN),
        one("tokenizer.ggml.eos_token_id", "u32", END),
        one("tokenizer.ggml.add_space_prefix", "bool", False),
        one("tokenizer.chat_template", "text", TEMPLATE),
    ]
    heads, values, size = b"", [], 0
    for name, (shape, ones) in tensors.items():
        heads += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        heads += struct.pack("<IQ", 0, size)
        values += [(size + 4 * at, value) for at, value in ones.items()]
        size += -(-4 * math.prod(shape) // 32) * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts)) + b"".join(facts) + heads
    head += bytes(-len(head) % 32)
    with open(path, "wb") as file:
        file.write(head)
        for at, value in values:
            file.seek(len(head) + at)
            file.write(struct.pack("<f", value))
        file.truncate(len(head) + size)


write(f"{FOLDER}/model.gguf")
params = xllamacpp.CommonParams()
params.model.path = f"{FOLDER}/model.gguf"
params.hostnames = ["127.0.0.1"]
params.port = PORT
params.n_ctx = CONTEXT
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.n_gpu_layers = 0
params.use_jinja = True
params.check_tensors = True
params.api_keys = [os.environ["API_KEY"]]
server = xllamacpp.Server(params)
while True:
    time.sleep(60)
