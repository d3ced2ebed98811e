"""Plays the world: gives this network namespace, which must be a new one, foreign addresses of its own, answers there,
and becomes the program given. No packet goes to another machine: there is no device but the loopback.

foreign.py PROGRAM…"""

import ctypes, fcntl, os, select, socket, struct, sys, time

V4 = ["192.0.2.1", "192.0.2.53", "169.254.169.254"]
V6 = "2001:db8::1"
TCP = [("192.0.2.1", 443), ("169.254.169.254", 80), (V6, 443)]
# Where a sandbox has no resolver named, it asks its loopback.
UDP = [("192.0.2.1", 443), ("192.0.2.53", 53), ("127.0.0.1", 53)]
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, UP, BIND = 0x8913, 0x8914, 0x8916, 1, 4096
libc = ctypes.CDLL(None, use_errno=True)


def addresses():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        flags = fcntl.ioctl(it, SIOCGIFFLAGS, struct.pack("16sH22x", b"lo", 0))
        assert not struct.unpack("16sH22x", flags)[1] & UP, "this is no new network namespace"
        fcntl.ioctl(it, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", UP))
        for number, address in enumerate(V4):
            name, raw = f"lo:{number}".encode(), socket.inet_aton(address)
            fcntl.ioctl(it, SIOCSIFADDR, struct.pack("16sHH4s16x", name, socket.AF_INET, 0, raw))
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as it:
        raw = socket.inet_pton(socket.AF_INET6, V6)
        fcntl.ioctl(it, SIOCSIFADDR, struct.pack("16sIi", raw, 128, socket.if_nametoindex("lo")))
    with open("/proc/sys/net/ipv4/ping_group_range", "w") as file:
        file.write("0 2147483647")


def resolver():
    """The resolver's files, in this mount namespace alone."""
    texts = {"/etc/resolv.conf": "nameserver 192.0.2.53\n", "/etc/nsswitch.conf": "hosts: files dns\n"}
    for place, text in texts.items():
        own = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.path.basename(place))
        with open(own, "w") as file:
            file.write(text)
        place = os.path.realpath(place)
        if os.path.exists(place) and libc.mount(own.encode(), place.encode(), None, BIND, None) != 0:
            raise OSError(ctypes.get_errno(), place)


def answer(question):
    """The address of every name that is asked for, version 4; anything else comes back as it is."""
    if len(question) < 17:
        return question
    end = question.index(0, 12) + 5
    is_a = question[end - 4:end - 2] == b"\0\1"
    head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, int(is_a), 0, 0) + question[12:end]
    return head + (struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(V4[0]) if is_a else b"")


def bound(address, kind):
    it = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, kind)
    for _ in range(100):
        try:
            it.bind(address)
            return it
        except OSError:
            time.sleep(0.02)  # An address of version 6 is looked at by the kernel first.
    raise OSError(f"{address} cannot be listened at")


addresses()
resolver()
waiting = [bound(address, socket.SOCK_STREAM) for address in TCP]
asked = [bound(address, socket.SOCK_DGRAM) for address in UDP]
for it in waiting:
    it.listen(64)
# A signal at its death would not do: whoever binds itself may send none.
at_work = os.pidfd_open(os.getpid())
if os.fork() == 0:
    nowhere = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    while True:
        for it in select.select([at_work, *waiting, *asked], [], [])[0]:
            if it == at_work:
                os._exit(0)
            if it in waiting:
                it.accept()[0].close()
            else:
                question, who = it.recvfrom(2048)
                it.sendto(answer(question), who)
os.execvp(sys.argv[1], sys.argv[1:])
