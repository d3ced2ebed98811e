#!/usr/bin/env python3
"""Checks a proof of `bailey audit prove`, or an archive, with nothing but Python: audit_check.py FILE KEY"""
import base64, hashlib, json, sys

# Ed25519 (RFC 8032): points as X, Y, Z, T on the curve -x^2 + y^2 = 1 + d x^2 y^2 over the integers modulo P.
P, Q = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)

def need(holds, why):
    if not holds:
        raise ValueError(why)

def add(a, b):
    m, n = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    o, p = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = n - m, p - o, p + o, n + m
    return e * f % P, g * h % P, f * g % P, e * h % P

def times(k, point):
    total = (0, 1, 1, 0)
    while k:
        total, point, k = add(total, point) if k & 1 else total, add(point, point), k >> 1
    return total

def point(data):
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * ROOT % P
    need(y < P and (x * x - square) % P == 0, "a key or signature is no point")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P

def signed(key, note, signature):
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + note).digest(), "little") % Q
    base = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    a, b = times(s, base), add(point(signature[:32]), times(h, point(key)))
    return s < Q and all((a[i] * b[2] - b[i] * a[2]) % P == 0 for i in (0, 1))

# The hash tree (RFC 9162, 2.1.3.2 and 2.1.4.2) and the chain: `parts` are preceded by their lengths.
sha = lambda *data: hashlib.sha256(b"".join(data)).digest()
parts = lambda *data: sha(*(len(part).to_bytes(8, "big") + part for part in data))

def climb(at, last, new, old, path):
    for beside in path:
        need(last, "the path is too long")
        if at & 1 or at == last:
            new, old = sha(b"\1", beside, new), sha(b"\1", beside, old)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            new = sha(b"\1", new, beside)
        at, last = at >> 1, last >> 1
    need(not last, "the path is too short")
    return new, old

def words(beside, said):
    data = beside["bytes"]
    data = data.encode() if isinstance(data, str) else base64.b64decode(data["base64"], validate=True)
    need(parts(bytes.fromhex(beside["salt"]), data).hex() == said["payload"]["digest"], "the payload is another one")
    return f" {ascii(data.decode(errors='replace'))}"

def follow(line, key):
    line = [(dict(l.split(" ", 1) for l in c["note"].splitlines()), c) for c in line]
    names = [i + 1 for i, (says, _) in enumerate(line) if says["next"] == key]
    states, keep = [], names[0] if names else 0
    for says, c in line[keep:]:
        ok = signed(bytes.fromhex(key), c["note"].encode(), bytes.fromhex(c["signature"]))
        need(ok, f"checkpoint {says['epoch']} is not signed by the key that was to sign it")
        key, state = says["next"], (int(says["epoch"]), int(says["entries"]), bytes.fromhex(says["root"]))
        need(not states or (states[-1][0] + 1 == state[0] and states[-1][1] <= state[1]), "out of order")
        states.append(state)
    return states

def opened(entry):
    said = json.loads(entry["body"])
    need(int(said["seq"]) == entry["number"], "it says that it is another entry")
    beside = words(entry["payload"], said) if entry.get("payload") else ""
    return sha(b"\0", parts(b"bailey.journal.1", bytes.fromhex(entry["previous"]), entry["body"].encode())), beside

def several(leaves, path, start, size):
    if not leaves:
        return next(path)
    if size == 1:
        return leaves[0][1]
    middle = 1 << (size - 1).bit_length() - 1
    left = [leaf for leaf in leaves if leaf[0] < start + middle]
    one = several(left, path, start, middle)
    return sha(b"\1", one, several(leaves[len(left):], path, start + middle, size - middle))

def archive(head, lines, key):
    leaves = []
    for entry in map(json.loads, lines):
        leaves.append((entry["number"] - 1, opened(entry)[0]))
    (epoch, size, root), path = follow(head["checkpoints"], key)[-1], iter(bytes.fromhex(text) for text in head["path"])
    places = [place for place, _ in leaves]
    need(places == sorted(set(places)) and 0 <= places[0] and places[-1] < size, "out of order")
    need(several(leaves, path, 0, size) == root and next(path, None) is None, "another root")
    return f"these {len(leaves)} entries ({places[0] + 1} to {places[-1] + 1}) of {size}, under checkpoint {epoch}"

def check(proof, key):
    need(proof["format"] == "bailey proof 1", "this is no proof")
    states = follow(proof["checkpoints"], key)
    (epoch, size, root), path = states[-1], [bytes.fromhex(text) for text in proof["path"]]
    if "entry" in proof:
        entry = proof["entry"]
        (leaf, beside), place = opened(entry), entry["number"] - 1
        need(0 <= place < size and climb(place, size - 1, leaf, leaf, path)[0] == root, "another root")
        return f"entry {entry['number']} of {size}, under checkpoint {epoch}: {ascii(entry['body'])}{beside}"
    old, old_root = {state[0]: state[1:] for state in states}[proof["since"]]
    at, last = old - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = old_root if old & (old - 1) == 0 or old == size else path.pop(0)
    ends = climb(at, last, first, first, path) if old < size else (first, first)
    need(ends == (root, old_root), "another root")
    return f"the {old} entries of checkpoint {proof['since']} are the first of the {size} of checkpoint {epoch}"

if __name__ == "__main__":
    try:
        with open(sys.argv[1]) as file:
            head = json.loads(next(file, ""))
            is_archive = head["format"] == "bailey archive 1"
            print("proven:", archive(head, file, sys.argv[2]) if is_archive else check(head, sys.argv[2]))
    except (KeyError, ValueError, IndexError, TypeError, AttributeError, RecursionError, StopIteration) as error:
        sys.exit(f"this proves nothing: {error}")
