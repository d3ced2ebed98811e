//! `bailey channels add`: the key, the configuration and the reload of a new channel in one command.

use crate::{
    client::Client,
    config::change,
    daemon::alone,
    exit,
    home::Home,
    print::{Printer, Style},
    project,
    stores::Stores,
    wire::{Ask, ChannelState, DaemonAnswer},
};
use anyhow::{Result, bail};
use bailey_channels::{command::Added, kinds};
use serde_json::json;
use std::{io::IsTerminal as _, process::ExitCode, time::Duration};
use tokio::time::{Instant, sleep};

/// How long a channel may take to be up, before the command says that it still connects.
const UP: Duration = Duration::from_secs(10);
/// How often the daemon is asked whether it is.
const LOOK: Duration = Duration::from_millis(100);

pub(super) async fn run(home: &Home, added: Added, printer: &Printer) -> Result<ExitCode> {
    let Added { kind, name, base_url } = added;
    let config = kinds::load(home)?;
    let name = name.unwrap_or_else(|| kind.name().to_owned());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_plain)
    {
        return Err(exit::Mistyped(format!(
            "`{name}` cannot name a channel: a name begins with a letter, and has only letters, digits, `_` \
             and `-`"
        ))
        .into());
    }
    if let Some(channel) = config.channels.get(&name) {
        return Err(exit::Mistyped(format!(
            "the channel `{name}` is configured already; `bailey secrets set {}`, then `bailey reload`, gives \
             it another token",
            channel.key_env
        ))
        .into());
    }
    let (workspace, _) = project::find(None, home)?;
    let key = format!("{}_BOT_TOKEN", name.to_ascii_uppercase().replace('-', "_"));
    let is_read = config.channels.values().any(|channel| channel.key_env == key)
        || config.providers.values().any(|provider| provider.key_env.as_deref() == Some(&*key));
    if is_read || Stores::new(home, &config).names()?.iter().any(|(known, _)| *known == key) {
        return Err(exit::Mistyped(format!(
            "there is a secret `{key}` already, which the channel `{name}` would replace; choose another name \
             for the channel, or remove the secret with `bailey secrets rm {key}`"
        ))
        .into());
    }
    if std::io::stdin().is_terminal() {
        printer.note("in Telegram, write /newbot to @BotFather; then paste here the token that it gives you");
    }
    let token = super::secrets::given(&key)?;
    if !is_token(token.expose()) {
        bail!(
            "that is no token of a bot, so nothing was changed: a token is a number, a colon, and letters \
             and digits, as @BotFather shows it"
        );
    }
    let of = |field: &str| format!("channels.{name}.{field}");
    let mut values = vec![
        (of("kind"), change::text(kind.name())),
        (of("key_env"), change::text(&key)),
        (of("workspace"), change::text(&workspace.display().to_string())),
    ];
    values.extend(base_url.map(|url| (of("base_url"), change::text(&url))));
    let values: Vec<(&str, &str)> = values.iter().map(|(key, value)| (&**key, &**value)).collect();
    super::config::set(home, &values)?;
    let config = kinds::load(home)?;
    let (stores, store) = (Stores::new(home, &config), config.secrets.store);
    stores.set(store, &key, token)?;
    super::secrets::tell_of_others(stores, &key, Some(store), printer)?;
    let state = reloaded(home, &name).await?;
    let workspace = workspace.display().to_string();
    if printer.is_json() {
        printer.json(&json!({ "channel": name, "key": key, "workspace": workspace, "state": state }));
    } else {
        printer.line(format!(
            "{} channel {name}, about {}; its token is stored as {key}",
            printer.paint(Style::Green, "added:"),
            printer.paint(Style::Plain, &workspace)
        ));
        tell(&name, &key, state.as_ref(), printer);
    }
    let is_down = state.is_some_and(|state| !state.up);
    Ok(ExitCode::from(if is_down { exit::FAILED } else { exit::DONE }))
}

/// Says whether the channel is up, and what to do next.
fn tell(name: &str, key: &str, state: Option<&ChannelState>, printer: &Printer) {
    let next = |first: &str| {
        printer.note(&format!(
            "{first}write to your bot in Telegram. It answers with a code; type here \
             `bailey channels pair {name} CODE --as owner`"
        ));
    };
    match state {
        None => next("start the daemon with `bailey start`, then "),
        Some(ChannelState { connecting: true, .. }) => {
            printer.warn(
                "the platform has not answered yet; `bailey channels list` shows when the channel is up",
            );
            next("then ");
        }
        Some(ChannelState { up: true, .. }) => {
            printer.line(format!("{} the platform accepts the token", printer.paint(Style::Green, "up:")));
            next("now ");
        }
        Some(ChannelState { note, .. }) => {
            printer.warn(&format!("the channel is down: {note}"));
            printer
                .note(&format!("set the token again with `bailey secrets set {key}`, then `bailey reload`"));
        }
    }
}

/// Has a daemon that runs read the configuration again, and waits until the channel is up or down. `None`
/// when no daemon runs.
async fn reloaded(home: &Home, name: &str) -> Result<Option<ChannelState>> {
    if alone::holder(home)?.is_none() {
        return Ok(None);
    }
    let Some(mut daemon) = Client::connect(home)? else { return Ok(None) };
    daemon.ask(Ask::Reload).await?;
    let until = Instant::now() + UP;
    loop {
        let DaemonAnswer::Status(status) = daemon.ask(Ask::Status).await? else {
            bail!("the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`");
        };
        let state = status.channels.into_iter().find(|state| state.name == name);
        let is_known = |it: &ChannelState| if it.up { !it.connecting } else { it.note != "begins" };
        if state.as_ref().is_some_and(is_known) || Instant::now() >= until {
            return Ok(state);
        }
        sleep(LOOK).await;
    }
}

/// Whether a text looks like the token of a bot.
fn is_token(text: &str) -> bool {
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split_once(':').is_some_and(|(number, key)| {
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && key.len() >= 20
            && key.chars().all(is_key)
    })
}
