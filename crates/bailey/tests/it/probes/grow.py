"""Grows in one way (memory, processes, disk, inodes) past a limit of so many bytes, and then sleeps so many seconds.
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
