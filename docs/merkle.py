"""The roots of a hash tree (RFC 9162, 2.1) that leaves and the hashes beside them lead to, as any library does."""
import hashlib

def sha(*data):
    return hashlib.sha256(b"".join(data)).digest()

def leaf(data):
    return sha(b"\0", data)

def node(left, right):
    return sha(b"\1", left, right)

def with_one(place, hash, size, path):
    """The root over `size` entries, of which the one at `place` (from 0) is known, and the path is from below."""
    need(0 <= place < size, "there is no such place in a tree of that size")
    return used(path, lambda rest: climb(place + 1, size, 1, hash, rest)[1])

def with_first(old, root, size, path):
    """The roots over the first `old` entries and over all `size`, where the first ones have this root."""
    need(0 < old <= size, "a tree grows out of a smaller one that has entries")
    end = old if old == size else old & -old  # the size of the largest whole tree that the old one ends with
    return used(path, lambda rest: climb(old, size, end, root if end == old else next(rest), rest))

def with_several(leaves, size, path):
    """The root over `size` entries, of which these (place, hash) are known, ascending, and the path from the left."""
    places = [place for place, _ in leaves]
    need(places and places == sorted(set(places)) and 0 <= places[0] and places[-1] < size, "entries are out of order")
    return used(path, lambda rest: fill(leaves, size, rest))

def climb(count, size, end, hash, rest):  # `hash` is over the last `end` of `count`
    if size == end:
        return hash, hash
    half = split(size)
    if count <= half:
        old, new = climb(count, half, end, hash, rest)
        return old, node(new, next(rest))
    old, new = climb(count - half, size - half, end, hash, rest)
    left = next(rest)
    return node(left, old), node(left, new)

def fill(leaves, size, rest):
    if not leaves or size == 1:
        return leaves[0][1] if leaves else next(rest)
    half = split(size)
    left = [known for known in leaves if known[0] < half]
    right = [(place - half, hash) for place, hash in leaves[len(left):]]
    return node(fill(left, half, rest), fill(right, size - half, rest))

def split(size):  # at the largest power of two below it
    return 1 << (size - 1).bit_length() - 1

def used(path, roots):
    rest = iter(path)
    try:
        found = roots(rest)
    except StopIteration:
        raise ValueError("the path is too short") from None
    need(next(rest, None) is None, "the path is too long")
    return found

def need(holds, why):
    if not holds:
        raise ValueError(why)
