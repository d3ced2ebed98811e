//! What else passes at the network door: HTTP/2, many connections, tunnels that nobody looks into, and limits
//! to all of it.

use crate::{
    door::{MAY_ASK, MAY_END, Upstream, allow, whole},
    relay::Tls,
    stage::{Ran, Stage},
};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// A home whose commands may ask the door, with these settings and rules.
fn stage(config: &str, rules: &str) -> Stage {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{rules}")).unwrap();
    stage
}

fn run(stage: &Stage, line: &str) -> Ran {
    let line = format!("export NO_PROXY= no_proxy=; {line}");
    stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", &line])
}

fn python(stage: &Stage, program: &str) -> Ran {
    stage.ran(&["sandbox", "run", "--network", "--", "python3", "-c", program])
}

/// What a client of the proxy in Python begins with: a connection to it that shows its pass, and the status
/// of the answer.
const PROXY: &str = r"import asyncio, base64, os
from urllib.parse import urlsplit
proxy = urlsplit(os.environ['HTTP_PROXY'])
shown = 'Proxy-Authorization: Basic ' + base64.b64encode(f'{proxy.username}:{proxy.password}'.encode()).decode()
async def opened(head):
    reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port)
    writer.write(f'{head}{shown}\r\n\r\n'.encode())
    line = await reader.readline()
    while (await reader.readline()) not in (b'\r\n', b''): pass
    return line.decode().split(' ')[1], reader, writer
";

/// A server of Node.js that speaks HTTP/2 and HTTP/1.1 over TLS.
struct Node {
    child: Child,
    port: u16,
    authority: PathBuf,
}

impl Node {
    fn start(stage: &Stage) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let authority = stage.folder().join("node.pem");
        fs::write(&authority, params.self_signed(&key).unwrap().pem()).unwrap();
        let secret = stage.folder().join("node.key");
        fs::write(&secret, key.serialize_pem()).unwrap();
        let program = format!(
            "const http2 = require('http2'), fs = require('fs');
const server = http2.createSecureServer({{ key: fs.readFileSync('{}'), cert: fs.readFileSync('{}'), allowHTTP1: true }},
  (request, answer) => {{
    let length = 0;
    request.on('data', data => length += data.length);
    request.on('end', () => {{
      answer.setHeader('trailer', 'x-late');
      answer.write(`version ${{request.httpVersion}} te ${{request.headers.te}} length ${{length}}\\n`);
      if (Object.keys(request.trailers).length) answer.write(JSON.stringify(request.trailers));
      answer.addTrailers({{ 'x-late': 'came behind' }});
      answer.end();
    }});
  }});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));",
            secret.display(),
            authority.display()
        );
        let mut child = Command::new("node").args(["-e", &program]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap(), authority }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn http_2_passes_on_both_sides_and_each_request_is_judged() {
    let stage = stage("", "");
    let node = Node::start(&stage);
    let place = format!("https://localhost:{}", node.port);
    fs::write(stage.home().join("config.toml"), format!("[network]\nprivate = [\"{place}\"]\n")).unwrap();
    let rules =
        allow(&format!("localhost:{}", node.port), ", method = [\"GET\", \"POST\"], url_path = \"/open/**\"");
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{rules}")).unwrap();
    let curl = |arguments: &str| {
        let line = format!("export NO_PROXY= no_proxy=; curl -sS --max-time 30 {arguments}");
        let mut command = stage.bailey(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
        Ran::of(command.env("SSL_CERT_FILE", &node.authority).output().unwrap())
    };
    let both = curl(&format!("-v --http2 -H 'TE: trailers' -w '%{{http_version}}\\n' {place}/open/x"));
    assert_eq!(both.stdout, "version 2.0 te trailers length 0\n2\n", "{both:?}");
    assert!(both.stderr.contains("x-late: came behind"), "{both:?}");
    let old = curl(&format!("--http1.1 -w '%{{http_version}}\\n' {place}/open/x"));
    assert_eq!(old.stdout, "version 2.0 te undefined length 0\n1.1\n", "{old:?}");
    let large = curl(&format!("--http2 --data-binary @/bin/bash {place}/open/up"));
    let length = fs::metadata("/bin/bash").unwrap().len();
    assert_eq!(large.stdout, format!("version 2.0 te undefined length {length}\n"), "{large:?}");
    // On one connection some pass and some do not.
    let mixed = curl(&format!("--http2 {place}/open/1 {place}/shut/2 {place}/open/3"));
    assert_eq!(
        (mixed.stdout.matches("version 2.0").count(), mixed.stdout.matches("refused this").count()),
        (2, 1)
    );
    let many = curl(&format!("--http2 --parallel --parallel-max 100 '{place}/open/[1-200]'"));
    assert_eq!(many.stdout.matches("version 2.0").count(), 200, "{many:?}");
}

/// Many requests come on few connections: each that may take a connection to a server has a place of its own.
#[test]
fn requests_beyond_the_places_wait_and_take_no_connection() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hanging = silent.local_addr().unwrap();
    let taken: Arc<AtomicUsize> = Arc::default();
    let counted = taken.clone();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in silent.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::SeqCst);
            kept.push(stream);
        }
    });
    let stage = stage("", "");
    let tls = Tls::start("localhost", (2020, 2090), hanging, stage.folder());
    let place = format!("https://localhost:{}", tls.address().port());
    fs::write(stage.home().join("config.toml"), format!("[network]\nprivate = [\"{place}\"]\n")).unwrap();
    let rules = allow(place.trim_start_matches("https://"), "");
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{rules}")).unwrap();
    // Each of twenty asks for twenty at a time on one connection.
    let line = format!(
        "export NO_PROXY= no_proxy=; for i in $(seq 20); do \
         curl -s --http2 --parallel --parallel-max 20 '{place}/[1-20]' > /dev/null 2>&1 & done; wait"
    );
    let mut command = stage.bailey(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
    command.env("SSL_CERT_FILE", &tls.authority).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let held = || fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().count();
    let deadline = Instant::now() + Duration::from_secs(30);
    while taken.load(Ordering::SeqCst) < 128 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    // Were there no places, all 400 would be taken by now; one command has half of them.
    thread::sleep(Duration::from_secs(3));
    let (taken, held) = (taken.load(Ordering::SeqCst), held());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(taken, 128, "connections to the server, and {held} descriptors");
    assert!((128..256).contains(&held), "{held} descriptors for 400 requests");
}

/// Over HTTP/2 the host of a request stands in `:authority`, and no header says it.
#[test]
fn the_authority_of_a_request_is_the_host_that_its_connection_leads_to() {
    let stage = stage("", "");
    let node = Node::start(&stage);
    let place = format!("https://localhost:{}", node.port);
    fs::write(stage.home().join("config.toml"), format!("[network]\nprivate = [\"{place}\"]\n")).unwrap();
    let rules = allow(&format!("localhost:{}", node.port), "");
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{rules}")).unwrap();
    let curl = |arguments: &str| {
        let line = format!(
            "export NO_PROXY= no_proxy=; curl -sS --max-time 30 -w ' %{{http_code}}' --http2 {arguments} {place}/x"
        );
        let mut command = stage.bailey(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
        Ran::of(command.env("SSL_CERT_FILE", &node.authority).output().unwrap())
    };
    // curl makes `:authority` of it.
    let other = curl("-H 'Host: b.example'");
    assert!(
        other.stdout.contains("somebody else than its connection leads to") && other.stdout.ends_with(" 421"),
        "{other:?}"
    );
    let same = curl(&format!("-H 'Host: LOCALHOST.:{}'", node.port));
    assert!(same.stdout.contains("version 2.0") && same.stdout.ends_with(" 200"), "the control: {same:?}");
}

#[test]
fn a_thousand_connections_at_once_are_all_served() {
    let open = Upstream::start(|_, _| whole("200 OK", b"passed"));
    let config = format!("[network]\nprivate = [\"http://{}\"]\n", open.address);
    let stage = stage(&config, &allow(&open.address.to_string(), ""));
    let program = format!(
        "{PROXY}
async def one():
    reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port)
    writer.write(f'GET http://{0}/ HTTP/1.1\\r\\nHost: {0}\\r\\n{{shown}}\\r\\nConnection: close\\r\\n\\r\\n'.encode())
    answer = await reader.read()
    writer.close()
    return answer.endswith(b'passed')
async def all_():
    return sum(await asyncio.gather(*[one() for _ in range(1000)]))
print(asyncio.run(all_()))",
        open.address
    );
    let ran = python(&stage, &program);
    assert_eq!(ran.stdout, "1000\n", "{ran:?}");
    assert_eq!(open.asked().len(), 1000);
}

/// A server that says each line again; it counts its connections.
fn echo() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count: Arc<AtomicUsize> = Arc::default();
    let counted = count.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..length]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, count)
}

#[test]
fn a_tunnel_is_opened_where_the_owner_named_it_and_a_rule_allows_it() {
    let (address, count) = echo();
    let program = format!(
        "{PROXY}
async def one():
    status, reader, writer = await opened('CONNECT {address} HTTP/1.1\\r\\nHost: {address}\\r\\n')
    print(status)
    writer.write(b'no HTTP at all\\n')
    print((await reader.readline()).decode().strip())
asyncio.run(one())"
    );
    let place = format!("https://{address}");
    let named = format!("[network]\nprivate = [\"{place}\"]\ntunnels = [\"{place}\"]\n");
    let unnamed = format!("[network]\nprivate = [\"{place}\"]\n");
    let connect = allow(&address.to_string(), ", method = \"CONNECT\"");
    let get = allow(&address.to_string(), ", method = \"GET\"");
    for (config, rules) in [(&named, &get), (&unnamed, &connect)] {
        let ran = python(&stage(config, rules), &program);
        assert!(!ran.stdout.contains("no HTTP at all"), "{ran:?}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let open = stage(&named, &connect);
    let ran = python(&open, &program);
    assert_eq!(ran.stdout, "200\nno HTTP at all\n", "the control: {ran:?}");
    let exported = open.ran(&["audit", "export"]).stdout;
    assert!(exported.contains(r#"\"out\":\"15\""#) && exported.contains(r#"\"back\":\"15\""#), "{exported}");
    assert!(open.trail().iter().any(|entry| entry["target"] == format!("CONNECT {place}/")));
}

/// A server that answers whatever comes on each of its connections, and what came on all of them.
fn taker(answers: &'static str) -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, taken) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<u8>>>::default());
    let all = taken.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let all = all.clone();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    all.lock().unwrap().extend(&buffer[..length]);
                    if stream.write_all(answers.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, taken)
}

/// Each new tunnel, and each switch to WebSocket, could else send once more what is too much.
#[test]
fn what_is_sent_through_tunnels_is_limited_for_all_of_them_together() {
    let tunnel =
        |address| ("https", "CONNECT", format!("CONNECT {address} HTTP/1.1\\r\\nHost: {address}\\r\\n"));
    let switch = |address| {
        let upgrade = "Connection: upgrade\\r\\nUpgrade: websocket\\r\\n";
        ("http", "WEBSOCKET", format!("GET http://{address}/ HTTP/1.1\\r\\nHost: {address}\\r\\n{upgrade}"))
    };
    let sent = |way: &dyn Fn(SocketAddr) -> (&'static str, &'static str, String), limit: &str| {
        // To whoever opened a tunnel it is what came back.
        let (address, taken) =
            taker("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
        let (scheme, method, head) = way(address);
        let place = format!("{scheme}://{address}");
        let tunnels = if method == "CONNECT" { format!("tunnels = [\"{place}\"]\n") } else { String::new() };
        let config = format!("[network]\nprivate = [\"{place}\"]\n{tunnels}{limit}");
        let program = format!(
            "{PROXY}
async def one():
    status, reader, writer = await opened('{head}')
    writer.write(b'#' * 4096)
    await reader.read(1)
    writer.close()
    return status
async def all():
    print(*[await one() for _ in range(8)], *await asyncio.gather(*[one() for _ in range(8)]))
asyncio.run(all())"
        );
        let rules = allow(&address.to_string(), &format!(", method = \"{method}\""));
        let ran = python(&stage(&config, &rules), &program);
        let taken = taken.lock().unwrap().iter().filter(|byte| **byte == b'#').count();
        (taken, ran)
    };
    for way in [&tunnel as &dyn Fn(_) -> _, &switch] {
        let (taken, ran) = sent(way, "[[network.limit]]\nhost = \"*\"\nsent = \"10 KB\"\n");
        assert!(taken > 0 && taken <= 10_000, "{taken}: {ran:?}");
        let is_told = ran.stderr.contains("no more than 10000 bytes are sent to");
        assert!(ran.stdout.contains("429") && is_told, "no new one begins: {ran:?}");
        let (taken, ran) = sent(way, "");
        assert!(taken > 10_000 && !ran.stdout.contains("429"), "the control: {taken}: {ran:?}");
    }
}

/// HTTP/2 tells that a body was cut off and not why.
#[test]
fn why_a_body_was_cut_off_is_told_over_http_2_too() {
    let stage = stage("", "");
    let node = Node::start(&stage);
    let place = format!("https://localhost:{}", node.port);
    let config =
        format!("[network]\nprivate = [\"{place}\"]\n[[network.limit]]\nhost = \"*\"\nsent = \"50 KB\"\n");
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let rules = allow(&format!("localhost:{}", node.port), "");
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{rules}")).unwrap();
    let line = format!(
        "export NO_PROXY= no_proxy=; head -c 90000 /dev/zero | curl -sS --max-time 30 -T - {place}/up"
    );
    let mut command = stage.bailey(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
    let cut = Ran::of(command.env("SSL_CERT_FILE", &node.authority).output().unwrap());
    assert!(cut.stdout.contains("no more than 50000 bytes are sent to"), "{cut:?}");
    assert!(stage.ran(&["audit", "export"]).stdout.contains("no more than 50000 bytes are sent to"));
}

/// Whoever may ask carries things in headers and URLs, too, and is answered in them.
#[test]
fn what_stands_before_bodies_counts_for_limits() {
    let up = Upstream::start(|_, _| {
        format!(
            "HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "y".repeat(20_000)
        )
        .into_bytes()
    });
    let line = |what: &str| {
        format!(
            "x=$(head -c 20000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5; do curl -sS -o /tmp/o -w '%{{size_header}}\n' {what}; done"
        )
    };
    let url = format!("http://{}/", up.address);
    let ways = [line(&format!("-H \"X: $x\" {url}")), line(&format!("\"{url}$(echo $x | head -c 7000)\""))];
    for (way, bytes) in ways.iter().zip([100_000, 35_000]) {
        for (limit, most) in [("sent = \"30 KB\"", 30_000), ("", usize::MAX)] {
            let limit = if limit.is_empty() {
                String::new()
            } else {
                format!("[[network.limit]]\nhost = \"*\"\n{limit}\n")
            };
            let stage = stage(
                &format!("[network]\nprivate = [\"http://{}\"]\n{limit}", up.address),
                &allow(&up.address.to_string(), ""),
            );
            let before: usize = up.asked().iter().map(String::len).sum();
            let ran = run(&stage, way);
            let sent = up.asked().iter().map(String::len).sum::<usize>() - before;
            assert!(sent <= most && (most < usize::MAX || sent > bytes), "{limit}: {sent} {ran:?}");
            assert_eq!(ran.stderr.contains("bytes are sent to"), most < usize::MAX, "{ran:?}");
        }
    }
    let received = |limit: &str| {
        let config = format!("[network]\nprivate = [\"http://{}\"]\n{limit}", up.address);
        let ran = run(&stage(&config, &allow(&up.address.to_string(), "")), &line(&url));
        let sizes = ran.stdout.lines().map(|line| line.trim().parse::<usize>().unwrap());
        sizes.filter(|size| *size > 20_000).count()
    };
    assert_eq!(received("[[network.limit]]\nhost = \"*\"\nreceived = \"50 KB\"\n"), 2);
    assert_eq!(received(""), 5, "the control");
}

/// An answer that says two lengths was cut off at one of them, as if it were whole (RFC 9112, 6.3).
#[test]
fn an_answer_is_as_long_as_it_is() {
    for (answers, options, told) in [
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "",
            "hello",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "-i", "content-length: 5"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 42\r\nConnection: close\r\n\r\n", "-I", "content-length: 42"),
    ] {
        let (address, _) = taker(answers);
        let stage = stage(
            &format!("[network]\nprivate = [\"http://{address}\"]\n"),
            &allow(&address.to_string(), ""),
        );
        let ran = run(&stage, &format!("curl -sS {options} http://{address}/"));
        assert!(ran.code == Some(0) && ran.stdout.to_lowercase().contains(told), "{answers}: {ran:?}");
    }
}

/// Of an answer that switches, but not to what was asked for, nothing passes.
#[test]
fn a_switch_to_another_protocol_passes_to_nobody() {
    for (upgrade, passes) in [("Upgrade: WebSocket\r\n", true), ("Upgrade: h2c\r\n", false), ("", false)] {
        let answers =
            format!("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n{upgrade}\r\nhello");
        let (address, _) = taker(Box::leak(answers.into_boxed_str()));
        let stage = stage(
            &format!("[network]\nprivate = [\"http://{address}\"]\n"),
            &allow(&address.to_string(), ""),
        );
        let line = format!(
            "curl -sS -i --max-time 3 -H 'Connection: Upgrade' -H 'Upgrade: websocket' http://{address}/ws | head -c 300"
        );
        let ran = run(&stage, &line);
        assert_eq!(ran.stdout.contains("101 Switching"), passes, "{upgrade:?}: {ran:?}");
    }
}

/// What stands behind a body went past nobody who looks at headers.
#[test]
fn what_comes_behind_the_body_of_a_request_stays_inside() {
    let stage = stage("", "");
    let node = Node::start(&stage);
    let place = format!("localhost:{}", node.port);
    let config = format!("[network]\nprivate = [\"https://{place}\"]\n");
    fs::write(stage.home().join("config.toml"), config).unwrap();
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{}", allow(&place, "")))
        .unwrap();
    let program = format!(
        "{PROXY}
import ssl, socket
plain = socket.create_connection((proxy.hostname, proxy.port))
plain.sendall(f'CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n{{shown}}\\r\\n\\r\\n'.encode())
while not plain.recv(4096).endswith(b'\\r\\n\\r\\n'): pass
safe = ssl.create_default_context().wrap_socket(plain, server_hostname='localhost')
safe.sendall(b'POST /x HTTP/1.1\\r\\nHost: {place}\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: x-http-method-override\\r\\nConnection: close\\r\\n\\r\\n5\\r\\nhello\\r\\n0\\r\\nx-http-method-override: DELETE\\r\\n\\r\\n')
while came := safe.recv(4096): print(came.decode())"
    );
    let mut command = stage.bailey(&["sandbox", "run", "--network", "--", "python3", "-c", &program]);
    let ran = Ran::of(command.env("SSL_CERT_FILE", &node.authority).output().unwrap());
    assert!(ran.stdout.contains("version 2.0") && ran.stdout.contains("length 5"), "the control: {ran:?}");
    assert!(!ran.stdout.contains("DELETE"), "{ran:?}");
}

/// What a client says of its message is not lost where the door speaks to an older server.
#[test]
fn lengths_cookies_and_bodies_of_any_method_arrive() {
    let (address, taken) = taker("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let stage =
        stage(&format!("[network]\nprivate = [\"http://{address}\"]\n"), &allow(&address.to_string(), ""));
    let line = format!(
        "curl -sS -X PUT -d '' http://{address}/empty; curl -sS -H 'Cookie: a=1' -H 'Cookie: b=2' http://{address}/cookies; \
         echo hello | curl -sS -X GET -T - http://{address}/chunked"
    );
    let ran = run(&stage, &line);
    let taken = String::from_utf8_lossy(&taken.lock().unwrap()).to_lowercase();
    assert!(taken.contains("put /empty") && taken.contains("content-length: 0"), "{taken} {ran:?}");
    assert!(taken.contains("cookie: a=1; b=2"), "{taken} {ran:?}");
    assert!(taken.contains("get /chunked") && taken.contains("hello"), "{taken} {ran:?}");
}

#[test]
fn what_passes_to_and_from_a_host_is_limited() {
    let big = Upstream::start(|first, length| match first.starts_with("GET") {
        true => whole("200 OK", &[b'x'; 50_000]),
        false => whole("200 OK", format!("took {length}").as_bytes()),
    });
    let url = format!("http://{}/", big.address);
    let with = |limit: &str| {
        let limit = if limit.is_empty() {
            String::new()
        } else {
            format!("[[network.limit]]\nhost = \"*\"\n{limit}")
        };
        let config = format!("[network]\nprivate = [\"http://{}\"]\n{limit}\n", big.address);
        stage(&config, &allow(&big.address.to_string(), ""))
    };
    let up = format!(
        "head -c 40000 /dev/zero > /tmp/up; curl -sS -T /tmp/up {url}; echo; head -c 40000 /dev/zero | curl -sS -T - {url}; echo; curl -sS -T /tmp/up {url}"
    );
    let sent = run(&with("sent = \"50 KB\"\n"), &up);
    assert!(sent.stdout.starts_with("took 40000\n") && sent.stdout.matches("took").count() == 1, "{sent:?}");
    assert!(sent.stdout.contains("no more than 50000 bytes are sent to"), "{sent:?}");
    let down = format!("for i in 1 2 3; do curl -sS {url} 2>/dev/null | wc -c; done");
    let received = run(&with("received = \"101 KB\"\n"), &down);
    assert!(
        received.stdout.starts_with("50000\n50000\n")
            && !received.stdout.ends_with("\n50000\n50000\n50000\n")
    );
    let exported: Vec<&str> = received.stdout.lines().collect();
    assert!(exported[2].parse::<usize>().unwrap() < 50_000, "{received:?}");
    // Then nothing is done any more, either, that would be answered to nobody.
    let pay = format!("{down}; curl -sS -d transfer=1 {url}");
    let paid = || big.asked().iter().filter(|head| head.starts_with("POST")).count();
    let refused = run(&with("received = \"101 KB\"\n"), &pay);
    assert!(paid() == 0 && refused.stdout.contains("refused this request: POST"), "{refused:?}");
    run(&with(""), &pay);
    assert_eq!(paid(), 1, "the control");
    let often = format!("for i in 1 2 3; do curl -sS -o /dev/null -w '%{{http_code}}\\n' {url}; done");
    let asked = run(&with("per_minute = 2\n"), &often);
    assert_eq!(asked.stdout, "200\n200\n429\n", "{asked:?}");
    assert!(asked.stderr.contains("2 times in a minute"), "{asked:?}");
    // What no rule lets pass is no request of a host.
    let refused = format!("for i in 1 2 3; do curl -sS -o /dev/null -X PUT {url}; done; {often}");
    let config = format!(
        "[network]\nprivate = [\"http://{0}\"]\n[[network.limit]]\nhost = \"*\"\nper_minute = 2\n",
        big.address
    );
    let narrow = stage(&config, &allow(&big.address.to_string(), ", method = \"GET\""));
    assert_eq!(run(&narrow, &refused).stdout, "200\n200\n429\n");
    for line in [&up, &down, &often] {
        let control = run(&with(""), line);
        assert!(!control.stdout.contains("429") && !control.stdout.contains("no more than"), "{control:?}");
    }
    assert_eq!(run(&with(""), &down).stdout, "50000\n50000\n50000\n", "the control");
}

/// A server may take a connection for who logged in on it: no other command comes in by it.
#[test]
fn a_connection_to_a_server_is_one_commands_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count: Arc<AtomicUsize> = Arc::default();
    let counted = count.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).unwrap_or(0) > 0 {
                    if line == "\r\n" {
                        let body = format!("connection {number}\n");
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                        (&stream).write_all(format!("{head}{body}").as_bytes()).ok();
                    }
                    line.clear();
                }
            });
        }
    });
    let rest = "\n[[rule]]\nname = \"rest\"\nanswer = \"allow\"\nmatch = { action = [\"model\", \"read\", \"stat\", \"diff\"] }\n";
    let config = format!("[network]\nprivate = [\"http://{address}\"]\n");
    let stage = stage(&config, &format!("{}{rest}", allow(&address.to_string(), "")));
    let line = format!("curl -sS --noproxy '' http://{address}/; curl -sS --noproxy '' http://{address}/");
    let call = || serde_json::json!({ "command": line, "network": true });
    let script = vec![
        bailey_testkit::Reply::calls([("c1", "command_run", call())]),
        bailey_testkit::Reply::calls([("c2", "command_run", call())]),
        bailey_testkit::Reply::text("done"),
    ];
    let _server = stage.model_beside(script);
    let told =
        stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]).results();
    assert!(told[0].contains("connection 0\nconnection 0"), "the control: {told:?}");
    assert!(told[1].contains("connection 1\nconnection 1"), "{told:?}");
}

#[test]
fn a_limit_or_a_tunnel_that_makes_no_sense_is_a_mistake_with_its_place() {
    let stage = stage("", "");
    for (config, told) in [
        ("[[network.limit]]\nhost = \"*\"\n", "write `sent`, `received` or `per_minute`"),
        ("[[network.limit]]\nhost = \"*\"\nper_minute = 0\n", "write 1 or more"),
        ("[[network.limit]]\nhost = \"https://a\"\nsent = \"1 KB\"\n", "is no host"),
        ("[[network.limit]]\nhost = \"a\"\nsent = \"1 kb\"\n", "`a`"),
        ("[network]\ntunnels = [\"a:5432\"]\n", "is no place such as"),
        ("[network]\ntunnels = [\"http://a\"]\n", "a tunnel is written `https://HOST:PORT`"),
        (
            "[network]\ntunnels = [\"https://a\"]\n[[network.key]]\nsecret = \"K\"\nat = \"https://a\"\n",
            "no key can be put in there",
        ),
    ] {
        fs::write(stage.home().join("config.toml"), config).unwrap();
        let ran = stage.ran(&["config", "check"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(told), "{config}: {ran:?}");
    }
    // One server is one in whatever spelling.
    let check = |tunnel: &str, key: &str| {
        let config = format!(
            "[network]\nprivate = [\"{key}\"]\ntunnels = [\"{tunnel}\"]\n[[network.key]]\nsecret = \"K\"\nat = \"{key}\"\n"
        );
        fs::write(stage.home().join("config.toml"), config).unwrap();
        stage.ran(&["config", "check"]).stderr.contains("no key can be put in there")
    };
    for (tunnel, key) in [
        ("https://h.example:18443/", "https://h.example:18443"),
        ("https://h.example:443", "https://h.example"),
        ("https://H.Example:18443", "https://h.example:18443/"),
        ("https://h.example:18443", "http://h.example:18443"),
    ] {
        assert!(check(tunnel, key), "{tunnel} {key}");
    }
    for other in ["https://h.example:18444", "https://g.example:18443"] {
        assert!(!check(other, "https://h.example:18443"), "the control: {other}");
    }
}
