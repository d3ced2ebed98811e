//! The configuration. Its sources, in this order: defaults, the user's `config.toml`, the environment, a
//! closed list of names from a project that the user trusts, and flags. Only the user's own file and
//! environment can name endpoints.
//!
//! Each value records its source (`origin.rs`), and each mistake its place in the file (`document.rs`).

mod agent;
mod approvals;
mod auto_apply;
mod calls;
pub mod change;
mod channels;
mod credentials;
mod document;
mod environment;
mod error;
mod extensions;
mod keys;
mod mcp;
mod memory;
mod models;
mod origin;
mod page;
pub mod peers;
mod project;
mod reads;
mod remote;
mod telemetry;
mod traffic;
mod witness;

pub use approvals::{Approvals, NotCompliant, Step};
pub use auto_apply::AutoApply;
pub use channels::Channel;
pub use document::Document;
pub use environment::{
    known as known_variables, people as people_of_environment, unknown as unknown_variables,
};
pub use error::ConfigError;
pub use extensions::{Calls as ProgramCalls, Declared};
pub use mcp::McpServer;
pub use memory::Memory;
pub use models::{ModelsByUse, Provider, first_byte_seconds, is_private};
pub use origin::Origin;
pub use page::Page;
pub use peers::{Peer, Sight};
pub use telemetry::Telemetry;
pub use witness::Witness;

use crate::home::Home;
use anyhow::Result;
use approvals::FileApprovals;
use bailey_egress::{BoundKey, HostLimit};
use bailey_kernel::{Bound, Budgets};
use bailey_protocol::{Limits, Money, Profile, Tiers};
use bailey_sandbox::Calls;
use bailey_secrets::OwnShape;
use extensions::FilePolicy;
use origin::Origins;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// The keys that each provider in the file must have.
const PROVIDER_KEYS: [&str; 2] = ["wire", "base_url"];

/// How often known secrets may appear in the results of one session. Normal work meets a key in a handful of
/// files and outputs, and each of these counts once, however often the agent reads it. An agent that guesses
/// secrets needs one hit for each secret and each way of asking.
const SECRET_HITS: usize = 32;

/// The configuration in force.
#[derive(Debug, Clone)]
pub struct Config {
    /// `provider/model`. `None`: the available keys decide.
    pub model: Option<String>,
    /// Models for particular uses, such as summaries.
    pub models: ModelsByUse,
    /// The providers, by name.
    pub providers: BTreeMap<String, Provider>,
    /// Time limits for models, and the rules of the network for commands.
    pub network: Network,
    /// How Bailey asks a human.
    pub approvals: Approvals,
    /// The most tokens and money that may be used up.
    pub budgets: Budgets,
    /// The tools that the agent has. `None`: all tools.
    pub tools: Option<Vec<String>>,
    /// Tool calls of one turn.
    pub tool_calls: usize,
    /// Tokens of one reply.
    pub reply_tokens: u32,
    /// The limits of one command.
    pub command: Limits,
    /// The name of the profile of system calls that commands get.
    pub(crate) profile: String,
    /// The system calls that this profile lets commands make.
    pub calls: Calls,
    /// The MiB that commands leave free on the disk of their session's folder. By default the sandbox
    /// decides.
    pub reserve_mib: Option<u64>,
    /// The least isolation of each tier of trust.
    pub tiers: Tiers,
    /// Further directories that commands may read, as the file writes them.
    pub(crate) reads: Vec<String>,
    /// Where Bailey keeps secrets.
    pub secrets: Secrets,
    /// The user's own kinds of credentials, for the redactor.
    pub credentials: Vec<OwnShape>,
    /// The file or server that receives each checkpoint of the journal.
    pub witness: Option<Witness>,
    /// How long sessions stay in the journal, and how large it may grow.
    pub retention: Retention,
    /// Extensions of the policy.
    pub extensions: Vec<Declared>,
    /// Peers, by name.
    pub peers: BTreeMap<String, Peer>,
    /// MCP servers, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// When Bailey applies the changes of a run without a question. `None`: never.
    pub auto_apply: Option<AutoApply>,
    /// Whether the daemon makes a copy of the home each day.
    pub daily_backup: bool,
    /// The limits from which on memory counts as short.
    pub memory: Memory,
    /// Chat channels, by name.
    pub channels: BTreeMap<String, Channel>,
    /// The page for a browser.
    pub page: Page,
    /// The telemetry that a collector receives, and the daemon's log.
    pub telemetry: Telemetry,
    origins: Origins,
}

/// The network: time limits in seconds, and the places outside the public Internet that commands may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// To reach the server.
    pub connect_seconds: u64,
    /// From the connection to the first byte of the answer. By default the server's place decides.
    pub first_byte_seconds: Option<u64>,
    /// Without any further byte. A stream that keeps moving has no limit.
    pub idle_seconds: u64,
    /// Requests of one command.
    pub requests: u64,
    /// Places at private addresses, as URLs. Commands with network access may reach them where the rules
    /// allow it.
    pub private: Vec<String>,
    /// Keys that commands use and never hold, as the file writes them.
    written_keys: Vec<keys::Key>,
    /// The same keys in the network door's form, which it puts into requests to their hosts.
    pub keys: Vec<BoundKey>,
    /// Servers, as URLs, that commands speak with while nothing inspects the traffic.
    pub tunnels: Vec<String>,
    /// How much may pass to and from hosts, as the file writes it.
    written_limits: Vec<traffic::Limit>,
    /// The same limits in the network door's form: requests and bytes, by host.
    pub limits: Vec<HostLimit>,
}

impl Default for Network {
    fn default() -> Self {
        let (connect_seconds, idle_seconds) = (30, 120);
        Self {
            connect_seconds,
            first_byte_seconds: None,
            idle_seconds,
            requests: 20_000,
            private: Vec::new(),
            written_keys: Vec::new(),
            keys: Vec::new(),
            tunnels: Vec::new(),
            written_limits: Vec::new(),
            limits: Vec::new(),
        }
    }
}

/// How long sessions stay in the journal, and how large it may grow. Without settings, everything stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions that were used within this many days stay.
    pub keep_days: Option<u32>,
    /// The same for sessions with changes to apply or to take back. `None`: all of these stay.
    pub keep_changes_days: Option<u32>,
    /// The most space that journal and archives may take together.
    pub(crate) max_size_mib: Option<u64>,
}

impl Retention {
    /// Whether any limit is set.
    pub fn is_any(&self) -> bool {
        self.keep_days.is_some() || self.max_size_mib.is_some()
    }

    /// The most space that journal and archives may take together, in bytes.
    pub fn max_bytes(&self) -> Option<u64> {
        self.max_size_mib.map(|mib| mib.saturating_mul(1 << 20))
    }
}

/// Where Bailey keeps secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Secrets {
    /// Where `bailey secrets set` puts a secret when the user names no store.
    pub store: Store,
    /// The key file of the sealed store. Without a key file, a passphrase seals the store.
    pub key_file: Option<PathBuf>,
    /// The user's own kinds of credentials.
    pattern: Vec<credentials::Pattern>,
}

/// A place for secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Store {
    /// The file .env of Bailey's home, mode 600
    #[default]
    Env,
    /// The file secrets.sealed of Bailey's home, encrypted
    Sealed,
    /// The kernel's keyring: memory of this machine, empty when it starts anew or your last process has ended
    Keyring,
}

impl Store {
    /// All stores. A secret in an earlier store takes precedence over a secret of the same name in a later
    /// one.
    pub const ALL: [Self; 3] = [Self::Env, Self::Sealed, Self::Keyring];
}

/// The shape of `config.toml`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    model: Option<String>,
    models: ModelsByUse,
    providers: BTreeMap<String, Provider>,
    limits: FileLimits,
    approvals: FileApprovals,
    sandbox: FileSandbox,
    network: FileNetwork,
    secrets: Secrets,
    journal: FileJournal,
    policy: FilePolicy,
    auto_apply: Option<AutoApply>,
    channels: BTreeMap<String, Channel>,
    peers: BTreeMap<String, Peer>,
    mcp: BTreeMap<String, McpServer>,
    page: Page,
    telemetry: Telemetry,
    backup: FileBackup,
    memory: Memory,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileBackup {
    daily: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileJournal {
    witness: Option<String>,
    keep_days: Option<u32>,
    keep_changes_days: Option<u32>,
    max_size_mib: Option<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileSandbox {
    profile: Option<String>,
    read: Vec<String>,
    reserve_mib: Option<u64>,
    tiers: Tiers,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileNetwork {
    private: Vec<String>,
    key: Vec<keys::Key>,
    tunnels: Vec<String>,
    limit: Vec<traffic::Limit>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    call_tokens: Option<u64>,
    turn_tokens: Option<u64>,
    session_tokens: Option<u64>,
    task_tokens: Option<u64>,
    day_tokens: Option<u64>,
    call_money: Option<String>,
    turn_money: Option<String>,
    session_money: Option<String>,
    task_money: Option<String>,
    day_money: Option<String>,
    tool_calls: Option<usize>,
    secret_hits: Option<usize>,
    reply_tokens: Option<u32>,
    connect_seconds: Option<u64>,
    first_byte_seconds: Option<u64>,
    idle_seconds: Option<u64>,
    command_seconds: Option<u64>,
    command_memory_mib: Option<u64>,
    command_disk_mib: Option<u64>,
    command_processes: Option<u32>,
    command_requests: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: None,
            models: ModelsByUse::default(),
            providers: models::providers(),
            network: Network::default(),
            auto_apply: None,
            approvals: Approvals::default(),
            budgets: Budgets {
                session: Bound::tokens(4_000_000),
                secret_hits: Some(SECRET_HITS),
                ..Budgets::default()
            },
            tools: None,
            tool_calls: 200,
            reply_tokens: 16_384,
            command: Limits::default(),
            profile: Profile::default().name().into(),
            calls: Calls::default(),
            reserve_mib: None,
            tiers: Tiers::default(),
            reads: Vec::new(),
            secrets: Secrets::default(),
            credentials: Vec::new(),
            witness: None,
            retention: Retention::default(),
            extensions: Vec::new(),
            peers: BTreeMap::new(),
            mcp: BTreeMap::new(),
            daily_backup: false,
            memory: Memory::default(),
            channels: BTreeMap::new(),
            page: Page::default(),
            telemetry: Telemetry::default(),
            origins: Origins::default(),
        }
    }
}

impl Config {
    /// Reads the user's file, if it exists, and then the environment.
    ///
    /// # Errors
    /// At the first unknown key, value that does not fit, or variable whose value is not valid.
    pub fn load(home: &Home) -> Result<Self> {
        let document = Document::open(&home.config())?;
        let mut config = Self::default();
        if let Some(document) = &document {
            config.take(document)?;
            config.check_reads(home, document)?;
        }
        config.choose_configured(home, document.as_ref())?;
        config.agent(home)?;
        config.environment(|name| std::env::var(name).ok())?;
        Ok(config)
    }

    /// Reads a text that is meant to become the user's file.
    ///
    /// # Errors
    /// At its first mistake.
    pub fn of(home: &Home, document: &Document) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.take(document)?;
        config.check_reads(home, document)?;
        config.choose_configured(home, Some(document))?;
        Ok(config)
    }

    /// Where a value came from.
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.of(key)
    }

    fn take(&mut self, document: &Document) -> Result<(), ConfigError> {
        for key in PROVIDER_KEYS {
            if let Some(provider) = document.table_without("providers", key) {
                let message = format!(
                    "`{provider}` lacks `{key}`: a provider is set as a whole, with `wire`, `base_url` and, where it asks \
                     for a key, `key_env`"
                );
                return Err(document.mistake(provider, message));
            }
        }
        let ConfigFile {
            model,
            models,
            providers,
            limits,
            approvals,
            sandbox,
            network,
            secrets,
            journal,
            policy,
            auto_apply,
            channels,
            peers,
            mcp,
            page,
            telemetry,
            backup,
            memory,
        } = document.read()?;
        self.daily_backup = backup.daily;
        memory::check(document, memory)?;
        self.memory = memory;
        channels::check(document, &channels)?;
        self.channels = channels;
        page::check(document, &page)?;
        self.page = page;
        telemetry::check(document, &telemetry)?;
        self.telemetry = telemetry;
        extensions::check(document, &policy.extension)?;
        peers::check(document, &peers, &policy.extension)?;
        let taken = policy.extension.iter().map(|it| &*it.name).chain(peers.keys().map(|it| &**it));
        mcp::check(document, &mcp, &taken.collect::<Vec<_>>(), &keys::names(&network.key))?;
        (self.peers, self.mcp) = (peers, mcp);
        auto_apply.iter().try_for_each(|auto| auto_apply::check(document, auto))?;
        self.auto_apply = auto_apply;
        for (name, provider) in &providers {
            if has_user(&provider.base_url) {
                // The line itself is not shown: it holds a password.
                let table = format!("providers.{}", document::bare(name));
                return Err(document.mistake(&table, format!("`base_url` {HAS_USER}")));
            }
            if let Err(why) = models::is_url(&provider.base_url) {
                let key = format!("providers.{}.base_url", document::bare(name));
                return Err(document
                    .mistake(&key, format!("`{}` is not the URL of a server: {why}", provider.base_url)));
            }
            if let Some(taken) = models::taken_parameter(provider) {
                let key = format!("providers.{}.parameters", document::bare(name));
                let why = format!("`{taken}` is what Bailey itself says there: it cannot be set");
                return Err(document.mistake(&key, why));
            }
        }
        if limits.tool_calls == Some(0) {
            let message = "it must be 1 or more, because with 0 each turn would pause at once";
            return Err(document.mistake("limits.tool_calls", message));
        }
        for (place, url) in network.private.iter().enumerate() {
            if let Err(why) = models::is_place(url) {
                let message = format!("`{url}` is no place such as `http://127.0.0.1:8080`: {why}");
                return Err(document.mistake_in("network.private", place, message));
            }
        }
        self.network.keys = keys::bound(document, &network.key, &network.private)?;
        self.network.limits = traffic::limits(document, &network.limit)?;
        traffic::check_tunnels(document, &network.tunnels, &self.network.keys)?;
        (self.network.private, self.network.written_keys) = (network.private, network.key);
        (self.network.tunnels, self.network.written_limits) = (network.tunnels, network.limit);
        self.approvals.take(document, approvals)?;
        self.model = model;
        self.models = models;
        self.providers.extend(providers);
        let named: Vec<(String, String)> =
            self.models.named().map(|(key, model)| (key, model.to_owned())).collect();
        for (key, model) in named {
            self.find(&model).map_err(|error| document.mistake(&key, error.to_string()))?;
        }
        self.profile = sandbox.profile.unwrap_or_else(|| Profile::default().name().into());
        self.tiers = sandbox.tiers;
        self.reads = sandbox.read;
        self.reserve_mib = sandbox.reserve_mib;
        self.credentials = credentials::shapes(document, &secrets.pattern)?;
        self.secrets = secrets;
        self.retention = retention(document, &journal)?;
        self.witness = journal.witness.map(|text| witness(document, &text)).transpose()?;
        self.extensions = policy.extension;
        self.limit(document, &limits)?;
        self.budget(document, &limits)?;
        self.origins.note_all(document);
        Ok(())
    }

    /// Lowers the session's token limit to the value on its command line.
    pub fn spend(&mut self, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            self.lower("session_tokens", tokens);
        }
    }

    /// Lowers a limit that agents, projects, the environment and the command line may lower. Returns whether
    /// that changed it.
    fn lower(&mut self, name: &str, value: u64) -> bool {
        let (field, value) = match name {
            "session_tokens" => return lower(&mut self.budgets.session.tokens, value),
            "turn_tokens" => return lower(&mut self.budgets.turn.tokens, value),
            "command_seconds" => (&mut self.command.wall_ms, value.saturating_mul(1000)),
            "tool_calls" => {
                let value = usize::try_from(value).unwrap_or(usize::MAX);
                let is_lower = value < self.tool_calls;
                self.tool_calls = self.tool_calls.min(value);
                return is_lower;
            }
            _ => return false,
        };
        let is_lower = value < *field;
        *field = (*field).min(value);
        is_lower
    }

    /// The values in force, in the shape of a file.
    fn as_file(&self) -> ConfigFile {
        ConfigFile {
            model: self.model.clone(),
            models: self.models.clone(),
            providers: self.providers.clone(),
            limits: FileLimits {
                call_tokens: self.budgets.call.tokens,
                turn_tokens: self.budgets.turn.tokens,
                session_tokens: self.budgets.session.tokens,
                task_tokens: self.budgets.task.tokens,
                day_tokens: self.budgets.day.tokens,
                call_money: self.budgets.call.money.as_ref().map(exact),
                turn_money: self.budgets.turn.money.as_ref().map(exact),
                session_money: self.budgets.session.money.as_ref().map(exact),
                task_money: self.budgets.task.money.as_ref().map(exact),
                day_money: self.budgets.day.money.as_ref().map(exact),
                tool_calls: Some(self.tool_calls),
                secret_hits: self.budgets.secret_hits,
                reply_tokens: Some(self.reply_tokens),
                connect_seconds: Some(self.network.connect_seconds),
                first_byte_seconds: self.network.first_byte_seconds,
                idle_seconds: Some(self.network.idle_seconds),
                command_seconds: Some(self.command.wall_ms / 1000),
                command_memory_mib: Some(self.command.memory_bytes >> 20),
                command_disk_mib: Some(self.command.disk_bytes >> 20),
                command_processes: Some(self.command.pids),
                command_requests: Some(self.network.requests),
            },
            approvals: self.approvals.as_file(),
            sandbox: FileSandbox {
                profile: Some(self.profile.clone()),
                read: self.reads.clone(),
                reserve_mib: self.reserve_mib,
                tiers: self.tiers,
            },
            network: FileNetwork {
                private: self.network.private.clone(),
                key: self.network.written_keys.clone(),
                tunnels: self.network.tunnels.clone(),
                limit: self.network.written_limits.clone(),
            },
            secrets: self.secrets.clone(),
            journal: FileJournal {
                witness: self.witness.as_ref().map(ToString::to_string),
                keep_days: self.retention.keep_days,
                keep_changes_days: self.retention.keep_changes_days,
                max_size_mib: self.retention.max_size_mib,
            },
            policy: FilePolicy { extension: self.extensions.clone() },
            auto_apply: self.auto_apply.clone(),
            channels: self.channels.clone(),
            peers: self.peers.clone(),
            mcp: self.mcp.clone(),
            page: self.page.clone(),
            telemetry: self.telemetry.clone(),
            backup: FileBackup { daily: self.daily_backup },
            memory: self.memory,
        }
    }

    fn budget(&mut self, document: &Document, limits: &FileLimits) -> Result<(), ConfigError> {
        let Budgets { call, turn, session, task, day, secret_hits } = &mut self.budgets;
        *secret_hits = limits.secret_hits.or(*secret_hits);
        let mut currency: Option<String> = None;
        for (name, bound, tokens, money) in [
            ("call", call, limits.call_tokens, &limits.call_money),
            ("turn", turn, limits.turn_tokens, &limits.turn_money),
            ("session", session, limits.session_tokens, &limits.session_money),
            ("task", task, limits.task_tokens, &limits.task_money),
            ("day", day, limits.day_tokens, &limits.day_money),
        ] {
            bound.tokens = tokens.or(bound.tokens);
            let Some(text) = money else { continue };
            let mistake = |why: String| document.mistake(&format!("limits.{name}_money"), why);
            let money: Money =
                text.parse().map_err(|why| mistake(format!("`{text}` is not an amount: {why}")))?;
            let known = currency.get_or_insert_with(|| money.currency.clone());
            if *known != money.currency {
                let why =
                    format!("`{text}` is in another currency than a limit before it, which is in {known}");
                return Err(mistake(why));
            }
            bound.money = Some(money);
        }
        Ok(())
    }

    fn limit(&mut self, document: &Document, limits: &FileLimits) -> Result<(), ConfigError> {
        let nothing_runs = [
            ("reply_tokens", limits.reply_tokens.map(u64::from)),
            ("call_tokens", limits.call_tokens),
            ("turn_tokens", limits.turn_tokens),
            ("session_tokens", limits.session_tokens),
            ("task_tokens", limits.task_tokens),
            ("day_tokens", limits.day_tokens),
            ("connect_seconds", limits.connect_seconds),
            ("first_byte_seconds", limits.first_byte_seconds),
            ("idle_seconds", limits.idle_seconds),
            ("command_seconds", limits.command_seconds),
            ("command_memory_mib", limits.command_memory_mib),
            ("command_disk_mib", limits.command_disk_mib),
            ("command_processes", limits.command_processes.map(u64::from)),
        ];
        if let Some((name, _)) = nothing_runs.into_iter().find(|(_, value)| *value == Some(0)) {
            let why = "it must be 1 or more, because 0 would stop all work";
            return Err(document.mistake(&format!("limits.{name}"), why));
        }
        let set = |field: &mut u64, value: Option<u64>| *field = value.unwrap_or(*field);
        set(&mut self.network.connect_seconds, limits.connect_seconds);
        self.network.first_byte_seconds = limits.first_byte_seconds.or(self.network.first_byte_seconds);
        set(&mut self.network.idle_seconds, limits.idle_seconds);
        self.tool_calls = limits.tool_calls.unwrap_or(self.tool_calls);
        self.reply_tokens = limits.reply_tokens.unwrap_or(self.reply_tokens);
        self.command.pids = limits.command_processes.unwrap_or(self.command.pids);
        set(&mut self.network.requests, limits.command_requests);
        set(&mut self.command.wall_ms, limits.command_seconds.map(|s| s.saturating_mul(1000)));
        set(&mut self.command.memory_bytes, limits.command_memory_mib.map(|mib| mib.saturating_mul(1 << 20)));
        set(&mut self.command.disk_bytes, limits.command_disk_mib.map(|mib| mib.saturating_mul(1 << 20)));
        Ok(())
    }
}

/// Lowers a limit, or sets it if it is missing. Returns whether that changed anything.
fn lower(limit: &mut Option<u64>, value: u64) -> bool {
    let is_lower = limit.is_none_or(|limit| value < limit);
    if is_lower {
        *limit = Some(value);
    }
    is_lower
}

/// An amount in the form of the file, to the last decimal place.
fn exact(money: &Money) -> String {
    const UNIT: u64 = 1_000_000_000;
    let places = format!("{:09}", money.nanos % UNIT);
    let places = match places.trim_end_matches('0') {
        short if short.len() < 2 => places.get(..2).unwrap_or_default(),
        long => long,
    };
    format!("{}.{places} {}", money.nanos / UNIT, money.currency)
}

/// Checks and returns the limits of the journal.
fn retention(document: &Document, journal: &FileJournal) -> Result<Retention, ConfigError> {
    let FileJournal { keep_days, keep_changes_days, max_size_mib, .. } = *journal;
    if keep_days == Some(0) {
        let message = "a session of today never leaves: it must be 1 or more";
        return Err(document.mistake("journal.keep_days", message));
    }
    if let Some(changes) = keep_changes_days
        && keep_days.is_none_or(|days| changes < days)
    {
        let message = "sessions with changes of their own stay at least as long as others: set `journal.keep_days`, and this to \
                       as many or more";
        return Err(document.mistake("journal.keep_changes_days", message));
    }
    if max_size_mib == Some(0) {
        return Err(
            document.mistake("journal.max_size_mib", "a journal takes some room: it must be 1 or more")
        );
    }
    Ok(Retention { keep_days, keep_changes_days, max_size_mib })
}

/// Checks and returns the place outside the home that receives checkpoints.
fn witness(document: &Document, text: &str) -> Result<Witness, ConfigError> {
    let mistake = |message| document.mistake("journal.witness", message);
    let witness: Witness = text.parse().map_err(mistake)?;
    let wrong = match &witness {
        Witness::Url(url) if has_user(url) => Some("has a user or a password in it".into()),
        Witness::Url(url) => {
            models::is_url(url).err().map(|why| format!("is not the URL of a server: {why}"))
        }
        Witness::File(path) => document
            .path()
            .parent()
            .filter(|home| path.starts_with(home))
            .map(|_| "lies in Bailey's own home: whoever puts that back puts the witness back".into()),
    };
    wrong.map_or(Ok(witness), |wrong| Err(mistake(format!("`{text}` {wrong}"))))
}

/// The message about a URL with a user or a password in it.
const HAS_USER: &str =
    "has a user or a password in it: name the variable that holds the key as `key_env` instead";

/// Whether a URL has a user or a password in front of its host.
fn has_user(url: &str) -> bool {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    after.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// The file that `bailey init` writes: every setting, commented out at its default.
pub const TEMPLATE: &str = include_str!("config.toml");
