"""Tries what a sandbox must not be able to do, each in a process of its own, and prints one JSON object: name -> "ok",
the name of an errno, or "signal N". "ok" is that the kernel did it, or refused only the harmless nonsense it was given."""

import ctypes, errno, fcntl, json, mmap, os, platform, pty, signal, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"

# name: (x86_64, generic as on aarch64)
NUMBERS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "unshare": (272, 97), "setns": (308, 268), "clone": (56, 220), "clone3": (435, 435),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "fsopen": (430, 430),
    "open_tree": (428, 428), "mount_setattr": (442, 442), "io_uring_setup": (425, 425), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "personality": (135, 92), "setuid": (105, 146),
    "kexec_load": (246, 104), "init_module": (175, 105), "reboot": (169, 142), "swapon": (167, 224),
    "sethostname": (170, 161), "quotactl": (179, 60), "acct": (163, 89), "syslog": (103, 116),
}


class Refused(Exception):
    pass


def call(name, *arguments, harmless=()):
    """Makes a system call; an errno among the harmless ones counts as done."""
    number = NUMBERS[name][0 if X86 else 1]
    ctypes.set_errno(0)
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *given)
    code = ctypes.get_errno()
    if result < 0 and code not in harmless:
        raise Refused(errno.errorcode.get(code, str(code)))
    return result


def sleeper():
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    return child


def on_child(work):
    child = sleeper()
    try:
        return work(child)
    finally:
        os.kill(child, signal.SIGKILL)


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def other_memory(name):
    def work(child):
        mine = ctypes.create_string_buffer(4)
        vector = Iovec(ctypes.addressof(mine), 4)
        return call(name, child, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0)
    return lambda: on_child(work)


def pidfd_getfd():
    return on_child(lambda child: call("pidfd_getfd", call("pidfd_open", child, 0), 0, 0))


def clone(flags):
    child = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def clone3(flags):
    arguments = ctypes.create_string_buffer(struct.pack("11Q", flags, 0, 0, 0, signal.SIGCHLD, *[0] * 6))
    child = call("clone3", arguments, 88)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def handle():
    buffer = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    at = os.open(".", os.O_RDONLY)
    call("name_to_handle_at", at, b"", buffer, ctypes.byref(mount), 0x1000)
    return call("open_by_handle_at", at, buffer, os.O_RDONLY)


def perf():
    # A dummy software event of this process's user side.
    attributes = ctypes.create_string_buffer(struct.pack("IIQQQQQ", 1, 112, 9, 0, 0, 0, 0b1100000) + bytes(64))
    return call("perf_event_open", attributes, 0, -1, -1, 0)


def bpf():
    return call("bpf", 0, ctypes.create_string_buffer(struct.pack("IIIII", 2, 4, 4, 1, 0) + bytes(100)), 120)


def device():
    os.mknod("probe-device", 0o020600, os.makedev(1, 3))
    os.unlink("probe-device")


def terminal(request):
    def work():
        master, slave = pty.openpty()
        fcntl.ioctl(slave, 0x540E, 0)  # TIOCSCTTY
        fcntl.ioctl(slave, request, b"x")
    return work


def run(code):
    """Runs machine code that returns a number."""
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    value = function()
    value = value - (1 << 32) if value >= 1 << 31 else value
    if value <= 0:
        raise Refused(errno.errorcode.get(-value, str(value)))


def sock(family, kind, protocol=0):
    return lambda: socket.socket(family, kind, protocol).close()


STREAM, DGRAM, RAW, SEQPACKET = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET
USER = 0x10000000


ATTEMPTS = {
    "ptrace": lambda: on_child(lambda child: call("ptrace", 16, child, 0, 0)),
    "process_vm_readv": other_memory("process_vm_readv"),
    "process_vm_writev": other_memory("process_vm_writev"),
    "pidfd_getfd": pidfd_getfd,
    "unshare_user": lambda: call("unshare", USER),
    "unshare_mount": lambda: call("unshare", 0x00020000),
    "unshare_net": lambda: call("unshare", 0x40000000),
    "unshare_pid": lambda: call("unshare", 0x20000000),
    "clone_user": lambda: clone(USER),
    "clone3_user": lambda: clone3(USER),
    "setns": lambda: call("setns", os.open("/proc/self/ns/uts", os.O_RDONLY), 0),
    "mount": lambda: call("mount", b"probe", b"/tmp", b"tmpfs", 0, b""),
    "mount_bind": lambda: call("mount", b"/", b"/tmp", b"", 4096 | 16384, b""),
    "pivot_root": lambda: call("pivot_root", b".", b".", harmless=(errno.EINVAL, errno.EBUSY)),
    "chroot": lambda: call("chroot", b"/"),
    "fsopen": lambda: call("fsopen", b"tmpfs", 0),
    "open_tree": lambda: call("open_tree", -100, b"/", 1 | 0x8000),
    "mount_setattr": lambda: call("mount_setattr", -100, b"/", 0, ctypes.create_string_buffer(32), 32),
    "io_uring": lambda: call("io_uring_setup", 1, ctypes.create_string_buffer(120)),
    "bpf": bpf,
    "perf_event_open": perf,
    "userfaultfd": lambda: call("userfaultfd", 1),
    "keyctl": lambda: call("keyctl", 1, 0, 0, 0, 0),
    "add_key": lambda: call("add_key", b"user", b"probe", b"x", 1, -2),
    "open_by_handle_at": handle,
    "personality": lambda: call("personality", 0x0400000),
    "kexec_load": lambda: call("kexec_load", 0, 17, 0, 0, harmless=(errno.EINVAL,)),
    "init_module": lambda: call("init_module", 0, 0, b"", harmless=(errno.EFAULT, errno.ENOEXEC, errno.EINVAL)),
    "reboot": lambda: call("reboot", 0, 0, 0, 0, harmless=(errno.EINVAL,)),
    "swapon": lambda: call("swapon", b"", 0, harmless=(errno.ENOENT,)),
    "sethostname": lambda: call("sethostname", b"x", 99999, harmless=(errno.EINVAL,)),
    "syslog": lambda: call("syslog", 3, ctypes.create_string_buffer(8), 8),
    "setuid_0": lambda: call("setuid", 0),
    "device": device,
    "socket_netlink": sock(16, RAW),
    "socket_packet": sock(17, RAW),
    "socket_vsock": sock(40, STREAM),
    "socket_alg": sock(38, SEQPACKET),
    "socket_xdp": sock(44, RAW),
    "socket_bluetooth": sock(31, RAW, 1),
    "socket_key": sock(15, RAW, 2),
    "socket_tipc": sock(30, RAW),
    "socket_smc": sock(43, STREAM),
    "socket_can": sock(29, RAW, 1),
    "socket_raw": sock(socket.AF_INET, RAW, 1),
    "socket_raw_6": sock(socket.AF_INET6, RAW, 58),
    "socket_sctp": sock(socket.AF_INET, STREAM, 132),
    "socket_icmp": sock(socket.AF_INET, DGRAM, 1),
    "tiocsti": terminal(0x5412),
    "kill_outside": lambda: os.kill(int(sys.argv[1]), 0),
    "read_outside_environ": lambda: open(f"/proc/{int(sys.argv[1])}/environ").close(),
}
# Last, because what others look at is gone where it succeeds.
ATTEMPTS["umount"] = lambda: call("umount2", b"/proc", 2)
if X86:
    # getpid by the 32-bit entry (20), and by x32's numbers (0x40000000 + 39).
    ATTEMPTS["int80"] = lambda: run(bytes.fromhex("b814000000cd80c3"))
    ATTEMPTS["x32"] = lambda: run(bytes.fromhex("b8270000400f05c3"))


def attempt(work):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            work()
            told = "ok"
        except Refused as refused:
            told = str(refused)
        except OSError as error:
            told = errno.errorcode.get(error.errno, str(error.errno))
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    told = os.read(reader, 64).decode()
    os.close(reader)
    status = os.waitpid(child, 0)[1]
    return told or f"signal {os.WTERMSIG(status)}"


if __name__ == "__main__":
    # Normal work: pairs of sockets.
    socket.socketpair()
    print(json.dumps({name: attempt(work) for name, work in ATTEMPTS.items()}))
