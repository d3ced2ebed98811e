"""Grows in one way (memory, processes, disk, inodes, unnamed, deep, memfd, mapped, segment) past a limit of so many bytes, and then sleeps so many seconds.
Prints in seconds of Unix time when it goes over the limit, and from a process beside it a beat every 20 ms, so that the
last one tells when the tree ended and the gaps tell what the machine itself held up."""

import os, sys, time

MIB = 1 << 20
way, limit, rest = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
keep = []


def say(word):
    os.write(1, f"{word} {time.time():.3f}\n".encode())


def memory(number):
    keep.append(b"x" * MIB)
    return MIB


def processes(number):
    if os.fork() == 0:
        held = b"x" * (16 * MIB)
        time.sleep(60)
        os._exit(len(held) & 1)
    return 16 * MIB


def disk(number):
    with open(f"fill{number}", "wb") as file:
        file.write(b"x" * MIB)
    return MIB


def inodes(number):
    os.makedirs("many", exist_ok=True)
    open(f"many/{number}", "wb").close()
    # And its place in the directory.
    return 1100


def unnamed(number):
    file = open(f"fill{number}", "wb")
    os.unlink(f"fill{number}")
    file.write(b"x" * MIB)
    file.flush()
    keep.append(file)
    return MIB


def deep(number):
    if number == 0:
        os.makedirs("a/" * 300)
        os.chdir("a/" * 300)
    return disk(number)


def memfd(number):
    file = os.memfd_create("x")
    os.write(file, b"x" * MIB)
    keep.append(file)
    return MIB


def mapped(number):
    import mmap

    file = os.memfd_create("x")
    os.ftruncate(file, 60 * MIB)
    held = mmap.mmap(file, 60 * MIB)
    for at in range(0, 60 * MIB, 4096):
        held[at] = 1
    keep.append((file, held))
    return 200 * MIB


def segment(number):
    import ctypes

    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    held = libc.shmget(0, 8 * MIB, 0o1600)
    at = libc.shmat(held, None, 0)
    ctypes.memset(at, 1, 8 * MIB)
    libc.shmdt(ctypes.c_void_p(at))
    return 8 * MIB


if os.fork() == 0:
    while True:
        say("beat")
        time.sleep(0.02)

total, number, grow = 0, 0, globals()[way]
step = 0
while total <= limit + limit // 4:
    if total <= limit < total + step:
        say("over")
    step = grow(number)
    total += step
    number += 1
time.sleep(rest)
