//! `bailey secrets`: puts keys where Bailey finds them. A value is never an argument and never printed.

use crate::{
    cli::{NO_ARGUMENT, Secrets, Store},
    compose::Named,
    config::Config,
    daemon::alone,
    exit,
    home::Home,
    print::{Printer, Style},
    prompt,
    stores::{Stores, is_in_environment},
    wire::SOCKET,
};
use anyhow::{Context as _, Result, bail};
use bailey_protocol::spell::meant;
use bailey_secrets::{Redactor, Secret, Vault, is_secret_name};
use bailey_session::running::in_use;
use clap::ValueEnum as _;
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
};
use zeroize::Zeroizing;

/// The longest secret that is read, in bytes.
const SECRET_BYTES_MAX: usize = 32 << 10;

pub(super) fn run(home: &Home, command: Secrets, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let stores = Stores::new(home, &config);
    match command {
        Secrets::Set { value, .. } if !value.is_empty() => bail!(NO_ARGUMENT),
        Secrets::Set { name, .. } if !is_name(&name) => {
            let what = "a name has only letters, digits and `_`, and does not begin with a digit, such as \
                ANTHROPIC_API_KEY";
            Err(exit::Mistyped(format!("`{name}` cannot name a secret: {what}")).into())
        }
        Secrets::Set { name, store, .. } => {
            let store = store.unwrap_or(config.secrets.store);
            let secret = given(&name)?;
            let is_weak = is_weak(&name, &secret);
            stores.set(store, &name, secret)?;
            tell(printer, "stored", &name, store);
            if is_weak {
                printer.note(
                    "the secret is too short or too plain to be recognised in output, so it is not masked \
                     there, and no command gets it",
                );
            }
            tell_of_others(stores, &name, Some(store), printer)?;
            tell_of_those_that_run(home, &name, printer);
            if users(&config, &name).next().is_none() {
                let hint = match meant(&name, read(&config)) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "name it as `key_env` of a provider or a channel, or as `secret` of a \
                             [[network.key]]"
                        .into(),
                };
                printer.note(&format!("nothing uses `{name}` yet; {hint}"));
            }
            Ok(ExitCode::SUCCESS)
        }
        Secrets::List => list(&config, stores, printer),
        Secrets::Names => {
            printer.part(serde_json::to_string(&Named::now(home, &config)?)?);
            Ok(ExitCode::SUCCESS)
        }
        Secrets::Rm { name, store } => {
            let places = store.map_or_else(|| Store::ALL.to_vec(), |store| vec![store]);
            let mut was_there = false;
            for place in places {
                if stores.remove(place, &name)? {
                    was_there = true;
                    tell(printer, "removed", &name, place);
                }
            }
            if was_there {
                tell_of_others(stores, &name, None, printer)?;
                tell_of_those_that_run(home, &name, printer);
            } else {
                bail!("Bailey keeps no secret `{name}`; `bailey secrets list` shows all");
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Whether it cannot be known again where it shows.
fn is_weak(name: &str, secret: &Secret) -> bool {
    let mut vault = Vault::default();
    vault.insert(name.to_owned(), Secret::new(secret.expose().to_owned()));
    !Redactor::of_values(&vault).unmatched().is_empty()
}

/// Says where else one of this name lies that is used all the same: before the store that was changed, or
/// anywhere.
pub(super) fn tell_of_others(
    stores: Stores<'_>,
    name: &str,
    changed: Option<Store>,
    printer: &Printer,
) -> Result<()> {
    if is_in_environment(name) {
        printer.warn(&format!(
            "the variable `{name}` of this shell takes precedence: programs started from this shell use its \
             value"
        ));
        return Ok(());
    }
    let found = stores.names()?;
    let is_there = |store: &Store| found.iter().any(|(known, place)| known == name && place == store);
    let first = Store::ALL.into_iter().find(is_there).filter(|first| Some(*first) != changed);
    if let Some(first) = first {
        let option = first.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned());
        printer.warn(&format!(
            "{} also holds `{name}`, and that value is the one in use; remove it with \
             `bailey secrets rm {name} --store {option}`",
            place(first)
        ));
    }
    Ok(())
}

/// Whoever runs has read the one of before.
fn tell_of_those_that_run(home: &Home, name: &str, printer: &Printer) {
    if !home.daemon().join(SOCKET).exists() {
        let running = in_use(&home.root);
        if !running.is_empty() {
            printer.note(&format!(
                "running processes keep the old value until they end: {}",
                running.join("; ")
            ));
        }
        return;
    }
    printer.note(
        "sessions of the daemon keep the old value until you run `bailey reload` (an open conversation \
         keeps its model's key until every terminal has left it)",
    );
    // Where the kernel does not show it, nothing is said of it.
    let daemon = alone::holder(home).ok().flatten().flatten();
    let variables = daemon.and_then(|pid| fs::read(format!("/proc/{pid}/environ")).ok()).unwrap_or_default();
    let of_it = format!("{name}=");
    if variables.split(|byte| *byte == 0).any(|it| it.len() > of_it.len() && it.starts_with(of_it.as_bytes()))
    {
        printer.warn(&format!(
            "the daemon was started with a variable `{name}`, which takes precedence, also for new \
             sessions; stop the daemon, and start it without the variable"
        ));
    }
}

fn tell(printer: &Printer, what: &str, name: &str, store: Store) {
    if printer.is_json() {
        printer.json(&json!({ "done": what, "name": name, "origin": store }));
    } else {
        printer.line(format!(
            "{} {} {} {}",
            printer.paint(Style::Green, &format!("{what}:")),
            printer.paint(Style::Plain, name),
            if what == "stored" { "in" } else { "from" },
            place(store)
        ));
    }
}

fn place(store: Store) -> &'static str {
    match store {
        Store::Env => ".env",
        Store::Sealed => "the sealed store",
        Store::Keyring => "the kernel's keyring",
    }
}

/// The providers whose key has this name.
fn users<'a>(config: &'a Config, name: &'a str) -> impl Iterator<Item = &'a str> {
    let uses =
        move |(_, provider): &(&String, &crate::config::Provider)| provider.key_env.as_deref() == Some(name);
    let of_models = config.providers.iter().filter(uses).map(|(provider, _)| provider.as_str());
    // A command's, by the server at which it is put in.
    let of_commands =
        config.network.keys.iter().filter(move |key| key.secret == name).map(|key| key.at.as_str());
    let of_channels = config.channels.iter().filter(move |(_, channel)| channel.key_env == name);
    let of_collector = config.telemetry.key_env.as_deref().filter(move |key| *key == name);
    of_models
        .chain(of_commands)
        .chain(of_channels.map(|(channel, _)| channel.as_str()))
        .chain(of_collector.map(|_| "telemetry"))
}

/// The names that the configuration reads.
fn read(config: &Config) -> impl Iterator<Item = &str> {
    let of_models = config.providers.values().filter_map(|provider| provider.key_env.as_deref());
    let of_commands = config.network.keys.iter().map(|key| key.secret.as_str());
    let of_channels = config.channels.values().map(|channel| channel.key_env.as_str());
    let of_collector = config.telemetry.key_env.as_deref();
    of_models.chain(of_commands).chain(of_channels).chain(of_collector)
}

fn list(config: &Config, stores: Stores<'_>, printer: &Printer) -> Result<ExitCode> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let named: Vec<&str> = read(config).collect();
    for (name, value) in std::env::vars_os() {
        if let Ok(name) = name.into_string()
            && !value.is_empty()
            && (named.contains(&name.as_str()) || is_secret_name(&name))
        {
            found.entry(name).or_default().push("environment");
        }
    }
    for (name, store) in stores.names()? {
        found.entry(name).or_default().push(place(store));
    }
    for name in named {
        found.entry(name.into()).or_default();
    }
    for (name, places) in &found {
        let used_by: Vec<&str> = users(config, name).collect();
        if printer.is_json() {
            printer.json(&json!({ "name": name, "origin": places, "used_by": used_by }));
            continue;
        }
        let (style, origin) = match places.split_first() {
            None => (Style::Yellow, "not set".to_owned()),
            Some((first, [])) => (Style::Plain, (*first).to_owned()),
            Some((first, rest)) => (Style::Plain, format!("{first} (hides {})", rest.join(", "))),
        };
        let users = match used_by.as_slice() {
            [] => String::new(),
            users => format!("used by {}", users.join(", ")),
        };
        printer.line(format!(
            "{}  {}  {}",
            printer.paint(Style::Bold, &format!("{name:<24}")),
            printer.paint(style, &format!("{origin:<16}")),
            printer.paint(Style::Dim, &users)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The secret from standard input, without the end of its line; on a terminal it is asked for.
pub(super) fn given(name: &str) -> Result<Secret> {
    let typed = std::io::stdin().is_terminal();
    let secret = if typed { prompt::secret(name, "give it on standard input")? } else { piped()? };
    if secret.expose().is_empty() {
        bail!("the input was empty, so `{name}` was not stored; `bailey secrets rm {name}` removes a secret");
    }
    if secret.expose().contains(char::is_control) {
        bail!(
            "the input has several lines or a control character, so `{name}` was not stored; give the key \
             alone, on one line"
        );
    }
    Ok(secret)
}

/// Whether a program could have a variable of this name.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn piped() -> Result<Secret> {
    let mut text = Zeroizing::new(String::with_capacity(SECRET_BYTES_MAX + 1));
    std::io::stdin()
        .take(SECRET_BYTES_MAX as u64 + 1)
        .read_to_string(&mut text)
        .context("cannot read the secret from standard input")?;
    if text.len() > SECRET_BYTES_MAX {
        bail!("it is longer than 32 KiB: that is no key");
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(line.strip_suffix('\r').unwrap_or(line).to_owned()))
}
