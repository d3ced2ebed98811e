//! The questions of `bailey init` on a terminal: which model, its key, and the name for commits.
//!
//! A process of its own ([`look`]) finds the servers that answer and the models that they list: it binds
//! itself, goes through the gate like every request, and prints its findings. This one asks, and writes the
//! settings.

use crate::{
    commands::{config::set, models},
    compose::Keys,
    config::{Config, Provider, change, is_private},
    front::{ask_text, one_line, pick_one},
    git::Git,
    home::Home,
    print::{Printer, Style},
    program, project, prompt,
    stores::{Stores, is_in_environment},
};
use anyhow::{Context as _, Result, bail};
use bailey_llm::Wire;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, process::Stdio, time::Duration};

/// How long a server of this machine may take to list its models.
const PATIENCE: Duration = Duration::from_millis(300);
/// The most models of one provider that are offered.
const MODELS_MAX: usize = 2_000;

/// The usual servers for models on this machine: the provider's name, the server's name, its wire and its
/// URL.
const LOCAL: [(&str, &str, Wire, &str); 4] = [
    ("ollama", "Ollama", Wire::Ollama, "http://127.0.0.1:11434"),
    ("lmstudio", "LM Studio", Wire::OpenAiChat, "http://127.0.0.1:1234/v1"),
    ("llamacpp", "llama.cpp", Wire::OpenAiChat, "http://127.0.0.1:8080/v1"),
    ("vllm", "vLLM", Wire::OpenAiChat, "http://127.0.0.1:8000/v1"),
];

/// The providers that sell models, with their names for people.
const SOLD: [(&str, &str); 3] =
    [("anthropic", "Anthropic"), ("openai", "OpenAI"), ("gemini", "Google Gemini")];

/// The name of a provider that the user gives by its URL, and of the variable for its key.
const OWN: &str = "server";
const OWN_KEY: &str = "SERVER_API_KEY";

/// A provider's answer to the question for its models.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    provider: String,
    models: Vec<String>,
    /// The problem, if any.
    problem: String,
}

/// A way to a model.
enum Choice {
    /// A server of this machine, with its models.
    Local(Listed),
    /// A configured provider.
    Provider(String),
    /// A server by its URL.
    Url,
    Later,
}

/// Whether a conversation could not begin: no model is configured, and no key is there that decides.
pub(super) fn is_needed(home: &Home) -> Result<bool> {
    let config = Config::load(home)?;
    let stored = Stores::new(home, &config).names()?;
    let has = |name: &str| is_in_environment(name) || stored.iter().any(|(known, _)| known == name);
    Ok(config.default_model(has).is_err())
}

/// Asks for the missing settings. Each question can be left out.
pub(super) async fn ask(home: &Home, printer: &Printer) -> Result<()> {
    let config = Config::load(home)?;
    let is_wanted = match &config.model {
        None => true,
        Some(model) => {
            let title = format!("The model is {model}");
            let rows = ["Keep it", "Choose another one"].map(String::from);
            pick_one(printer, &title, &rows).await == Some(1)
        }
    };
    if is_wanted && model(home, &config, printer).await?.is_none() {
        printer.note("no model was chosen; `bailey init` asks again, `bailey config set model …` sets one");
    }
    introduce(home, printer).await
}

/// Finds a model with the user, and writes it down.
async fn model(home: &Home, config: &Config, printer: &Printer) -> Result<Option<()>> {
    printer.line("");
    let names: Vec<&str> = LOCAL.iter().map(|(name, ..)| *name).collect();
    let what = || "looking for a model server on this machine".to_owned();
    let local = printer.waiting(what, found(home, &names)).await.unwrap_or_default();
    let (rows, mut choices) = choices(home, config, local)?;
    let Some(at) = pick_one(printer, "Where does your model run?", &rows).await else { return Ok(None) };
    let (provider, mut models) = match choices.swap_remove(at) {
        Choice::Later => return Ok(None),
        Choice::Local(listed) => {
            configure(home, config, &listed.provider)?;
            (listed.provider, listed.models)
        }
        Choice::Provider(provider) => {
            let key = config.providers.get(&provider).and_then(|it| it.key_env.clone());
            let Some(models) = opened(home, &provider, key, printer).await? else { return Ok(None) };
            (provider, models)
        }
        Choice::Url => {
            let Some(key) = by_url(home, config, printer).await? else { return Ok(None) };
            let Some(models) = opened(home, OWN, key, printer).await? else { return Ok(None) };
            (OWN.to_owned(), models)
        }
    };
    // The one that Bailey would take by itself stands first.
    let usual = config.providers.get(&provider).and_then(|it| it.key_env.as_deref());
    let usual = Config::default().default_model(|key| usual == Some(key)).ok();
    let usual = usual.as_deref().and_then(|model| model.split_once('/')).map(|(_, name)| name.to_owned());
    if let Some(at) = models.iter().position(|model| Some(model) == usual.as_ref()) {
        let usual = models.remove(at);
        models.insert(0, usual);
    }
    let model = match models.as_slice() {
        [] => {
            printer.note("it lists no model; load one there first, for example with `ollama pull NAME`");
            ask_text(printer, "Which model, by its name?").await.filter(|name| !name.is_empty())
        }
        models => pick_one(printer, "Which model?", models).await.and_then(|at| models.get(at).cloned()),
    };
    let Some(model) = model else { return Ok(None) };
    let model = format!("{provider}/{model}");
    set(home, &[("model", &change::text(&model))])?;
    printer.line(format!(
        "{}  {}",
        printer.paint(Style::Green, "model"),
        printer.paint(Style::Plain, &one_line(&model))
    ));
    Ok(Some(()))
}

/// The user's choices, with a row for each.
fn choices(home: &Home, config: &Config, local: Vec<Listed>) -> Result<(Vec<String>, Vec<Choice>)> {
    let (mut rows, mut choices) = (Vec::new(), Vec::new());
    for listed in local.into_iter().filter(|listed| listed.problem.is_empty()) {
        let Some((_, title, ..)) = LOCAL.iter().find(|(name, ..)| *name == listed.provider) else { continue };
        let models = match listed.models.len() {
            0 => "no model yet".to_owned(),
            1 => "1 model".to_owned(),
            count => format!("{count} models"),
        };
        rows.push(format!("{title}, on this machine: {models}"));
        choices.push(Choice::Local(listed));
    }
    let stored = Stores::new(home, config).names()?;
    for (name, title) in SOLD {
        let Some(key) = config.providers.get(name).and_then(|it| it.key_env.as_deref()) else { continue };
        let is_stored = stored.iter().any(|(known, _)| known == key);
        rows.push(match (is_in_environment(key), is_stored) {
            (true, _) => format!("{title} ({key} is set)"),
            (_, true) => format!("{title} (its key is stored)"),
            _ => format!("{title} (asks for a key)"),
        });
        choices.push(Choice::Provider(name.to_owned()));
    }
    rows.push("Another server that speaks OpenAI's Chat Completions, by its URL".into());
    choices.push(Choice::Url);
    rows.push("Decide later".into());
    choices.push(Choice::Later);
    Ok((rows, choices))
}

/// Makes a local server a provider, where it is not one yet.
fn configure(home: &Home, config: &Config, name: &str) -> Result<()> {
    let found = LOCAL.iter().find(|(known, ..)| *known == name && !config.providers.contains_key(name));
    let Some((_, _, wire, url)) = found else { return Ok(()) };
    added(home, name, *wire, url, None)
}

fn added(home: &Home, name: &str, wire: Wire, url: &str, key: Option<&str>) -> Result<()> {
    let at = |field: &str| format!("providers.{name}.{field}");
    let mut values = vec![(at("wire"), change::text(wire.setting())), (at("base_url"), change::text(url))];
    values.extend(key.map(|key| (at("key_env"), change::text(key))));
    let values: Vec<(&str, &str)> =
        values.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    set(home, &values)
}

/// Asks for a server's URL, and makes it a provider. Gives the variable of its key, where it asks for one.
async fn by_url(home: &Home, config: &Config, printer: &Printer) -> Result<Option<Option<String>>> {
    loop {
        let url = ask_text(printer, "Its URL, such as https://models.example.com/v1:").await;
        let Some(url) = url.filter(|url| !url.is_empty()) else { return Ok(None) };
        let rows = ["It asks for a key", "It asks for no key"].map(String::from);
        let Some(at) = pick_one(printer, "The server", &rows).await else { return Ok(None) };
        let key = (at == 0).then_some(OWN_KEY);
        if config.providers.contains_key(OWN) {
            bail!("there is a provider `{OWN}` already; change it with `bailey config edit`");
        }
        match added(home, OWN, Wire::OpenAiChat, &url, key) {
            Ok(()) => {
                if key.is_some() && !is_private(&url) {
                    printer.warn(
                        "the URL is not encrypted: anybody on the way can read the key and every message",
                    );
                }
                return Ok(Some(key.map(str::to_owned)));
            }
            Err(error) => printer.error(&error),
        }
    }
}

/// Asks for the provider's key where it is missing, and gives the models that the provider lists. `None` when
/// the user leaves.
async fn opened(
    home: &Home,
    provider: &str,
    key: Option<String>,
    printer: &Printer,
) -> Result<Option<Vec<String>>> {
    let mut is_wanted = false;
    loop {
        let config = Config::load(home)?;
        let stores = Stores::new(home, &config);
        if let Some(key) = &key {
            let is_there = is_in_environment(key) || stores.names()?.iter().any(|(known, _)| known == key);
            if !is_there || is_wanted {
                let Ok(secret) = prompt::secret(key, "set it in the environment") else { return Ok(None) };
                if secret.expose().is_empty() || secret.expose().contains(char::is_control) {
                    return Ok(None);
                }
                stores.set(config.secrets.store, key, secret)?;
            }
        }
        let what = || format!("asking {provider} for its models");
        let listed = printer.waiting(what, found(home, &[provider])).await?;
        let listed = listed.into_iter().next().context("the provider was not asked")?;
        if listed.problem.is_empty() {
            return Ok(Some(listed.models));
        }
        printer.warn(&listed.problem);
        let mut rows = vec!["Ask again".to_owned(), "Name a model all the same".to_owned()];
        // A variable of the environment is not for Bailey to change.
        let asks = key.as_ref().is_some_and(|key| !is_in_environment(key));
        if asks {
            rows.push("Give another key".into());
        }
        match pick_one(printer, "What now?", &rows).await {
            Some(0) => is_wanted = false,
            Some(1) => return Ok(Some(Vec::new())),
            Some(_) => is_wanted = true,
            None => return Ok(None),
        }
    }
}

/// Asks for a name and an e-mail for commits, where git lacks them.
async fn introduce(home: &Home, printer: &Printer) -> Result<()> {
    let here = project::find(None, home).map(|(root, _)| root).unwrap_or_else(|_| home.user.clone());
    if super::on_path("git").is_none() || Git::of(&home.user, &here, None).identity().is_some() {
        return Ok(());
    }
    printer.note("git does not know who you are, and commits bear your name (Enter leaves this out)");
    let name = ask_text(printer, "Your name for commits:").await.filter(|name| !name.is_empty());
    let Some(name) = name else { return Ok(()) };
    let email = ask_text(printer, "Your e-mail for commits:").await.filter(|email| !email.is_empty());
    let Some(email) = email else { return Ok(()) };
    let file = Git::introduce(&home.user, &name, &email).context("git's own settings cannot be written")?;
    printer.line(format!(
        "{}  {}",
        printer.paint(Style::Green, "wrote"),
        printer.paint(Style::Plain, &file.display().to_string())
    ));
    Ok(())
}

/// The models of these providers, as a process of its own found them.
async fn found(home: &Home, providers: &[&str]) -> Result<Vec<Listed>> {
    let mut command = program::again();
    command.arg("--home").arg(&home.root).args(["--json", "init", "--look"]).arg(providers.join(","));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let listed = lines.filter_map(|line| serde_json::from_slice::<Listed>(line).ok());
    Ok(listed
        .map(|mut listed| {
            listed.models.truncate(MODELS_MAX);
            listed
        })
        .collect())
}

/// Asks these providers for their models, and prints each answer. The usual servers of this machine are known
/// without a configuration, and have little time.
pub(super) async fn look(home: &Home, providers: &str, printer: &Printer) -> Result<()> {
    let mut config = Config::load(home)?;
    let names: Vec<String> = providers.split(',').map(str::to_owned).collect();
    let patience = if names.iter().all(|name| is_local(name)) { PATIENCE } else { models::PATIENCE };
    for (name, _, wire, url) in LOCAL {
        config.providers.entry(name.to_owned()).or_insert_with(|| Provider {
            wire,
            base_url: url.to_owned(),
            key_env: None,
            window_tokens: None,
            first_byte_seconds: None,
            parameters: BTreeMap::new(),
        });
    }
    let keys = Keys::load(home, &config, printer)?;
    let answers = models::listed(home, &config, keys, &names, patience).await?;
    for (provider, answer) in names.into_iter().zip(answers) {
        let (models, problem) = match answer {
            Ok(models) => (models, String::new()),
            Err(problem) => (Vec::new(), problem),
        };
        printer.json(&Listed { provider, models, problem });
    }
    Ok(())
}

fn is_local(name: &str) -> bool {
    LOCAL.iter().any(|(known, ..)| *known == name)
}
