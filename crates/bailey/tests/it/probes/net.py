"""Tries every way out to a host whose listeners are named, and prints one JSON object: way -> "ok" or an errno's name.

net.py TCP_PORT UDP_PORT ABSTRACT_NAME SOCKET_FILE"""

import errno, json, socket, struct, sys

tcp, udp, abstract, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]


def tcp_to(host, port, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as it:
        it.settimeout(2)
        it.connect((host, port))


def udp_to(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        it.connect((host, port))
        it.send(b"probe")
        it.settimeout(0.5)
        it.recv(16)


def icmp_to(host):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as it:
        it.connect((host, 0))
        it.send(struct.pack("!BBHHH", 8, 0, 0, 0, 1) + b"probe")
        it.settimeout(0.5)
        it.recv(64)


def unix_to(address):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as it:
        it.connect(address)


def name(host):
    socket.getaddrinfo(host, 443)


WAYS = {
    "tcp to the host's loopback": lambda: tcp_to("127.0.0.1", tcp),
    "udp to the host's loopback": lambda: udp_to("127.0.0.1", udp),
    "an abstract socket": lambda: unix_to("\0" + abstract),
    "a socket file": lambda: unix_to(file),
    "tcp to an address": lambda: tcp_to("192.0.2.1", 443),
    "tcp to a v6 address": lambda: tcp_to("2001:db8::1", 443, socket.AF_INET6),
    "quic to an address": lambda: udp_to("192.0.2.1", 443),
    "dns to an address": lambda: udp_to("192.0.2.53", 53),
    "icmp to an address": lambda: icmp_to("192.0.2.1"),
    "tcp to the metadata service": lambda: tcp_to("169.254.169.254", 80),
    "a name": lambda: name("name.invalid"),
}


def attempt(work):
    try:
        work()
        return "ok"
    except socket.gaierror:
        return "no name"
    except TimeoutError:
        return "timeout"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))


only = sys.argv[5:]
print(json.dumps({name: attempt(work) for name, work in WAYS.items() if not only or name in only}))
