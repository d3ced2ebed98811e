//! Keys that commands use and never hold: the network door puts them in where their owner bound them to, and
//! nowhere else.

use crate::{
    daemon::{Client, Daemon, open, pid},
    door::{MAY_ASK, MAY_END, Upstream, allow, whole},
    relay::Tls,
    stage::{Ran, Stage},
    web::{DEFAULT, run},
};
use bailey_testkit::Reply;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

const KEY: &str = "ghp_Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE";

/// A server that takes a key, and a home that is bound to it.
struct Keyed {
    stage: Stage,
    upstream: Upstream,
}

impl Keyed {
    /// With a server that answers so, and further settings of the key.
    fn new(answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static, settings: &str) -> Self {
        let upstream = Upstream::start(answer);
        let stage = Stage::new(&[("a.txt", "a\n")]);
        let place = format!("http://{}", upstream.address);
        let config = format!(
            "[network]\nprivate = [\"{place}\"]\n\n[[network.key]]\nsecret = \"FORGE_TOKEN\"\nat = \"{place}\"\n{settings}"
        );
        let rules = allow(&upstream.address.to_string(), "");
        settle(&stage, &config, &rules);
        Self { stage, upstream }
    }

    fn plain(settings: &str) -> Self {
        Self::new(|_, length| whole("200 OK", format!("took {length}").as_bytes()), settings)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.upstream.address)
    }

    /// Runs a line of a shell inside, for which this machine's loopback is a host like any other.
    fn run(&self, line: &str) -> Ran {
        let line = format!("export NO_PROXY= no_proxy=; {line}");
        self.stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", &line])
    }

    fn curl(&self, arguments: &str) -> Ran {
        self.run(&format!("curl -sS --max-time 30 {arguments}"))
    }
}

/// A home with a key in its `.env`, these settings and rules.
fn settle(stage: &Stage, config: &str, rules: &str) {
    let home = stage.home();
    fs::create_dir_all(home.join("policy")).unwrap();
    fs::write(home.join("config.toml"), config).unwrap();
    fs::write(home.join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{rules}")).unwrap();
    let env = home.join(".env");
    fs::write(&env, format!("FORGE_TOKEN={KEY}\n")).unwrap();
    fs::set_permissions(env, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// Ways in which a key can be written.
fn spellings(key: &str) -> Vec<String> {
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let packed = |before: &str| STANDARD.encode(format!("{before}{key}"));
    let inner = |before: &str| packed(before)[8..36].to_owned();
    vec![key.to_owned(), hex, inner("us:"), inner("us:x"), inner("us:xy"), key.replace('_', "%5F")]
}

/// The files beneath a folder that hold one of these texts.
fn holding(folder: &Path, texts: &[String]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().map_while(Result::ok) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                let has = |text: &String| bytes.windows(text.len()).any(|window| window == text.as_bytes());
                if texts.iter().any(has) {
                    found.push(entry.path());
                }
            }
        }
    }
    found
}

/// Reads what a process inside can read, in memory and on disk, for these texts.
const SCAN: &str = r#"
import os, sys, glob, time
# Turned around, so that these words themselves hold none of them.
texts = [word[::-1].encode() for word in sys.argv[1:]]
found = set()
def look(path, data):
    if any(text in data for text in texts): found.add(path)
for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):
    try: look(path, open(path, 'rb').read())
    except OSError: pass
for maps in glob.glob('/proc/[0-9]*/maps'):
    pid = maps.split('/')[2]
    if pid == str(os.getpid()): continue
    try:
        memory = open(f'/proc/{pid}/mem', 'rb', 0)
        for line in open(maps):
            start, end = (int(part, 16) for part in line.split()[0].split('-'))
            if 'rw' in line.split()[1] and end - start < 1 << 28:
                try: memory.seek(start); look(f'/proc/{pid}/mem', memory.read(end - start))
                except (OSError, ValueError, OverflowError): pass
    except OSError: pass
for top in [os.environ['HOME'], '/tmp', '/etc', '/run', os.getcwd()]:
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                # What was there before it all began holds none.
                if os.path.isfile(path) and time.time() - os.stat(path).st_mtime < 3600: look(path, open(path, 'rb').read())
            except OSError: pass
print('found', sorted({path.split('/')[1] for path in found}))
"#;

/// Whether a process holds a text where it may write.
fn holds(pid: u64, text: &str) -> bool {
    let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let parts = maps.lines().filter(|line| line.contains(" rw")).filter_map(|line| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
    });
    parts.into_iter().any(|(start, end)| {
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        // What is the kernel's own cannot be read.
        memory.read_exact_at(&mut bytes, start).is_ok()
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// A server that the agent left running asks on while its key is changed, taken away, and bound elsewhere: a
/// reload ends that, and nothing else of it. Whoever reads the keys for that is not the daemon.
#[test]
fn a_key_that_its_owner_changes_or_takes_away_is_put_in_no_more_after_a_reload() {
    for change in ["another value", "taken away", "bound elsewhere"] {
        let keyed = Keyed::plain("");
        let stage = &keyed.stage;
        fs::write(stage.home().join("policy/default.toml"), DEFAULT).unwrap();
        let line = format!(
            "export NO_PROXY= no_proxy=; while sleep 0.1; do curl -s --max-time 5 -H \"Authorization: Bearer $FORGE_TOKEN\" {} ; \
             curl -s --max-time 5 {}; done",
            keyed.url("/keyed"),
            keyed.url("/plain")
        );
        let arguments = json!({ "command": line, "background": true, "network": true });
        let _model = stage
            .model_beside(vec![Reply::calls([("c1", "command_run", arguments)]), Reply::text("it runs")]);
        let daemon = Daemon::start(stage);
        let opened = open(stage, &[]);
        let mut client = Client::of(stage, opened["session"].as_str().unwrap());
        client.say(&json!({ "op": "say", "text": "do it" }));
        let began = client.hear(&["result", "end"]);
        assert!(began["text"].as_str().unwrap_or_default().contains("runs in the background"), "{began}");
        client.hear(&["end"]);
        // Nobody looks at it any more.
        drop(client);
        let asked = |what: &str| keyed.upstream.asked().iter().filter(|head| head.contains(what)).count();
        let comes = |what: &str, from: usize| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while asked(what) < from + 3 {
                assert!(Instant::now() < deadline, "{what}: {:#?}", keyed.upstream.asked());
                thread::sleep(Duration::from_millis(20));
            }
        };
        comes(KEY, 0);
        let (env, config) = (stage.home().join(".env"), stage.home().join("config.toml"));
        match change {
            "another value" => fs::write(env, "FORGE_TOKEN=ghp_Another3vQ9sX1bN7tR5wY2mC8dF6hJ4\n").unwrap(),
            "taken away" => fs::write(env, "OTHER=1\n").unwrap(),
            _ => {
                let bound = fs::read_to_string(&config).unwrap();
                let key = "secret = \"FORGE_TOKEN\"\n";
                fs::write(config, bound.replace(key, &format!("{key}paths = [\"/other\"]\n"))).unwrap();
            }
        }
        // The control: it is used until the owner says so.
        comes(KEY, asked(KEY));
        let ran = stage.ran(&["reload"]);
        assert!(ran.code == Some(0) && ran.stderr.contains("bailey ps --stop"), "{ran:?}");
        thread::sleep(Duration::from_millis(500));
        let before = asked(KEY);
        comes("/plain", asked("/plain"));
        assert_eq!(asked(KEY), before, "{change}");
        let refused = stage.trail();
        assert!(format!("{refused:?}").contains("was changed or taken away"), "it says why");
        let status = daemon.status();
        assert!(
            !holds(pid(&status), KEY) && !holds(pid(&status), "ghp_Another3vQ9"),
            "the daemon read no key"
        );
        assert!(holds(pid(&status["sessions"][0]), KEY), "and the control is the session's process");
    }
}

#[test]
fn a_command_uses_a_key_that_it_never_holds() {
    let keyed = Keyed::plain("");
    let url = keyed.url("/user?page=1");
    let line = format!(
        "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" {url}; echo; echo $FORGE_TOKEN > /tmp/kept; \
         sleep 30 & python3 - \"$@\""
    );
    let words =
        |texts: &[String]| texts.iter().map(|text| text.chars().rev().collect()).collect::<Vec<String>>();
    let scan = |texts: &[String]| {
        let line = format!("export NO_PROXY= no_proxy=; {line} <<'E'\n{SCAN}\nE\n");
        let fixed = ["sandbox", "run", "--keep", "--network", "--", "sh", "-c", &line, "sh"];
        let words = words(texts);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        keyed.stage.ran(&[fixed.as_slice(), &words].concat())
    };
    let held = scan(&spellings(KEY));
    assert_eq!(held.stdout, "took 0\nfound []\n", "{held:?}");
    let asked = keyed.upstream.asked();
    assert!(asked[0].contains(&format!("authorization: Bearer {KEY}\r\n")), "{asked:?}");
    // The same scan finds the stand-in, of which the first letters are known, in variables, memory and files.
    let stand_in = scan(&["bailey-forge-token-".to_owned()]);
    assert_eq!(stand_in.stdout, "took 0\nfound ['proc', 'tmp']\n", "the control: {stand_in:?}");
    // Nor is it in what stays of the session: layer, temporary files, journal.
    let env = keyed.stage.home().join(".env");
    assert_eq!(holding(&keyed.stage.home(), &spellings(KEY)), [env], "and the control is the key's own file");
    let kept = holding(&keyed.stage.home().join("sessions"), &["bailey-forge-token-".to_owned()]);
    assert!(!kept.is_empty(), "the control: what a command writes down stays");
    // Each use is an entry that names the key.
    let uses = keyed.stage.trail();
    let uses = uses.iter().filter_map(|entry| entry["target"].as_str().filter(|it| it.starts_with("GET ")));
    assert_eq!(uses.collect::<Vec<_>>(), vec![format!("GET {url} with the key FORGE_TOKEN"); 2]);
}

/// A31, A55, A56 as a command tries them; the unit tests of the door have every spelling.
#[test]
fn a31_a_stand_in_is_put_in_nowhere_else() {
    let settings = "methods = [\"GET\", \"PUT\"]\npaths = [\"/ours/**\"]\n";
    let keyed = Keyed::plain(settings);
    let ours = keyed.url("/ours/x");
    let bearer = "-H \"Authorization: Bearer $FORGE_TOKEN\"";
    let (refused, other) = ("shows the stand-in of FORGE_TOKEN", "and no other login");
    for (arguments, why) in [
        (format!("{bearer} -X POST {ours}"), refused),
        (format!("{bearer} {}", keyed.url("/theirs/x")), refused),
        (format!("{bearer} --path-as-is {}", keyed.url("/ours/../theirs")), refused),
        (format!("-H \"X-Api-Key: $FORGE_TOKEN\" {ours}"), refused),
        (format!("-H \"Authorization: Token $FORGE_TOKEN\" {ours}"), refused),
        (format!("-u us:$FORGE_TOKEN {ours}"), refused),
        (format!("\"{ours}?t=$FORGE_TOKEN\""), refused),
        (format!("{bearer} -H \"X-Note: $(echo $FORGE_TOKEN | base64)\" {ours}"), refused),
        (format!("-H 'Authorization: Bearer of-the-attacker' {ours}"), other),
        (format!("{bearer} -H 'X-Api-Key: of-the-attacker' {ours}"), other),
        (format!("{bearer} '{ours}?access_token=of-the-attacker'"), other),
    ] {
        let ran = keyed.curl(&arguments);
        assert!(
            ran.stdout.contains("refused this request") && ran.stdout.contains(why),
            "{arguments}: {ran:?}"
        );
    }
    assert_eq!(keyed.upstream.asked(), [""; 0], "none of them left");
    let trail = keyed.stage.trail();
    let misuses: Vec<&Value> = trail.iter().filter(|entry| entry["type"] == "denied").collect();
    assert_eq!(misuses.len(), 11, "each is an entry");
    assert!(misuses.iter().all(|entry| entry["reasons"][0].as_str().unwrap().starts_with("network door: ")));
    let passed = keyed.curl(&format!("{bearer} -X PUT -d hello {ours}"));
    assert_eq!(passed.stdout, "took 5", "the control: {passed:?}");
    assert!(keyed.upstream.asked()[0].contains(KEY));
}

#[test]
fn a31_a_stand_in_in_a_body_stops_it() {
    let keyed = Keyed::plain("methods = [\"GET\", \"POST\"]\n");
    let program = |prepare: &str| {
        let url = keyed.url("/x");
        let program = format!(
            "import os, urllib.request, base64
key = os.environ['FORGE_TOKEN'].encode()
{prepare}
request = urllib.request.Request('{url}', data=body, method='POST', headers={{'Content-Type': 'x/y', **more}})
try: print(urllib.request.urlopen(request).read().decode())
except Exception as error: print('failed', error)"
        );
        keyed.run(&format!("python3 -c \"$(cat <<'E'\n{program}\nE\n)\""))
    };
    let whole = [
        "body, more = b'x' * 100000 + key + b'y' * 10, {}",
        "body, more = base64.b64encode(b'a' + key), {}",
        "body, more = key.hex().encode(), {}",
        // In pieces, of which none holds it.
        "more = {'Transfer-Encoding': 'chunked'}\ndef body():\n    for byte in key: yield bytes([byte])\nbody = body()",
    ];
    for prepare in whole {
        let ran = program(prepare);
        assert!(!ran.stdout.contains("took"), "{prepare}: {ran:?}");
        assert!(ran.stdout.contains("failed"), "{prepare}: {ran:?}");
    }
    let exported = keyed.stage.ran(&["audit", "export"]).stdout;
    assert!(exported.contains("its body shows the stand-in of a key"), "{exported}");
    assert!(
        exported.contains("the door passed no more of it") && !exported.contains("gave no answer: its body"),
        "{exported}"
    );
    let control = [
        "body, more = b'x' * 100000 + key[:-1] + b'!' + b'y' * 10, {}",
        "more = {'Transfer-Encoding': 'chunked'}\ndef body():\n    for byte in key[:-1]: yield bytes([byte])\nbody = body()",
    ];
    for prepare in control {
        assert!(program(prepare).stdout.contains("took"), "the control: {prepare}");
    }
}

/// A32: a server that shows what it was sent.
#[test]
fn a32_an_answer_that_shows_the_key_is_masked() {
    let seen: Arc<Mutex<String>> = Arc::default();
    let answer = move |first: &str, _| {
        let packed = STANDARD.encode(format!("us:{KEY}"));
        let halves = KEY.split_at(10);
        match first.split(' ').nth(1).unwrap() {
            "/head" => {
                format!("HTTP/1.1 200 OK\r\nX-Seen: {KEY}\r\nContent-Length: 2\r\n\r\nok").into_bytes()
            }
            "/packed" => whole("200 OK", format!("you sent {packed}").as_bytes()),
            "/parts" => {
                let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                format!("{head}{}{}0\r\n\r\n", chunk(halves.0), chunk(halves.1)).into_bytes()
            }
            "/gzip" => "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok".into(),
            "/cookie" => "HTTP/1.1 200 OK\r\nSet-Cookie: in=1\r\nContent-Length: 2\r\n\r\nok".into(),
            _ => whole("200 OK", format!("you sent {KEY}, {seen:?}").as_bytes()),
        }
    };
    let keyed = Keyed::new(answer, "");
    let ask =
        |path: &str| keyed.curl(&format!("-i -H \"Authorization: Bearer $FORGE_TOKEN\" {}", keyed.url(path)));
    for path in ["/body", "/head", "/packed", "/parts"] {
        let ran = ask(path);
        let is_shown = spellings(KEY).iter().any(|text| ran.stdout.contains(text.as_str()));
        assert!(!is_shown && ran.stdout.contains("[redacted:FORGE_TOKEN]"), "{path}: {ran:?}");
    }
    let packed = ask("/gzip");
    assert!(packed.stdout.contains("the answer is packed"), "{packed:?}");
    assert!(!ask("/cookie").stdout.to_lowercase().contains("set-cookie"), "a login that would stay inside");
    assert!(keyed.stage.ran(&["audit", "export"]).stdout.contains(r#"\"masked\":1"#));
    // A server to which no key is bound shows the same letters to whoever asks.
    let open = Upstream::start(|_, _| whole("200 OK", format!("you sent {KEY}").as_bytes()));
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let place = format!("http://{}", open.address);
    settle(&stage, &format!("[network]\nprivate = [\"{place}\"]\n"), &allow(&open.address.to_string(), ""));
    let line =
        format!("curl -sS --noproxy '' {place} > /tmp/it; grep -c Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE /tmp/it");
    let body = stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
    assert_eq!(body.stdout, "1\n", "the control: {body:?}");
}

/// What would keep the mask from seeing what an answer shows, or shows it to another request.
#[test]
fn a32_no_answer_of_such_a_server_goes_round_the_mask() {
    let answer = |first: &str, _| {
        let head = |more: &str, body: &str| {
            format!("HTTP/1.1 {more}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
                .into_bytes()
        };
        match first.split(' ').nth(1).unwrap() {
            "/part" => head("206 Partial Content\r\nContent-Range: bytes 0-9/36", &KEY[..10]),
            "/utf-16" => head("200 OK\r\nContent-Type: text/plain; charset=\"UTF-16LE\"", "x"),
            "/hidden" => head("200 OK\r\nContent-Encoding: gzip\r\nConnection: content-encoding", "x"),
            "/switch" => {
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw".to_vec()
            }
            "/name" => head(&format!("200 OK\r\nX-{}: 1", spellings(KEY)[1]), "named"),
            "/units" => head("200 OK", &KEY.replace('_', "\\u005f")),
            "/html" => head("200 OK", &KEY.replace('_', "&#x5F;")),
            _ => head("200 OK", &format!("shown to whoever asks: {KEY}")),
        }
    };
    let keyed = Keyed::new(answer, "paths = [\"/with/**\"]\n");
    for (path, told) in [
        ("/part", "a part that nobody asked for"),
        ("/utf-16", "is in `utf-16le`"),
        ("/hidden", "is packed"),
        ("/switch", "switches to another protocol"),
    ] {
        let ran = keyed.curl(&format!(
            "-i -H 'Connection: upgrade' -H 'Upgrade: x' -H 'Range: bytes=0-9' {}",
            keyed.url(path)
        ));
        assert!(ran.stdout.contains(told), "{path}: {ran:?}");
    }
    let asked = keyed.upstream.asked().concat().to_lowercase();
    assert!(!asked.contains("range:") && !asked.contains("upgrade"), "{asked}");
    for path in ["/units", "/html", "/stored"] {
        let ran = keyed.curl(&keyed.url(path));
        assert!(
            ran.stdout.contains("[redacted:FORGE_TOKEN]"),
            "no key was put in here, and none is shown: {path}: {ran:?}"
        );
    }
    assert!(!keyed.curl(&format!("-i {}", keyed.url("/name"))).stdout.contains(&spellings(KEY)[1]));
    for dots in [".", ".."] {
        let (ip, port) = (keyed.upstream.address.ip(), keyed.upstream.address.port());
        let dotted = format!("http://{ip}{dots}:{port}/x");
        let ran = keyed.curl(&format!("-H 'Authorization: Bearer mine' {dotted}"));
        assert!(ran.stdout.contains("refused") && !ran.stdout.contains("shown to"), "{ran:?}");
        let ran = keyed.curl(&dotted);
        assert!(!ran.stdout.contains(KEY), "{ran:?}");
    }
    let other = keyed.curl(&format!(
        "-X POST -H 'X_HTTP_Method_Override: DELETE' -H 'X-Original-URI: /y' {}",
        keyed.url("/x")
    ));
    assert!(other.stdout.contains("redacted"), "{other:?}");
    let asked = keyed.upstream.asked().concat().to_lowercase();
    assert!(!asked.contains("override") && !asked.contains("original"), "{asked}");
}

/// What the agent fetches itself comes from the same server, which may show what a command sent it.
#[test]
fn a32_what_the_agent_fetches_there_holds_no_key_either() {
    let answer = |first: &str, _| {
        let body = format!("shown to whoever asks: {KEY}, and {KEY}");
        whole("200 OK", if first.contains("/long") { body.repeat(9000) } else { body }.as_bytes())
    };
    let keyed = Keyed::new(answer, "paths = [\"/with/**\"]\n");
    let fetch = |path: &str, more: serde_json::Value| {
        let mut arguments = serde_json::json!({ "url": keyed.url(path) });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("web_fetch", arguments)
    };
    let send = |header: &str| {
        let headers = serde_json::json!({ header: "session=1" });
        (
            "web_request",
            serde_json::json!({ "method": "POST", "url": keyed.url("/x"), "headers": headers, "body": "" }),
        )
    };
    let calls = [
        fetch("/stored", serde_json::json!({ "save_to": "kept.txt" })),
        fetch("/stored", serde_json::json!({})),
        fetch("/long", serde_json::json!({ "from": 39_995 })),
        send("Cookie"),
        send("X_HTTP_Method_Override"),
    ];
    let agents = |stage: &Stage| fs::write(stage.home().join("policy/default.toml"), DEFAULT).unwrap();
    agents(&keyed.stage);
    let told = run(&keyed.stage, &calls, &["--approve", "never"]);
    assert!(told[0].contains("kept.txt") && told[1].contains("[redacted:FORGE_TOKEN]"), "{told:#?}");
    assert!(told[3].contains("is sent no cookie") && told[4].contains("cannot be sent"), "{told:#?}");
    let pieces: Vec<String> = (0..KEY.len() - 12).map(|at| KEY[at..at + 12].to_owned()).collect();
    assert!(
        told.iter().all(|told| pieces.iter().all(|piece| !told.contains(piece.as_str()))),
        "a piece of it"
    );
    fs::remove_file(keyed.stage.home().join(".env")).unwrap();
    assert_eq!(holding(&keyed.stage.home(), &[KEY.to_owned()]), Vec::<PathBuf>::new());
    // The control: from a server to which no key is bound it is kept as it came.
    let open = Upstream::start(answer);
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let place = format!("http://{}", open.address);
    settle(&stage, &format!("[network]\nprivate = [\"{place}\"]\n"), &allow(&open.address.to_string(), ""));
    agents(&stage);
    let save = serde_json::json!({ "url": format!("{place}/stored"), "save_to": "kept.txt" });
    run(&stage, &[("web_fetch", save)], &["--approve", "never"]);
    fs::remove_file(stage.home().join(".env")).unwrap();
    assert!(!holding(&stage.home(), &[KEY.to_owned()]).is_empty());
}

/// git asks for a password itself, and is given the stand-in by the settings that the walls bring.
#[test]
fn git_and_a_server_program_use_a_key_that_they_never_hold() {
    let folder = tempfile::tempdir().unwrap();
    let packed = STANDARD.encode(format!("us:{KEY}"));
    let upstream = Upstream::start(move |first, _| {
        if first.starts_with("GET /it.git/info/refs") {
            // An empty repository, as git's `http-backend` tells one.
            let body = "001e# service=git-upload-pack\n00000000";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n";
            return format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
                .into_bytes();
        }
        whole("200 OK", b"from the server")
    });
    // In front of it one that lets nobody pass without the password.
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let guard = Guard::start(upstream.address, &packed);
    let tls = Tls::start("localhost", (2020, 2090), guard, folder.path());
    let place = format!("https://localhost:{}", tls.address().port());
    let config = format!(
        "[network]\nprivate = [\"{place}\"]\n\n[[network.key]]\nsecret = \"FORGE_TOKEN\"\nat = \"{place}\"\nuser = \"us\"\n\
         methods = [\"GET\", \"POST\"]\n"
    );
    settle(&stage, &config, &allow(&place.replace("https://", ""), ""));
    let run = |line: &str| {
        let line = format!("export NO_PROXY= no_proxy=; {line}");
        let mut command = stage.bailey(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
        Ran::of(command.env("SSL_CERT_FILE", &tls.authority).output().unwrap())
    };
    let cloned = run(&format!("git clone --quiet {place}/it.git /tmp/it && ls -d /tmp/it"));
    assert!(cloned.code == Some(0) && cloned.stdout.contains("/tmp/it"), "{cloned:?}");
    // A small program that serves others, and asks the server in their place.
    let program = format!(
        "import http.server, os, urllib.request, base64, threading
login = base64.b64encode(b'us:' + os.environ['FORGE_TOKEN'].encode()).decode()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        request = urllib.request.Request('{place}/x', headers={{'Authorization': 'Basic ' + login}})
        body = urllib.request.urlopen(request).read()
        self.send_response(200); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
direct = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
print(direct.open(f'http://127.0.0.1:{{server.server_port}}/').read().decode())"
    );
    let served = run(&format!("python3 -c \"$(cat <<'E'\n{program}\nE\n)\""));
    assert_eq!(served.stdout, "from the server\n", "{served:?}");
    let stand_in = run(&format!("GIT_CONFIG_COUNT=0 git clone --quiet {place}/it.git /tmp/it 2>&1; echo $?"));
    assert!(stand_in.stdout.ends_with("128\n"), "the control: nobody passes without: {stand_in:?}");
}

/// Lets pass whoever shows a password (RFC 7617), and asks the others for one.
struct Guard;

impl Guard {
    fn start(to: std::net::SocketAddr, packed: &str) -> std::net::SocketAddr {
        use std::io::{Read as _, Write as _};
        let wanted = format!("authorization: basic {}\r\n", packed.to_lowercase());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let wanted = wanted.clone();
                std::thread::spawn(move || {
                    let (mut head, mut byte) = (Vec::new(), [0]);
                    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                        head.push(byte[0]);
                    }
                    if !String::from_utf8_lossy(&head).to_lowercase().contains(&wanted) {
                        let ask = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"it\"\r\n\
                                    Content-Length: 0\r\nConnection: close\r\n\r\n";
                        stream.write_all(ask).ok();
                        return;
                    }
                    let mut behind = std::net::TcpStream::connect(to).unwrap();
                    behind.write_all(&head).unwrap();
                    std::io::copy(&mut behind, &mut stream).ok();
                });
            }
        });
        address
    }
}

/// The client of a model's provider, as it comes from PyPI.
#[test]
fn the_client_of_a_provider_uses_a_key_that_it_never_holds() {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pip");
    if !packages.join("openai").is_dir() {
        println!(
            "SKIPPED: the package openai is not in target/pip (`cargo xtask test --all --install` brings it)"
        );
        return;
    }
    let reply = r#"{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,
        "message":{"role":"assistant","content":"said by the model"},"finish_reason":"stop"}]}"#;
    let answer = move |_: &str, _: usize| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: __cf_bm=1\r\n";
        format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{reply}", reply.len()).into_bytes()
    };
    let settings =
        "methods = [\"POST\"]\npaths = [\"/v1/chat/completions\"]\nvariable = \"OPENAI_API_KEY\"\n";
    let keyed = Keyed::new(answer, settings);
    let program = format!(
        "from openai import OpenAI
client = OpenAI(base_url='{}', max_retries=0)
for _ in range(2):
    print(client.chat.completions.create(model='m', messages=[]).choices[0].message.content)",
        keyed.url("/v1")
    );
    keyed.stage.write("packages.txt", "");
    let copied = std::process::Command::new("cp")
        .args([
            "-r",
            &packages.display().to_string(),
            &keyed.stage.project().join("lib").display().to_string(),
        ])
        .status();
    assert!(copied.unwrap().success());
    let python = "$(python3 -c 'import sys; print(sys.executable)')";
    let ran = keyed.run(&format!("PYTHONPATH=$PWD/lib {python} -c \"$(cat <<'E'\n{program}\nE\n)\""));
    assert_eq!(ran.stdout, "said by the model\nsaid by the model\n", "{ran:?}");
    assert!(keyed.upstream.asked().iter().all(|head| head.contains(&format!("authorization: Bearer {KEY}"))));
}

#[test]
fn a_key_that_makes_no_sense_is_a_mistake_with_its_place() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    for (rest, told) in [
        ("at = \"http://forge.example.com\"", "is not encrypted"),
        ("at = \"forge\"", "`at` is not the URL of a server"),
        ("at = \"https://f.example\"\nmethods = [\"get\"]", "write it in upper case"),
        ("at = \"https://f.example\"\nmethods = [\"WEBSOCKET\"]", "no key goes there"),
        ("at = \"https://f.example\"\nmethods = []", "a key for nothing"),
        ("at = \"https://f.example\"\npaths = [\"x\"]", "begins with `/`"),
        ("at = \"https://f.example\"\nuser = \"a'b\"", "is no user"),
        ("at = \"https://f.example\"\nuser = \"a\"\nprefix = \"x\"", "are two forms"),
        ("at = \"https://f.example\"\nvariable = \"A-B\"", "is no name of a variable"),
        ("at = \"https://f.example\"\nvariable = \"LD_PRELOAD\"", "has a meaning of its own"),
        ("at = \"https://f.example\"\nvariable = \"https_proxy\"", "has a meaning of its own"),
        ("at = \"https://f.example\"\nvalue = \"x\"", "unknown field `value`"),
    ] {
        settle(&stage, &format!("[[network.key]]\nsecret = \"FORGE_TOKEN\"\n{rest}\n"), "");
        let ran = stage.ran(&["config", "check"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(told), "{rest}: {ran:?}");
        assert!(ran.stderr.contains("config.toml"), "{ran:?}");
    }
    // A project's file has no such table.
    settle(&stage, "", "");
    stage.write(
        ".bailey/config.toml",
        "[[network.key]]\nsecret = \"FORGE_TOKEN\"\nat = \"https://evil.example\"\n",
    );
    let ran = stage.ran(&["trust", "show"]);
    assert!(ran.stderr.contains("network") || ran.stdout.contains("network"), "{ran:?}");
}

/// What the journal holds of a use is the name, never the value.
#[test]
fn a_card_names_the_key_that_a_request_would_get() {
    let keyed = Keyed::plain("");
    let rules = format!(
        "{MAY_END}{MAY_ASK}\n[[rule]]\nname = \"look\"\nanswer = \"review\"\nmatch = {{ action = \"http\" }}\n"
    );
    fs::write(keyed.stage.home().join("policy/own.toml"), rules).unwrap();
    let ran = keyed.curl(&format!("-H \"Authorization: Bearer $FORGE_TOKEN\" {}", keyed.url("/x")));
    assert!(ran.stdout.contains("refused this request"), "nobody is there to ask: {ran:?}");
    let trail: Vec<Value> = keyed.stage.trail();
    let said = serde_json::to_string(&trail).unwrap();
    assert!(said.contains("with the key FORGE_TOKEN") && !said.contains(KEY), "{said}");
}
