//! Programs as they are, through the network door: each fetches what it always does from a server with a
//! certificate, and where no rule allows that, the refusal says what would.

#![expect(clippy::print_stdout, reason = "a test says what could not be tried here")]

use crate::{
    door::{MAY_ASK, MAY_END, Upstream, allow, whole},
    relay::Tls,
    stage::{Ran, Stage},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

/// What a server holds, by path.
type Site = BTreeMap<String, Vec<u8>>;

/// A server of these files, with a certificate that this machine trusts.
struct Served {
    stage: Stage,
    upstream: Upstream,
    tls: Tls,
}

impl Served {
    fn new(site: impl FnOnce(&str) -> Site) -> Self {
        let files: std::sync::Arc<std::sync::OnceLock<Site>> = std::sync::Arc::default();
        let held = files.clone();
        let upstream = Upstream::start(move |first, _| {
            let path = first.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
            match held.get().and_then(|site| site.get(path)) {
                Some(file) => whole("200 OK", file),
                None => whole("404 Not Found", b""),
            }
        });
        let served = Self::of(upstream);
        assert!(files.set(site(&served.place())).is_ok());
        served
    }

    /// The same in front of another server.
    fn of(upstream: Upstream) -> Self {
        let stage = Stage::new(&[("a.txt", "in the repository\n")]);
        let tls = Tls::start("localhost", (2020, 2090), upstream.address, stage.folder());
        let served = Self { stage, upstream, tls };
        let private = format!("[network]\nprivate = [\"{}\", \"{}\"]\n", served.place(), served.plain());
        fs::create_dir_all(served.stage.home().join("policy")).unwrap();
        fs::write(served.stage.home().join("config.toml"), private).unwrap();
        served
    }

    fn place(&self) -> String {
        format!("https://localhost:{}", self.tls.address().port())
    }

    /// The same server, without TLS.
    fn plain(&self) -> String {
        format!("http://{}", self.upstream.address)
    }

    /// Runs a line of a shell where a rule allows the server, or none does.
    fn run(&self, is_allowed: bool, line: &str) -> Ran {
        let hosts = [self.place().replace("https://", ""), self.plain().replace("http://", "")];
        let rules = if is_allowed {
            hosts.map(|host| allow(&host, ", method = [\"GET\", \"HEAD\"]"))
        } else {
            Default::default()
        };
        self.ran(&rules.concat(), line)
    }

    /// Runs one by these rules, where `localhost` is asked of the door like any other host.
    fn ran(&self, rules: &str, line: &str) -> Ran {
        let rules = format!("{MAY_END}{MAY_ASK}{rules}");
        fs::write(self.stage.home().join("policy/own.toml"), rules).unwrap();
        let line = format!("export NO_PROXY= no_proxy=; {line}");
        let mut command = self.stage.bailey(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
        Ran::of(command.env("SSL_CERT_FILE", &self.tls.authority).output().unwrap())
    }

    /// The line brings `expected` where a rule allows the server, and else a refusal that names the request.
    fn tried(&self, line: &str, expected: &str) {
        let refused = self.run(false, line);
        assert_eq!(self.upstream.asked(), [""; 0], "{refused:?}");
        let told = format!("the network door refused GET {}", self.place());
        assert!(refused.stderr.contains(&told) && !refused.stdout.contains(expected), "{refused:?}");
        let passed = self.run(true, line);
        assert!(passed.code == Some(0) && passed.stdout.contains(expected), "{passed:?}");
    }
}

/// Whether a program is here, outside; a test that needs it says where it is not.
fn is_here(argv: &[&str]) -> bool {
    let ran = Command::new(argv[0]).args(&argv[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_here = ran.is_ok_and(|status| status.success());
    if !is_here {
        println!("SKIPPED: `{}` is not here", argv.join(" "));
    }
    is_here
}

/// Runs a command outside, to make what a server holds.
fn make(folder: &Path, argv: &[&str]) {
    let ran = Command::new(argv[0]).args(&argv[1..]).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{argv:?}: {ran:?}");
}

/// A packed folder.
fn packed(folder: &Path, name: &str) -> Vec<u8> {
    make(folder, &["tar", "-czf", "packed.tgz", name]);
    fs::read(folder.join("packed.tgz")).unwrap()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Of a repository a rule lets pass what git fetches, and nothing of a push, not even its question what is
/// there.
#[test]
fn git_clones_through_the_door_and_pushes_by_a_rule_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("from/a.txt"), "what was cloned\n");
    let name = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
    let git = |argv: &[&str]| make(at, &[&["git"], &name[..], &["-C", "from"], argv].concat());
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "start"]);
    make(at, &["git", "clone", "--quiet", "--bare", "from", "our/app.git"]);
    make(at, &["git", "-C", "our/app.git", "config", "http.receivepack", "true"]);
    make(at, &["git", "clone", "--quiet", "--bare", "from", "their/app.git"]);
    let root = at.to_owned();
    let served = Served::of(Upstream::answers(move |head, body| git_over_http(&root, head, body)));
    let clone = |whose: &str| {
        format!("git clone --quiet {}/{whose}/app.git /tmp/it && cat /tmp/it/a.txt", served.place())
    };
    let host = served.place().replace("https://", "");
    let fetch = allow(&host, ", method = [\"GET\", \"POST\"], repository = \"our/app\"");

    let refused = served.ran("", &clone("our"));
    let page = format!("{}/our/app.git/info/refs?service=git-upload-pack", served.place());
    assert!(refused.stderr.contains(&format!("the network door refused GET {page}")), "{refused:?}");
    assert!(refused.stderr.contains("repository = \"our/app\""), "the way out: {refused:?}");
    assert_eq!(served.upstream.asked(), [""; 0], "{refused:?}");
    let passed = served.ran(&fetch, &clone("our"));
    assert!(passed.code == Some(0) && passed.stdout.contains("what was cloned"), "{passed:?}");
    let count = served.upstream.asked().len();
    let other = served.ran(&fetch, &clone("their"));
    assert!(other.code != Some(0) && served.upstream.asked().len() == count, "{other:?}");

    let push = format!(
        "{} && cd /tmp/it && echo more > b.txt && git add b.txt && git {} commit --quiet --message more && git push --quiet",
        clone("our"),
        name.join(" ")
    );
    let tip =
        || Command::new("git").args(["-C", "our/app.git", "log", "--format=%s"]).current_dir(at).output();
    let refused = served.ran(&fetch, &push);
    let page = format!("{}/our/app.git/info/refs?service=git-receive-pack", served.place());
    assert!(refused.code != Some(0), "{refused:?}");
    assert!(refused.stderr.contains(&format!("the network door refused GET {page}")), "{refused:?}");
    let asked = served.upstream.asked().concat();
    assert!(asked.contains("git-upload-pack") && !asked.contains("git-receive-pack"), "{asked}");
    assert_eq!(tip().unwrap().stdout, b"start\n");
    // The control: with the rule that is named there, the same push arrives.
    let (_, rule) = refused.stderr.split_once("answer = \"allow\", ").unwrap();
    let (rule, _) = rule.split_once(" does").unwrap();
    let rule = format!("[[rule]]\nname = \"push\"\nanswer = \"allow\"\n{rule}\n");
    let passed = served.ran(&format!("{fetch}{rule}"), &push);
    assert_eq!(
        (passed.code, tip().unwrap().stdout.as_slice()),
        (Some(0), &b"more\nstart\n"[..]),
        "{passed:?}"
    );
}

/// What git's own server of repositories says (its `http-backend`, a program of RFC 3875).
fn git_over_http(root: &Path, head: &str, body: &[u8]) -> Vec<u8> {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    };
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .envs([("REQUEST_METHOD", method), ("PATH_INFO", path), ("QUERY_STRING", query)])
        .envs([("CONTENT_TYPE", header("content-type")), ("CONTENT_LENGTH", &body.len().to_string())])
        .envs([
            ("HTTP_CONTENT_ENCODING", header("content-encoding")),
            ("GIT_PROTOCOL", header("git-protocol")),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    backend.stdin.take().unwrap().write_all(body).unwrap();
    let said = backend.wait_with_output().unwrap().stdout;
    let end = said.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let own = String::from_utf8_lossy(&said[..end]);
    let status = own.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let rest = &said[end + 4..];
    let head =
        format!("HTTP/1.1 {status}\r\n{own}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", rest.len());
    [head.as_bytes(), rest].concat()
}

#[test]
fn pip_installs_through_the_door() {
    if !is_here(&["python3", "-m", "pip", "--version"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("tiny.py"), "said = 'installed by pip'\n");
    let info = "tiny-1.0.dist-info";
    write(&at.join(info).join("METADATA"), "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n");
    write(&at.join(info).join("WHEEL"), "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
    write(&at.join(info).join("RECORD"), "tiny.py,,\n");
    make(at, &["python3", "-m", "zipfile", "-c", "tiny-1.0-py3-none-any.whl", "tiny.py", info]);
    let wheel = fs::read(at.join("tiny-1.0-py3-none-any.whl")).unwrap();
    let served = Served::new(|place| {
        let page = format!("<a href=\"{place}/tiny-1.0-py3-none-any.whl\">tiny-1.0-py3-none-any.whl</a>");
        [("/simple/tiny/".into(), page.into_bytes()), ("/tiny-1.0-py3-none-any.whl".into(), wheel)].into()
    });
    // The interpreter itself: what a manager of versions puts before it wants to write outside.
    let line = format!(
        "python=$(python3 -c 'import sys; print(sys.executable)'); $python -m pip install --quiet --no-deps --retries 0 --no-cache-dir --target /tmp/t \
         --index-url {}/simple tiny && PYTHONPATH=/tmp/t $python -c 'import tiny; print(tiny.said)'",
        served.place()
    );
    served.tried(&line, "installed by pip");
}

#[test]
fn npm_installs_through_the_door() {
    if !is_here(&["npm", "--version"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("package/package.json"), "{\"name\":\"tiny\",\"version\":\"1.0.0\"}");
    write(&at.join("package/index.js"), "module.exports = 'installed by npm'\n");
    let tarball = packed(at, "package");
    let served = Served::new(|place| {
        let dist = json!({ "tarball": format!("{place}/tiny/-/tiny-1.0.0.tgz") });
        let version = json!({ "name": "tiny", "version": "1.0.0", "dist": dist });
        let page =
            json!({ "name": "tiny", "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": version } });
        [("/tiny".into(), page.to_string().into_bytes()), ("/tiny/-/tiny-1.0.0.tgz".into(), tarball)].into()
    });
    let line = format!(
        "mkdir -p /tmp/n && cd /tmp/n && echo '{{}}' > package.json && npm install --silent --no-audit --no-fund \
         --fetch-retries=0 --registry {}/ tiny && node -e 'console.log(require(\"tiny\"))'",
        served.place()
    );
    served.tried(&line, "installed by npm");
}

#[test]
fn cargo_builds_with_a_dependency_through_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
    write(&at.join("tiny-1.0.0/Cargo.toml"), manifest);
    write(&at.join("tiny-1.0.0/src/lib.rs"), "pub const SAID: &str = \"built by cargo\";\n");
    let archive = packed(at, "tiny-1.0.0");
    let sum = Command::new("sha256sum").arg(at.join("packed.tgz")).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap()[..64].to_owned();
    let served = Served::new(|place| {
        let line = json!({
            "name": "tiny", "vers": "1.0.0", "deps": [], "cksum": sum, "features": {}, "yanked": false
        });
        let config = json!({ "dl": format!("{place}/dl") });
        [
            ("/index/config.json".into(), config.to_string().into_bytes()),
            ("/index/ti/ny/tiny".into(), format!("{line}\n").into_bytes()),
            ("/dl/tiny/1.0.0/download".into(), archive),
        ]
        .into()
    });
    let line = format!(
        "export CARGO_NET_RETRY=0 && cargo new --quiet --vcs none /tmp/c && cd /tmp/c && mkdir .cargo && \
         printf '[source.crates-io]\\nreplace-with = \"it\"\\n[source.it]\\nregistry = \"sparse+{}/index/\"\\n' > .cargo/config.toml && \
         echo 'tiny = \"1\"' >> Cargo.toml && echo 'fn main() {{ println!(\"{{}}\", tiny::SAID) }}' > src/main.rs && \
         cargo run --quiet",
        served.place()
    );
    served.tried(&line, "built by cargo");
}

#[test]
fn a_client_of_python_passes_through_the_door() {
    let served = Served::new(|_| [("/x".into(), b"read by python".to_vec())].into());
    let line = format!(
        "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"{}/x\").read().decode())'",
        served.place()
    );
    served.tried(&line, "read by python");
}

/// What is there without a package: `fetch`, `https` and `http`, the last two with agents of their own, too.
#[test]
fn the_clients_of_node_pass_through_the_door() {
    if !is_here(&["node", "--version"]) {
        return;
    }
    let served = Served::new(|_| [("/x".into(), b"it".to_vec())].into());
    let line = format!(
        r#"secure={} plain={} node -e 'const [http, https] = [require("http"), require("https")];
        const [secure, plain] = [process.env.secure + "/x", process.env.plain + "/x"];
        const fetched = async place => {{ const it = await fetch(place); return it.status + await it.text() }};
        const got = (module, place, options) => new Promise((got, failed) => module.get(place, options, it => {{
            let text = ""; it.on("data", part => text += part).on("end", () => got(it.statusCode + text)) }}).on("error", failed));
        (async () => {{
            const [kept, keptPlain] = [https, http].map(module => ({{ agent: new module.Agent({{ keepAlive: true }}) }}));
            console.log("answers: " + (await Promise.all([fetched(secure), fetched(plain), got(https, secure, {{}}), got(http, plain, {{}}),
                got(https, secure, kept), got(http, plain, keptPlain), got(https, secure, {{ agent: false }})])).join(" "));
            console.log("again: " + await got(https, secure, kept) + await got(http, plain, keptPlain) + await fetched(secure)); process.exit()
        }})()'"#,
        served.place(),
        served.plain(),
    );
    served.tried(&line, "answers: 200it 200it 200it 200it 200it 200it 200it\nagain: 200it200it200it");
    // A server of the session's own is reached directly.
    let own = r#"export NO_PROXY=127.0.0.1; node -e 'const http = require("http");
        const server = http.createServer((_, answer) => answer.end("own")).listen(0, "127.0.0.1", async () => {
            const place = "http://127.0.0.1:" + server.address().port;
            const got = await new Promise(got => http.get(place, it => it.on("data", part => got("" + part))));
            console.log(got, await (await fetch(place)).text()); process.exit() })'"#;
    let ran = served.run(false, own);
    assert!(ran.code == Some(0) && ran.stdout.contains("own own"), "{ran:?}");
}
