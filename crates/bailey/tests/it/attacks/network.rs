//! A29, A54: no route out, no socket of the host, and a loopback of the sandbox's own that works.

use super::actor::{Actor, Who, is_root, told};
use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{SocketAddr, UnixListener},
        },
    },
    thread,
};

const PROBE: &str = include_str!("../probes/net.py");

/// Ways that have a listener at the other end, and so a control.
const LISTENED: [&str; 4] =
    ["tcp to the host's loopback", "udp to the host's loopback", "an abstract socket", "a socket file"];

/// Ways to foreign addresses, which answer in a world of the test's own.
const FOREIGN: [&str; 7] = [
    "tcp to an address",
    "tcp to a v6 address",
    "quic to an address",
    "dns to an address",
    "icmp to an address",
    "tcp to the metadata service",
    "a name",
];

/// Listeners of the host, the last one in the workspace. Their threads end with the test.
struct Listeners {
    tcp: String,
    udp: String,
    name: String,
}

impl Listeners {
    fn start(actor: &Actor) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Of this stage: another test may listen in the same process.
        let name = actor.stage.folder().file_name().unwrap().to_str().unwrap().to_owned();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        let file = UnixListener::bind(actor.stage.project().join("socket")).unwrap();
        actor.own();
        let started = Self {
            tcp: tcp.local_addr().unwrap().port().to_string(),
            udp: udp.local_addr().unwrap().port().to_string(),
            name,
        };
        thread::spawn(move || tcp.incoming().for_each(drop));
        thread::spawn(move || hidden.incoming().for_each(drop));
        thread::spawn(move || file.incoming().for_each(drop));
        thread::spawn(move || {
            let mut bytes = [0; 16];
            while let Ok((length, from)) = udp.recv_from(&mut bytes) {
                udp.send_to(&bytes[..length], from).ok();
            }
        });
        started
    }

    fn probe<'a>(&'a self, only: &[&'a str]) -> Vec<&'a str> {
        let fixed = ["/usr/bin/python3", "net.py", &self.tcp, &self.udp, &self.name, "socket"];
        [&fixed, only].concat()
    }
}

attack!(a29_there_is_no_route_out);
fn a29_there_is_no_route_out(who: Who) {
    let actor = Actor::new(who, &[("net.py", PROBE)]);
    let listeners = Listeners::start(&actor);
    let inside = told(&actor.inside(&listeners.probe(&[])));
    for (way, answer) in &inside {
        assert!(answer != "ok" && answer != "timeout", "{way}: {answer}");
        println!("held: {way}: {answer}");
    }
    // Nothing was sent: there was no way to send it by, and the walls count the attempts.
    for way in ["tcp to an address", "quic to an address", "dns to an address"] {
        assert_eq!(inside[way], "ENETUNREACH", "{way}");
    }
    let outcome = actor.outcome(&listeners.probe(&["tcp to an address"]));
    let lost = outcome["enforced"]["out_no_routes"]
        .as_u64()
        .or_else(|| outcome["enforced"]["out_no_routes"].as_str().and_then(|lost| lost.parse().ok()));
    assert!(lost >= Some(1), "{outcome}");
    // The controls: the host's listeners answer outside, and inside when just the wall is away.
    let outside = told(&actor.outside(&listeners.probe(&LISTENED)));
    assert!(LISTENED.iter().all(|way| outside[*way] == "ok"), "{outside:?}");
    let sockets = told(&actor.without("net_namespace", true, &listeners.probe(&LISTENED[..2])));
    assert!(sockets.values().all(|answer| answer == "ok"), "{sockets:?}");
    // An abstract socket has three walls before it; which of them hold by themselves the next line shows.
    let all = told(&actor.without("net_namespace,seccomp,landlock", true, &listeners.probe(&LISTENED[2..3])));
    assert_eq!(all["an abstract socket"], "ok", "{all:?}");
    for left in ["net_namespace,seccomp", "net_namespace,landlock", "seccomp,landlock"] {
        let one = told(&actor.without(left, true, &listeners.probe(&LISTENED[2..3])));
        println!("an abstract socket without {left}: {}", one["an abstract socket"]);
    }
}

attack!(a29_a_foreign_address_that_answers_is_not_reached);
fn a29_a_foreign_address_that_answers_is_not_reached(who: Who) {
    if !is_root() {
        return println!("SKIPPED: only root can make a network with foreign addresses");
    }
    let actor = Actor::abroad(who, &[("net.py", PROBE)]);
    let fixed = ["/usr/bin/python3", "net.py", "0", "0", "none", "none"];
    let probe = [&fixed, &FOREIGN[..]].concat();
    let inside = told(&actor.inside(&probe));
    // Answers of the walls, and none of them from there.
    let refusals = ["ENETUNREACH", "EPERM", "EACCES", "EAFNOSUPPORT", "no name"];
    assert!(inside.len() == FOREIGN.len(), "{inside:?}");
    assert!(inside.values().all(|answer| refusals.contains(&answer.as_str())), "{inside:?}");
    // The controls: outside each of them answers, and inside when just the network's wall is away.
    let outside = told(&actor.outside(&probe));
    let without = told(&actor.without("net_namespace", true, &probe));
    let sockets = told(&actor.without("net_namespace,seccomp", true, &probe));
    for way in FOREIGN {
        assert_eq!(outside[way], "ok", "the control of {way}: {outside:?}");
        // To ping is a kind of socket that the list of system calls does not hold.
        let inner = if way.starts_with("icmp") { &sockets } else { &without };
        assert_eq!(inner[way], "ok", "the control of {way} inside: {inner:?}");
        println!("held: {way}: {} (answers without the network's wall)", inside[way]);
    }
}

attack!(a54_a_socket_of_the_host_in_the_workspace_cannot_be_reached);
fn a54_a_socket_of_the_host_in_the_workspace_cannot_be_reached(who: Who) {
    let actor = Actor::new(who, &[("net.py", PROBE)]);
    let listeners = Listeners::start(&actor);
    let probe = listeners.probe(&LISTENED[3..]);
    // What lies in a project is not the same file inside.
    assert_eq!(told(&actor.inside(&probe))["a socket file"], "ECONNREFUSED");
    // Without a root of its own it would be; a command has no Unix sockets then.
    // Root's session could not throw away its layer then.
    if who == Who::User {
        assert_eq!(told(&actor.without("mount_namespace", true, &probe))["a socket file"], "EAFNOSUPPORT");
        let bare = told(&actor.without("mount_namespace,seccomp", true, &probe));
        assert_eq!(bare["a socket file"], "ok", "the control inside");
    }
    assert_eq!(told(&actor.outside(&probe))["a socket file"], "ok", "the control");
    // The other directories that are shown: one that the owner named, and a cache of the home.
    let read = actor.stage.folder().canonicalize().unwrap().join("read");
    let cache = actor.user().join(".cargo/registry");
    actor.configure(&format!("[sandbox]\nread = [{read:?}]\n"));
    let shown = [&read, &cache].map(|directory| {
        fs::create_dir_all(directory).unwrap();
        let path = directory.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        thread::spawn(move || listener.incoming().for_each(drop));
        path.display().to_string()
    });
    actor.own();
    for path in &shown {
        let probe = ["/usr/bin/python3", "net.py", "0", "0", "none", path, LISTENED[3]];
        assert_eq!(told(&actor.inside(&probe))["a socket file"], "ECONNREFUSED", "{path}");
        let bound = told(&actor.without("overlay", true, &probe));
        assert_eq!(bound["a socket file"], "ok", "the control: {path}");
    }
    let pair = "import socket; a, b = socket.socketpair(); a.send(b'hello'); print(b.recv(9).decode())";
    assert_eq!(actor.inside(&["/usr/bin/python3", "-c", pair]).stdout, "hello\n");
}

attack!(a_server_on_the_sandboxs_loopback_answers);
fn a_server_on_the_sandboxs_loopback_answers(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "served\n")]);
    let script = "/usr/bin/python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 & server=$!
                  for i in $(seq 100); do
                      /usr/bin/python3 -c 'import urllib.request as u; \
                          print(u.urlopen(\"http://localhost:8000/a.txt\").read().decode(), end=\"\")' 2>/dev/null && break
                      sleep 0.1
                  done; kill $server";
    let ran = actor.sh(script);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "served\n"), "{ran:?}");
}
