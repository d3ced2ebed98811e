#!/usr/bin/env python3
"""Checks a proof of `bailey audit prove`, or an archive, with nothing but Python: audit_check.py FILE KEY"""
import base64, json, sys
from ed25519 import verifies
from merkle import leaf, need, sha, with_first, with_one, with_several

def signed(points, key):
    """Number, entries and root of each checkpoint from the one on that the key signs, and each names the next key."""
    notes, known = [dict(line.split(" ", 1) for line in point["note"].splitlines()) for point in points], []
    first = next((at + 1 for at, note in enumerate(notes) if note["next"] == key), 0)
    for point, note in zip(points[first:], notes[first:]):
        holds = verifies(bytes.fromhex(key), point["note"].encode(), bytes.fromhex(point["signature"]))
        need(holds, f"checkpoint {note['epoch']} is not signed by the key that was to sign it")
        epoch, size, key = int(note["epoch"]), int(note["entries"]), note["next"]
        need(not known or (known[-1][0] + 1 == epoch and known[-1][1] <= size), "checkpoints are out of order")
        known.append((epoch, size, bytes.fromhex(note["root"])))
    need(known, "the key is newer than every checkpoint in it")
    return known

def opened(entry):
    """Its place and hash in the tree, and the words beside it, where it has them."""
    said, beside, words = json.loads(entry["body"]), entry.get("payload"), ""
    need(int(said["seq"]) == entry["number"], "an entry says that it is another one")
    if beside:
        data = beside["bytes"]
        data = data.encode() if isinstance(data, str) else base64.b64decode(data["base64"], validate=True)
        digest = framed(bytes.fromhex(beside["salt"]), data).hex()
        need(digest == said["payload"]["digest"], "the payload is another one")
        words = f" {ascii(data.decode(errors='replace'))}"
    chained = framed(b"bailey.journal.1", bytes.fromhex(entry["previous"]), entry["body"].encode())
    return entry["number"] - 1, leaf(chained), words

def framed(*data):
    return sha(*(len(part).to_bytes(8, "big") + part for part in data))

def proven(head, lines, key):
    known, path = signed(head["checkpoints"], key), [bytes.fromhex(text) for text in head["path"]]
    epoch, size, root = known[-1]
    under = f"of {size}, under checkpoint {epoch}"
    if head["format"] == "bailey archive 1":
        leaves = [opened(json.loads(line))[:2] for line in lines]
        need(with_several(leaves, size, path) == root, "the entries lead to another root")
        return f"these {len(leaves)} entries ({leaves[0][0] + 1} to {leaves[-1][0] + 1}) {under}"
    need(head["format"] == "bailey proof 1", "this is neither a proof nor an archive")
    if "entry" in head:
        place, hash, words = opened(head["entry"])
        need(with_one(place, hash, size, path) == root, "the entry leads to another root")
        return f"entry {place + 1} {under}: {ascii(head['entry']['body'])}{words}"
    old, was = {state[0]: state[1:] for state in known}[head["since"]]
    need(with_first(old, was, size, path) == (was, root), "the earlier entries lead to another root")
    return f"the {old} entries of checkpoint {head['since']} are the first of the {size} of checkpoint {epoch}"

if __name__ == "__main__":
    try:
        need(len(sys.argv) == 3, "say which FILE, and which KEY")
        key = sys.argv[2] if len(sys.argv[2]) == 64 else open(sys.argv[2]).read().strip()
        with open(sys.argv[1]) as file:
            print("proven:", proven(json.loads(next(file, "null")), file, key))
    except (OSError, KeyError, ValueError, IndexError, TypeError, AttributeError, RecursionError) as error:
        sys.exit(f"this proves nothing: {f'it lacks {error}' if isinstance(error, KeyError) else error}")
