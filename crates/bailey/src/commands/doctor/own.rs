//! Bailey's own things: its home and what lies there, configuration, rules, journal, keys, the clock.

use super::Finding;
use crate::{
    clock,
    compose::{self, Keys},
    config::{Config, unknown_variables},
    extensions::Extensions,
    git::Git,
    home::{Holds, Home, file_system},
    print::Printer,
    retention,
    stores::Stores,
};
use bailey_journal::JournalError;
use bailey_session::HostError;
use bailey_store::StoreError;
use rustix::fs::statvfs;
use std::{io::ErrorKind, path::PathBuf};

/// The check of models' keys.
pub(super) const MODEL_KEYS: &str = "model keys";
/// Less room than this and nothing can be relied on, in bytes.
const ROOM_FAIL: u64 = 100 << 20;
/// Less room than this is soon too little, in bytes.
const ROOM_WARN: u64 = 2 << 30;
/// Entries of the journal that are checked here; `bailey audit verify` checks all.
const ENTRIES: u64 = 200;
/// The longest journal whose pages are looked at here, in bytes, which takes less than a second; `bailey
/// audit verify` looks at any.
const PAGES_MAX: u64 = 64 << 20;

/// The home, and whether it is ours.
pub(super) fn home(flag: Option<PathBuf>) -> (Vec<Finding>, Option<Home>) {
    match Home::open(flag) {
        Ok(home) => {
            let says = format!("{}, yours alone", home.root.display());
            (vec![Finding::ok("home", says)], Some(home))
        }
        Err(error) => {
            let fix = "name a home of your own with --home DIR or BAILEY_HOME";
            (vec![Finding::fail("home", format!("{error:#}"), fix)], None)
        }
    }
}

/// Who commits inside are by.
pub(super) fn git(home: &Home) -> Vec<Finding> {
    const CHECK: &str = "git identity";
    let directory = std::env::current_dir().unwrap_or_else(|_| home.user.clone());
    let root = directory.ancestors().find(|above| above.join(".git").exists()).unwrap_or(&directory);
    let git = Git::of(&home.user, root, None);
    vec![match (git.identity(), git.differs()) {
        (Some(who), None) => Finding::ok(CHECK, format!("commits are by {who}")),
        (Some(who), Some(differs)) => Finding::ok(CHECK, format!("commits are by {who}; {differs}")),
        (None, _) => Finding::warn(
            CHECK,
            "your git configuration has no name and e-mail, so `git commit` fails inside the walls unless \
             the project's configuration has them",
            "git config --global user.name NAME && git config --global user.email MAIL",
        ),
    }]
}

/// Where the home lies, and the clock.
pub(super) fn storage(home: &Home) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(file_system(&home.root).map(|(name, holds)| layers(name, holds)));
    if let Ok(stat) = statvfs(&home.root) {
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let says = format!("{} MiB free", free >> 20);
        let fix = "free some space, or remove old sessions: bailey sessions list";
        findings.push(match free {
            // One that lives in memory without a limit counts nothing.
            _ if stat.f_blocks == 0 => Finding::ok("disk space", "the file system does not say"),
            ..ROOM_FAIL => Finding::fail("disk space", says, fix),
            ROOM_FAIL..ROOM_WARN => Finding::warn("disk space", says, fix),
            _ => Finding::ok("disk space", says),
        });
    }
    findings.push(clock());
    findings
}

fn layers(name: String, holds: Holds) -> Finding {
    const CHECK: &str = "file system";
    let fix = "put the home on a local disk: --home DIR or BAILEY_HOME";
    match holds {
        Holds::Layers => Finding::ok(CHECK, name),
        Holds::UntilTheEnd => {
            Finding::warn(CHECK, format!("{name}: what lies in memory is gone at the next start"), fix)
        }
        Holds::None(why) => Finding::warn(
            CHECK,
            format!(
                "{name}, {why}: it can hold no session's layer, which then lies elsewhere, as each run says"
            ),
            fix,
        ),
        Holds::Unknown => Finding::ok(CHECK, format!("{name}; see `walls` below")),
    }
}

fn clock() -> Finding {
    match clock::look() {
        (now, None) => Finding::ok("clock", now),
        (now, Some(wrong)) => Finding::fail(
            "clock",
            format!("it shows {now}, {wrong}: certificates will be refused"),
            clock::FIX,
        ),
    }
}

/// The configuration with the environment.
pub(super) fn config(home: &Home) -> (Vec<Finding>, Option<Config>) {
    match bailey_channels::kinds::load(home) {
        Ok(config) => {
            let path = home.config();
            let says = match path.exists() {
                true => path.display().to_string(),
                false => "no config.toml, so every setting has its default".into(),
            };
            let mut findings = vec![Finding::ok("configuration", says)];
            findings.extend(model(&config));
            let faults = bailey_channels::kinds::faults(&config);
            findings
                .extend(faults.into_iter().map(|why| Finding::warn("channels", why, "bailey config edit")));
            let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            findings.extend(unknown_variables(names).into_iter().map(|name| {
                Finding::warn(
                    "environment",
                    format!("{name} is not a variable of Bailey"),
                    "correct or unset it",
                )
            }));
            (findings, Some(config))
        }
        Err(error) => {
            (vec![Finding::fail("configuration", format!("{error:#}"), "bailey config edit")], None)
        }
    }
}

/// The model that answers where none is named, of which no session begins without its provider.
fn model(config: &Config) -> Option<Finding> {
    let error = config.find(config.model.as_deref()?).err()?;
    let says = format!("`model`, from {}: {error:#}", config.origin("model"));
    Some(Finding::fail(
        "model",
        says,
        "name one of a provider that is there: bailey models list, then bailey config edit",
    ))
}

/// The rules.
pub(super) fn rules(home: &Home, config: Option<&Config>) -> Vec<Finding> {
    match compose::policy(home, &config.map(Extensions::read).unwrap_or_default()) {
        Ok((policy, warnings)) if warnings.is_empty() => {
            vec![Finding::ok("rules", format!("well formed (policy {})", policy.digest().short()))]
        }
        Ok((_, warnings)) => {
            let warn = |warning| Finding::warn("rules", warning, "bailey policy check");
            warnings.into_iter().map(warn).collect()
        }
        Err(error) => {
            vec![Finding::fail("rules", format!("{error:#}"), "correct the file, then: bailey policy check")]
        }
    }
}

/// The journal's newest entries, and whether the clock has gone back behind them.
pub(super) async fn journal(home: &Home, config: Option<&Config>, printer: &Printer) -> Vec<Finding> {
    const CHECK: &str = "journal";
    if !home.journal().exists() {
        return vec![Finding::ok(CHECK, "none yet")];
    }
    let keys = match Keys::load(home, &config.cloned().unwrap_or_default(), printer) {
        Ok(keys) => keys,
        Err(error) => {
            let says = format!("not looked at, for its keys could not be loaded: {error:#}");
            return vec![Finding::fail(
                CHECK,
                says,
                "nothing says that it is damaged: first what that names",
            )];
        }
    };
    let read = async {
        let (journal, _mint) = compose::journal(home, &keys).await?;
        let verified = journal.verify_tail(ENTRIES).await?;
        let is_short = std::fs::metadata(home.journal())?.len() <= PAGES_MAX;
        if is_short {
            journal.verify_pages().await?;
        }
        anyhow::Ok((verified.entries, is_short, clock::newest(&journal).await?))
    };
    match read.await {
        Ok((entries, is_short, newest)) => {
            let pages = if is_short {
                ", and every page is whole"
            } else {
                "; bailey audit verify looks at all of it"
            };
            let says = format!("the newest {entries} entries fit together{pages}");
            let mut findings = vec![Finding::ok(CHECK, says)];
            let behind = newest.and_then(clock::behind);
            findings.extend(behind.map(|says| Finding::warn("clock", says, clock::FIX)));
            let room = config.and_then(|config| retention::room(home, config));
            findings.extend(
                room.map(|says| Finding::warn("journal's room", says, "bailey audit archive --dry-run")),
            );
            findings
        }
        Err(error) => vec![Finding::fail(CHECK, crate::print::whole(&error), way_out(&error))],
    }
}

/// What to do about a journal that could not be looked at: it may be as whole as it was.
fn way_out(error: &anyhow::Error) -> &'static str {
    match why_unwritten(error) {
        Some(Unwritten::Full) => {
            "free some space on its file system: nothing says that the journal is damaged"
        }
        Some(Unwritten::ReadOnly) => "make the home writable: nothing says that the journal is damaged",
        None => {
            "bailey audit verify says more; bailey audit recover keeps what can still be read; a home that is not damaged: --home DIR"
        }
    }
}

/// Why nothing can be written in the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unwritten {
    Full,
    ReadOnly,
}

/// Whether an error is one of writing in the home at all.
pub(super) fn why_unwritten(error: &anyhow::Error) -> Option<Unwritten> {
    error.chain().find_map(|cause| {
        // What passes an error on as it is, is no cause of its own.
        let journal = match cause.downcast_ref::<HostError>() {
            Some(HostError::Journal(error)) => Some(error),
            _ => cause.downcast_ref::<JournalError>(),
        };
        let of_store = match journal {
            Some(JournalError::Store(StoreError::Full { .. })) => Some(Unwritten::Full),
            Some(JournalError::Store(StoreError::ReadOnly { .. })) => Some(Unwritten::ReadOnly),
            _ => None,
        };
        of_store.or_else(|| match cause.downcast_ref::<std::io::Error>()?.kind() {
            ErrorKind::StorageFull => Some(Unwritten::Full),
            ErrorKind::ReadOnlyFilesystem => Some(Unwritten::ReadOnly),
            _ => None,
        })
    })
}

/// Whether an emergency stop holds; none where it does not.
pub(super) fn stop(home: &Home) -> Option<Finding> {
    let since = bailey_session::standing(home).ok()??;
    let says = format!("everything in this home has been stopped since {since}, so no provider is asked");
    Some(Finding::fail("stop", says, "when you know why it was stopped: bailey estop --release"))
}

/// Keys of providers.
pub(super) fn keys(home: &Home, config: &Config) -> Vec<Finding> {
    const CHECK: &str = MODEL_KEYS;
    let stored = match Stores::new(home, config).names() {
        Ok(stored) => stored,
        Err(error) => return vec![Finding::fail(CHECK, format!("{error:#}"), "chmod 600 that file")],
    };
    let is_there =
        |name: &str| crate::stores::is_in_environment(name) || stored.iter().any(|(known, _)| known == name);
    let of_commands = config.network.keys.iter().filter(|key| !is_there(&key.secret)).map(|key| {
        Finding::warn(
            "keys of commands",
            format!("there is no secret `{}`, which [[network.key]] puts in at {}", key.secret, key.at),
            format!("bailey secrets set {}", key.secret),
        )
    });
    let of_commands: Vec<Finding> = of_commands.collect();
    let with_key =
        config.providers.iter().filter(|(_, provider)| provider.key_env.as_deref().is_some_and(is_there));
    let with_key: Vec<&str> = with_key.map(|(name, _)| name.as_str()).collect();
    let needs = |model: &str| {
        let key = config.find(model).ok()?.1.key_env.clone();
        key.filter(|key| !is_there(key))
    };
    let of_models = match config.default_model(is_there) {
        Err(_) => Finding::warn(
            CHECK,
            "no model can be used: no provider has a key, and no model that needs no key is configured",
            "bailey init (without a terminal: bailey secrets set ANTHROPIC_API_KEY, or for a local model \
             bailey config set model ollama/NAME)",
        ),
        Ok(model) => match needs(&model) {
            Some(key) => Finding::warn(
                CHECK,
                format!("`{model}` cannot be used: its key `{key}` is missing"),
                format!("bailey secrets set {key}; or choose another model: bailey init"),
            ),
            None if with_key.is_empty() => Finding::ok(CHECK, format!("`{model}` needs none")),
            None => Finding::ok(CHECK, format!("for {}", with_key.join(", "))),
        },
    };
    [of_models].into_iter().chain(of_commands).collect()
}
