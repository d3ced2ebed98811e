//! The confinement of a session, made before anything is heard of the world: what the warden grants, and what
//! this process keeps for itself.

use crate::{
    compose::{self, Session},
    config::Config as Settings,
    extensions::Programs,
    git::Git,
    home::{Home, make_private, places},
    place::Place,
};
use anyhow::{Context as _, Result};
use bailey_journal::JournalFile;
use bailey_llm::Cassette;
use bailey_protocol::{SessionId, Tier, Uplink, WsPath};
use bailey_sandbox::{Config, Confinement, Lease, Yard};
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

/// Variables that name a proxy.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
/// The ports of HTTP, plain and over TLS.
const OF_THE_WORLD: [u16; 2] = [80, 443];
/// Variables that name certificates.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// What the warden is told, once: this session, its project, the programs beside it, and what no sandbox
/// may see.
pub(crate) fn of_warden(
    session: &Session<'_>,
    id: SessionId,
    (place, git): (&Place, &Git),
    reveals: &[WsPath],
    (guests, programs): (BTreeMap<SessionId, Lease>, BTreeSet<PathBuf>),
    authority: Option<String>,
) -> Result<Config> {
    let home = session.home;
    let revealed: BTreeSet<WsPath> = session.revealed.iter().chain(reveals).cloned().collect();
    let Place { project, folder, shape, standpoint, .. } = place;
    let linked = standpoint.spelled.as_ref().map(|spelled| PathBuf::from(&spelled.0));
    let yard = Yard { project: project.clone(), folder: folder.clone(), linked, home: None };
    let (is_attended, is_scratch) = (!session.unattended, session.is_scratch);
    let tier = Tier::Internal;
    let lease = Lease { yard, tier, revealed, is_attended, is_scratch, shape: *shape, guest: None, programs };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| env::var(name).ok());
    let config = Config {
        user_home: home.user.clone(),
        path: env::var("PATH").unwrap_or_default(),
        locale: locale.filter(|locale| !locale.is_empty()),
        masks: bailey_policy::SECRET_LOOKING.iter().map(|&glob| glob.to_owned()).collect(),
        sessions: guests.into_iter().chain([(id, lease)]).collect(),
        hidden: hidden(home, folder),
        agent_file: session.options.map(|_| home.agent_file()),
        authority,
        calls: session.config.calls.clone(),
        reserve_bytes: session.config.reserve_mib.map(|mib| mib.saturating_mul(1 << 20)),
        tiers: session.config.tiers,
        reads: session.config.shown(home).0,
        git: git.inside(),
        env: git.variables.iter().cloned().collect(),
        hidden_in_home: bailey_policy::protected_in_home().map(str::to_owned).collect(),
        ..Config::default()
    };
    #[cfg(feature = "controls")]
    let config = crate::controls::take_away(config)?;
    #[cfg(feature = "controls")]
    let config = break_walls(config)?;
    Ok(config)
}

/// Leaves away the walls that a test names.
#[cfg(feature = "controls")]
fn break_walls(mut config: Config) -> Result<Config> {
    use bailey_protocol::{
        Wall,
        broken::{VARIABLE, broken},
    };
    let Ok(names) = env::var(VARIABLE) else { return Ok(config) };
    let walls = names.split(',').filter_map(|name| serde_json::from_value::<Wall>(name.into()).ok());
    config.without.extend(walls);
    config.accept = true;
    if broken("masks") {
        config.masks.clear();
    }
    Ok(config)
}

/// Binds this process to what the session needs; returns what the kernel is too old for.
pub(crate) fn bind(
    session: &Session<'_>,
    folder: &Path,
    journal: &JournalFile,
    programs: &Programs,
    runs: bool,
) -> Result<Vec<&'static str>> {
    if !session.is_bound {
        return Ok(Vec::new());
    }
    let mut needs = of_client(session.home, session.config, journal)?;
    if runs {
        // What commands ask of the world goes through this process, where the rules allow it.
        let network = &session.config.network;
        let named = network.private.iter().chain(&network.tunnels).filter_map(|url| port(url));
        needs.ports.extend(OF_THE_WORLD.into_iter().chain(named));
        let of_peers = session.config.peers.values().flat_map(|peer| &peer.hosts);
        let of_peers = of_peers.chain(session.config.mcp.values().flat_map(|server| &server.hosts));
        needs.ports.extend(of_peers.filter_map(|host| host.rsplit_once(':')?.1.parse::<u16>().ok()));
    }
    needs.writes.push(lock(folder)?);
    needs.reads.extend(programs.files().cloned());
    let model = session.options.and_then(|options| options.model.as_deref());
    needs.reads.extend(model.and_then(Cassette::file).map(Path::to_path_buf));
    enforce(&needs)
}

/// The same for a process that only asks providers, and has no session and no warden.
pub(crate) fn bind_client(
    home: &Home,
    config: &Settings,
    journal: &JournalFile,
) -> Result<Vec<&'static str>> {
    let mut needs = of_client(home, config, journal)?;
    // What `audit verify` reads, which asks a witness besides.
    needs.reads.extend(Some(home.archive()).filter(|archive| archive.is_dir()));
    enforce(&needs)
}

/// The same for a process that only judges: it reads rules, and reaches no server.
pub(crate) fn bind_gate(home: &Home, folder: &Path, journal: &JournalFile) -> Result<Vec<&'static str>> {
    let policy = home.policy();
    make_private(&policy)?;
    let mut reads = rules(&policy)?;
    reads.extend(Some(compose::organisation()).filter(|dir| dir.exists()));
    let writes = journal.files().into_iter().chain([lock(folder)?]).collect();
    enforce(&Confinement { reads, writes, ports: BTreeSet::new() })
}

/// The same for a channel's: it talks with the servers of its way, writes the journal and its own notes, and
/// reads rules.
pub(crate) fn bind_uplink(
    home: &Home,
    journal: &JournalFile,
    way: &Uplink,
    notes: &[PathBuf],
) -> Result<Vec<&'static str>> {
    let policy = home.policy();
    make_private(&policy)?;
    let mut reads = rules(&policy)?;
    reads.extend(Some(compose::organisation()).filter(|dir| dir.exists()));
    reads.extend(certificates());
    let writes = journal.files().into_iter().chain(notes.iter().cloned()).collect();
    let servers = way.servers().map(|(url, ..)| url.to_owned());
    let ports = servers.chain(proxies()).filter_map(|url| port(&url)).collect();
    enforce(&Confinement { reads, writes, ports })
}

/// The same for a front end that has what it needs open: a terminal, and a session's socket.
pub fn bind_front() -> Result<Vec<&'static str>> {
    enforce(&Confinement::default())
}

/// The lock of a session, which has to be there to be let through.
fn lock(folder: &Path) -> Result<PathBuf> {
    let lock = folder.join("lock");
    let open = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&lock);
    open.with_context(|| format!("cannot make `{}`", lock.display()))?;
    Ok(lock)
}

fn enforce(needs: &Confinement) -> Result<Vec<&'static str>> {
    #[cfg(feature = "controls")]
    if crate::controls::is_unbound() {
        return Ok(Vec::new());
    }
    Ok(needs.bind()?.absent)
}

/// The journal to write; the rules and certificates to read; the ports of the servers. The rest of Bailey's
/// home is out of reach: its configuration, its keys, and what other sessions left.
fn of_client(home: &Home, config: &Settings, journal: &JournalFile) -> Result<Confinement> {
    // Rules that come later are read from it; a directory that comes later would not be.
    let policy = home.policy();
    make_private(&policy)?;
    let mut reads = rules(&policy)?;
    reads.push(home.catalogue());
    reads.extend(Some(compose::organisation()).filter(|dir| dir.exists()));
    reads.extend(certificates());
    let servers = config.providers.values().map(|provider| provider.base_url.clone());
    let witness =
        config.witness.as_ref().map(ToString::to_string).filter(|witness| !witness.starts_with("file:"));
    let ports = servers.chain(proxies()).chain(witness).filter_map(|url| port(&url)).collect();
    Ok(Confinement { reads, writes: journal.files(), ports })
}

fn certificates() -> Vec<PathBuf> {
    let paths = CERTIFICATES.iter().filter_map(env::var_os);
    paths.flat_map(|paths| env::split_paths(&paths).collect::<Vec<_>>()).collect()
}

fn proxies() -> impl Iterator<Item = String> {
    PROXIES.iter().filter_map(|name| env::var(name).ok())
}

/// The directory of the rules, and what links in it lead to.
pub fn rules(policy: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = vec![policy.to_path_buf()];
    for entry in fs::read_dir(policy).with_context(|| format!("cannot read `{}`", policy.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

/// The port of a URL: the one it names, or its scheme's.
fn port(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    // The colons of an address of version 6 stand in brackets.
    match host.rsplit(']').next()?.rsplit_once(':') {
        Some((_, port)) => port.parse().ok(),
        None if scheme == "https" => Some(443),
        None if scheme.starts_with("socks") => Some(1080),
        None => Some(80),
    }
}

/// Bailey's own home, where sessions lie that a home cannot hold, and where protected places of the user's
/// really lie.
fn hidden(home: &Home, folder: &Path) -> Vec<PathBuf> {
    let user = home.user.display().to_string();
    let elsewhere = bailey_policy::protected_places(&user).filter_map(|place| {
        let real = fs::canonicalize(&place).ok()?;
        (real != Path::new(&place)).then_some(real)
    });
    let sessions = folder.parent().map(Path::to_path_buf);
    elsewhere.chain([home.root.clone()]).chain(sessions).chain(places()).collect()
}
