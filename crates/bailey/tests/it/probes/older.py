"""Runs a program as on a kernel that lacks some system calls, or in a container that forbids them: a filter answers them
with an error. Arguments: CALL=ERRNO, each; then --; then the program. `clone-namespaces` is clone(2) and unshare(2) with
a flag of a namespace, `prctl-seccomp` is prctl(2) with PR_SET_SECCOMP. x86-64 only; exits with 98 where it cannot be played."""

import ctypes, errno, os, platform, struct, sys

CALLS = {
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "seccomp": 317,
    "openat2": 437, "fsopen": 430, "fsmount": 432, "open_tree": 428, "move_mount": 429, "mount_setattr": 442,
    "clone3": 435, "close_range": 436, "memfd_create": 319, "pivot_root": 155, "setns": 308,
}
# Of sched.h: time, mount, cgroup, uts, ipc, user, pid, net.
NAMESPACES = 0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
LOAD, EQUAL, ANY, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22


def statement(code, value, true=0, false=0):
    return struct.pack("HBBI", code, true, false, value)


at = sys.argv.index("--")
program = [statement(LOAD, 0)]
for word in sys.argv[1:at]:
    call, code = word.split("=")
    refuse = statement(RETURN, ERROR | getattr(errno, code))
    if call == "clone-namespaces":
        for number in (56, 272):
            # To the flags, which are the first argument, and back.
            program += [statement(EQUAL, number, 0, 4), statement(LOAD, 16), statement(ANY, NAMESPACES, 0, 1), refuse,
                        statement(LOAD, 0)]
    elif call == "prctl-seccomp":
        program += [statement(EQUAL, 157, 0, 4), statement(LOAD, 16), statement(EQUAL, PR_SET_SECCOMP, 0, 1), refuse,
                    statement(LOAD, 0)]
    else:
        program += [statement(EQUAL, CALLS[call], 0, 1), refuse]
program.append(statement(RETURN, ALLOW))

if platform.machine() != "x86_64":
    sys.exit(98)
libc = ctypes.CDLL(None, use_errno=True)
code = b"".join(program)
text = ctypes.create_string_buffer(code, len(code))
filter = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(text))
if os.geteuid() != 0 and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
    sys.exit(98)
if libc.prctl(PR_SET_SECCOMP, 2, ctypes.c_char_p(filter), 0, 0) != 0:
    sys.exit(98)
os.execvp(sys.argv[at + 1], sys.argv[at + 1:])
