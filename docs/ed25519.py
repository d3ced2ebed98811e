"""Verifies one Ed25519 signature (RFC 8032, 5.1.7) in plain Python, as any library does."""
import hashlib

# Points are X, Y, Z, T on the curve -x^2 + y^2 = 1 + d x^2 y^2 over the integers modulo P. The base has order Q.
P, Q = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)

def verifies(key, message, signature):
    """Whether the 64 bytes of `signature` are of `message` by who has the secret of the 32 bytes `key`."""
    if len(key) != 32 or len(signature) != 64:
        raise ValueError("a key has 32 bytes, and a signature 64")
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % Q
    base = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    a, b = times(s, base), add(point(signature[:32]), times(h, point(key)))
    return s < Q and all((a[i] * b[2] - b[i] * a[2]) % P == 0 for i in (0, 1))

def point(data):
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * ROOT % P
    if y >= P or (x * x - square) % P != 0:
        raise ValueError("a key or signature is no point of the curve")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P

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
