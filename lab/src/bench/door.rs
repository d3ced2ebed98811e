//! What the network door costs: small requests, many at a time, and large bodies in either direction, beside
//! the same requests without it and through other proxies.
//!
//! Server and client are this program's own (`server.rs`, `client.rs`). The client runs as a child for what
//! needs no walls, and as a command inside of them for what passes the door.

pub(super) mod client;
mod proxies;
mod server;

use anyhow::{Context as _, Result, ensure};
use proxies::Proxy;
use server::Server;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// How often each way is gone, in turn.
const ROUNDS: usize = 5;
/// The bytes of a large body.
const LARGE: u64 = 100_000_000;
/// Small requests, one after the other.
const SMALL: usize = 200;
/// Connections at a time, and small requests of each.
const CONNECTIONS: usize = 32;
const EACH: usize = 40;
/// The name of the client in the project.
const CLIENT: &str = "client";
/// The key that is put in: as long and as random as those of others.
const KEY: &str = "bench_Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE";

/// What a client measured: all of its small requests, and one time for each of the others.
#[derive(Debug, Default, Clone)]
struct Times {
    small: Vec<Duration>,
    many: Vec<Duration>,
    down: Vec<Duration>,
    up: Vec<Duration>,
}

/// A way from the client to the server.
struct Way<'a> {
    name: &'static str,
    /// Whether it leads through somebody else's program: squid breaks some large bodies off, and that is no
    /// failure here.
    is_foreign: bool,
    client: Box<dyn Fn() -> Command + 'a>,
    times: Times,
}

pub(super) fn run(bailey: &Path) -> Result<()> {
    let ground = Ground::new(bailey)?;
    let [tinyproxy, squid] = ["tinyproxy", "squid"].map(|name| Proxy::start(name, &ground.root));
    let (tinyproxy, squid) = (tinyproxy?, squid?);
    for tls in [false, true] {
        let url = ground.server.url(tls);
        let mut ways = vec![ground.plain("direct", &url, "-")];
        for proxy in [&tinyproxy, &squid].into_iter().flatten() {
            ways.push(ground.plain(proxy.name, &url, &proxy.url));
        }
        if tls {
            ways.push(ground.inside("the door, as a tunnel", "tunnel", &url, "trusted.txt", "-"));
        }
        let authority = if tls { "SSL_CERT_FILE" } else { "-" };
        ways.push(ground.inside("the door", "plain", &url, authority, "-"));
        ways.push(ground.inside("the door, with a key", "keyed", &url, authority, "BENCH_TOKEN"));
        for _ in 0..ROUNDS {
            ways.iter_mut().try_for_each(Way::measure)?;
        }
        print(if tls { "over TLS" } else { "plain HTTP" }, &ways);
    }
    Ok(())
}

/// A server, a project with the client in it, and a home for each way through the door.
struct Ground<'a> {
    bailey: &'a Path,
    root: PathBuf,
    server: Server,
    _folder: TempDir,
}

impl<'a> Ground<'a> {
    fn new(bailey: &'a Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = fs::canonicalize(folder.path())?;
        let server = Server::start()?;
        for name in ["project", "user"] {
            fs::create_dir_all(root.join(name))?;
        }
        fs::copy(std::env::current_exe()?, root.join("project").join(CLIENT))?;
        fs::write(root.join("project/trusted.txt"), server.authority())?;
        let ground = Self { bailey, root, server, _folder: folder };
        let [http, https] = [false, true].map(|tls| ground.server.url(tls));
        let key = |at: &str| {
            format!(
                "[[network.key]]\nsecret = \"BENCH_TOKEN\"\nat = \"{at}\"\nmethods = [\"GET\", \"POST\"]\n"
            )
        };
        ground.home("plain", "")?;
        ground.home("tunnel", &format!("tunnels = [\"{https}\"]\n"))?;
        ground.home("keyed", &format!("{}{}", key(&http), key(&https)))?;
        Ok(ground)
    }

    /// A home whose commands may ask this server for everything, with these settings of the network besides.
    fn home(&self, name: &str, settings: &str) -> Result<()> {
        let home = self.root.join(name);
        fs::create_dir_all(home.join("policy"))?;
        let [http, https] = [false, true].map(|tls| self.server.url(tls));
        let config = format!("[network]\nprivate = [\"{http}\", \"{https}\"]\n{settings}");
        fs::write(home.join("config.toml"), config)?;
        let rule = |name: &str, what: &str| {
            format!(
                "[[rule]]\nname = \"{name}\"\nanswer = \"allow\"\npriority = 1\nmatch = {{ action = {what} }}\n"
            )
        };
        let rules = [
            rule("ask", "\"exec\", network = true"),
            rule("end", "\"merge\""),
            rule("pass", "\"http\", host = \"*\""),
        ];
        fs::write(home.join("policy/own.toml"), rules.concat())?;
        let keys = home.join(".env");
        fs::write(&keys, format!("BENCH_TOKEN={KEY}\n"))?;
        Ok(fs::set_permissions(keys, fs::Permissions::from_mode(0o600))?)
    }

    /// The client as a child of this process.
    fn plain(&self, name: &'static str, url: &str, proxy: &str) -> Way<'_> {
        let words = [url, proxy, "trusted.txt", "-"].map(str::to_owned);
        let client = move || {
            let mut command = Command::new(self.root.join("project").join(CLIENT));
            command.arg(client::ARGUMENT).args(&words).current_dir(self.root.join("project"));
            command
        };
        Way { name, is_foreign: proxy != "-", client: Box::new(client), times: Times::default() }
    }

    /// The client inside the walls of a home.
    fn inside(
        &self,
        name: &'static str,
        home: &'static str,
        url: &str,
        authority: &str,
        key: &str,
    ) -> Way<'_> {
        let words = [url, "HTTP_PROXY", authority, key].map(str::to_owned);
        let client = move || {
            let mut command = Command::new(self.bailey);
            command.arg("--home").arg(self.root.join(home)).args(["sandbox", "run", "--network", "--"]);
            command.arg(format!("./{CLIENT}")).arg(client::ARGUMENT).args(&words);
            command.current_dir(self.root.join("project"));
            command.env("HOME", self.root.join("user")).env_remove("BAILEY_HOME");
            // The door trusts the server by the authorities of this machine.
            command.env("SSL_CERT_FILE", self.root.join("project/trusted.txt"));
            command
        };
        Way { name, is_foreign: false, client: Box::new(client), times: Times::default() }
    }
}

impl Way<'_> {
    /// Goes this way once.
    fn measure(&mut self) -> Result<()> {
        let output = (self.client)().stdin(Stdio::null()).output().context("cannot run the client")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() || self.is_foreign,
            "{}: {}: {said}{stderr}",
            self.name,
            output.status
        );
        for line in said.lines() {
            let (what, times) = line.split_once(' ').unwrap_or((line, ""));
            let times = times.split(' ').map(|ns| ns.parse().map(Duration::from_nanos));
            let times: Vec<Duration> = times.collect::<Result<_, _>>().context(line.to_owned())?;
            match what {
                "small" => self.times.small.extend(times),
                "many" => self.times.many.extend(times),
                "down" => self.times.down.extend(times),
                "up" => self.times.up.extend(times),
                _ => anyhow::bail!("{}: the client said {line}", self.name),
            }
        }
        Ok(())
    }
}

fn at(times: &[Duration], hundredths: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() * hundredths / 100).copied().unwrap_or_default().as_secs_f64()
}

/// Prints the medians of each way, and their ratios to the first one's.
fn print(title: &str, ways: &[Way<'_>]) {
    println!("{title} (N={ROUNDS}, small requests N={})", ROUNDS * SMALL);
    println!(
        "  {:<24}{:>18}{:>20}{:>18}{:>18}{:>18}",
        "", "one request, p50", "p99", "32 connections", "100 MB down", "100 MB up"
    );
    let all = |way: &Way<'_>| {
        let times = &way.times;
        let requests = (CONNECTIONS * EACH) as f64;
        [
            at(&times.small, 50) * 1e6,
            at(&times.small, 99) * 1e6,
            requests / at(&times.many, 50),
            LARGE as f64 / 1e6 / at(&times.down, 50),
            LARGE as f64 / 1e6 / at(&times.up, 50),
        ]
    };
    let Some(first) = ways.first().map(all) else { return };
    for way in ways {
        let cells = all(way).into_iter().zip(first).zip(["us", "us", "/s", "MB/s", "MB/s"]);
        let cells = cells.map(|((value, first), unit)| match value.is_finite() && value > 0.0 {
            true => format!("{value:.0} {unit} {:>6.2}", value / first),
            false => "-".into(),
        });
        let cells: Vec<String> = cells.collect();
        let [p50, p99, many, down, up] = &cells[..] else { return };
        println!("  {:<24}{p50:>18}{p99:>20}{many:>18}{down:>18}{up:>18}", way.name);
    }
    println!();
}
