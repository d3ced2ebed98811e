//! The questions of `bailey init` on a terminal: which model, its key, and the name for commits.
//!
//! A process of its own ([`look`]) finds the servers that answer and the models that they list: it binds
//! itself, goes through the gate like every request, and prints its findings. This one asks, and writes the
//! settings.

use crate::{
    commands::{
        config::{changed, set},
        models,
    },
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
use bailey_secrets::Secret;
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

/// A row of the first list.
enum Choice {
    /// A server of this machine, with its models.
    Local(Listed),
    /// No server of this machine answers: look again.
    Again,
    /// A configured provider.
    Provider(String),
    /// A server by its URL.
    Url,
    Later,
}

/// How the questions ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The settings are written.
    Done,
    /// The user wants no model yet.
    Later,
    /// The user left. Nothing was written.
    Left,
}

/// A way to a model, as the user chose it. Nothing of it is written before the model is chosen, too.
struct Way {
    provider: String,
    /// The settings of a provider that config.toml does not have yet.
    values: Vec<(String, String)>,
    /// The URL of such a provider, where no other process knows it.
    url: Option<String>,
    /// The variable of the provider's key, where it needs one.
    key_env: Option<String>,
    /// A key that the user typed.
    secret: Option<Secret>,
    models: Vec<String>,
}

impl Way {
    fn to(provider: &str, key_env: Option<String>) -> Self {
        let provider = provider.to_owned();
        Self { provider, values: Vec::new(), url: None, key_env, secret: None, models: Vec::new() }
    }

    /// Adds the settings of a new provider.
    fn with(mut self, wire: Wire, url: &str) -> Self {
        let at = |field: &str| format!("providers.{}.{field}", self.provider);
        self.values = vec![(at("wire"), change::text(wire.setting())), (at("base_url"), change::text(url))];
        self.values.extend(self.key_env.as_ref().map(|key| (at("key_env"), change::text(key))));
        self
    }

    fn values(&self) -> Vec<(&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    /// Writes the way and the model down.
    fn write(mut self, home: &Home, config: &Config, model: &str) -> Result<()> {
        self.values.push(("model".into(), change::text(model)));
        // A mistake is found before a key is stored.
        changed(home, &self.values())?;
        if let (Some(name), Some(secret)) = (&self.key_env, self.secret.take()) {
            Stores::new(home, config).set(config.secrets.store, name, secret)?;
        }
        set(home, &self.values())
    }
}

/// How the question for a provider's models ended.
enum Opened {
    Way(Way),
    /// The user wants another provider.
    Another,
    Left,
}

/// Whether a conversation could not begin: no model is configured, and no key is there that decides.
pub(super) fn is_needed(home: &Home) -> Result<bool> {
    let config = Config::load(home)?;
    let stored = Stores::new(home, &config).names()?;
    let has = |name: &str| is_in_environment(name) || stored.iter().any(|(known, _)| known == name);
    Ok(config.default_model(has).is_err())
}

/// Asks for the missing settings.
pub(super) async fn ask(home: &Home, printer: &Printer) -> Result<Outcome> {
    let config = Config::load(home)?;
    let is_wanted = match &config.model {
        None => true,
        Some(model) => {
            let title = format!("The model is {model}");
            let rows = ["Keep it", "Choose another one"].map(String::from);
            pick_one(printer, &title, &rows).await == Some(1)
        }
    };
    let outcome = if is_wanted { model(home, &config, printer).await? } else { Outcome::Done };
    match outcome {
        Outcome::Left => printer.note("nothing was stored; `bailey init` asks again"),
        Outcome::Later if is_needed(home)? => printer
            .note("no model was chosen; `bailey init` asks again, `bailey config set model …` sets one"),
        Outcome::Later | Outcome::Done => {}
    }
    if outcome != Outcome::Left {
        introduce(home, printer).await?;
    }
    Ok(outcome)
}

/// Finds a model with the user, and writes it down.
async fn model(home: &Home, config: &Config, printer: &Printer) -> Result<Outcome> {
    printer.line("");
    let way = loop {
        let names: Vec<&str> = LOCAL.iter().map(|(name, ..)| *name).collect();
        let what = || "looking for a model server on this machine".to_owned();
        let local = printer.waiting(what, found(home, &names, None)).await.unwrap_or_default();
        let (rows, mut choices) = choices(home, config, local)?;
        let Some(at) = pick_one(printer, "Where does your model run?", &rows).await else {
            return Ok(Outcome::Left);
        };
        let way = match choices.swap_remove(at) {
            Choice::Later => return Ok(Outcome::Later),
            Choice::Again => {
                printer.note("start a model server, for example with `ollama serve`; then choose again");
                continue;
            }
            Choice::Local(listed) => break to_local(config, listed),
            Choice::Provider(provider) => {
                let key = config.providers.get(&provider).and_then(|it| it.key_env.clone());
                Way::to(&provider, key)
            }
            Choice::Url => match by_url(home, config, printer).await? {
                Some(way) => way,
                None => return Ok(Outcome::Left),
            },
        };
        match opened(home, way, printer).await? {
            Opened::Way(way) => break way,
            Opened::Another => {}
            Opened::Left => return Ok(Outcome::Left),
        }
    };
    let Some(model) = model_of(&way, printer).await else { return Ok(Outcome::Left) };
    let model = format!("{}/{model}", way.provider);
    way.write(home, config, &model)?;
    printer.line(format!(
        "{}  {}",
        printer.paint(Style::Green, "model"),
        printer.paint(Style::Plain, &one_line(&model))
    ));
    Ok(Outcome::Done)
}

/// Asks which of the models. The one that Bailey would take by itself stands first.
async fn model_of(way: &Way, printer: &Printer) -> Option<String> {
    let mut models = way.models.clone();
    let usual = Config::default().default_model(|key| way.key_env.as_deref() == Some(key)).ok();
    let usual = usual.as_deref().and_then(|model| model.split_once('/')).map(|(_, name)| name.to_owned());
    if let Some(at) = models.iter().position(|model| Some(model) == usual.as_ref()) {
        let usual = models.remove(at);
        models.insert(0, usual);
    }
    if models.is_empty() {
        printer.note("it lists no model; load one there first, for example with `ollama pull NAME`");
        return ask_text(printer, "Which model, by its name?").await.filter(|name| !name.is_empty());
    }
    pick_one(printer, "Which model?", &models).await.and_then(|at| models.get(at).cloned())
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
    let has_local = !choices.is_empty();
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
    if !has_local {
        let names = LOCAL.map(|(_, title, ..)| title).join(", ");
        rows.push(format!("On this machine: {names} (none answers yet)"));
        choices.push(Choice::Again);
    }
    rows.push("Another server that speaks OpenAI's Chat Completions, by its URL".into());
    choices.push(Choice::Url);
    rows.push("Decide later".into());
    choices.push(Choice::Later);
    Ok((rows, choices))
}

/// The way to a local server, which becomes a provider where it is not one yet.
fn to_local(config: &Config, listed: Listed) -> Way {
    let found = LOCAL.iter().find(|(name, ..)| *name == listed.provider);
    let way = match found.filter(|(name, ..)| !config.providers.contains_key(*name)) {
        Some((name, _, wire, url)) => Way::to(name, None).with(*wire, url),
        None => Way::to(&listed.provider, None),
    };
    Way { models: listed.models, ..way }
}

/// Asks for a server's URL. `None` when the user leaves.
async fn by_url(home: &Home, config: &Config, printer: &Printer) -> Result<Option<Way>> {
    if config.providers.contains_key(OWN) {
        bail!("there is a provider `{OWN}` already; change it with `bailey config edit`");
    }
    loop {
        let url = ask_text(printer, "Its URL, such as https://models.example.com/v1:").await;
        let Some(url) = url.filter(|url| !url.is_empty()) else { return Ok(None) };
        let rows = ["It asks for a key", "It asks for no key"].map(String::from);
        let Some(at) = pick_one(printer, "The server", &rows).await else { return Ok(None) };
        let key = (at == 0).then(|| OWN_KEY.to_owned());
        if key.is_some() && !is_private(&url) {
            printer.warn("the URL is not encrypted: anybody on the way can read the key and every message");
        }
        let way = Way { url: Some(url.clone()), ..Way::to(OWN, key).with(Wire::OpenAiChat, &url) };
        match changed(home, &way.values()) {
            Ok(_) => return Ok(Some(way)),
            Err(error) => printer.error(&error),
        }
    }
}

/// Asks for the provider's key where it is missing, and asks the provider for its models. The key is stored
/// later, when the provider has accepted it or the user wants it all the same.
async fn opened(home: &Home, mut way: Way, printer: &Printer) -> Result<Opened> {
    let config = Config::load(home)?;
    let stored = Stores::new(home, &config).names()?;
    let is_there = |key: &String| is_in_environment(key) || stored.iter().any(|(known, _)| known == key);
    let mut is_wanted = way.key_env.as_ref().is_some_and(|key| !is_there(key));
    loop {
        if let Some(key) = way.key_env.as_ref().filter(|_| is_wanted) {
            let secret = match prompt::secret(key, "set it in the environment") {
                Ok(secret) => secret,
                Err(error) if error.is::<prompt::Interrupted>() => return Err(error),
                Err(_) => return Ok(Opened::Left),
            };
            if secret.expose().contains(char::is_control) {
                return Ok(Opened::Left);
            }
            if secret.expose().is_empty() {
                return Ok(Opened::Another);
            }
            way.secret = Some(secret);
        }
        let what = || format!("asking {} for its models", way.provider);
        let listed = printer.waiting(what, found(home, &[&way.provider], Some(&way))).await?;
        let listed = listed.into_iter().next().context("the provider was not asked")?;
        if listed.problem.is_empty() {
            way.models = listed.models;
            return Ok(Opened::Way(way));
        }
        printer.warn(&listed.problem);
        let mut rows = vec!["Ask again", "Name a model all the same", "Another provider"];
        // A variable of the environment is not for Bailey to change.
        if way.key_env.as_ref().is_some_and(|key| !is_in_environment(key)) {
            rows.push("Give another key");
        }
        let rows: Vec<String> = rows.into_iter().map(String::from).collect();
        match pick_one(printer, "What now?", &rows).await {
            Some(0) => is_wanted = false,
            Some(1) => return Ok(Opened::Way(way)),
            Some(2) => return Ok(Opened::Another),
            Some(_) => is_wanted = true,
            None => return Ok(Opened::Left),
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

/// The models of these providers, as a process of its own found them. It is told of what is not written yet.
async fn found(home: &Home, providers: &[&str], way: Option<&Way>) -> Result<Vec<Listed>> {
    let mut command = program::again();
    command.arg("--home").arg(&home.root).args(["--json", "init", "--look"]).arg(providers.join(","));
    if let Some(Way { url, key_env, secret, .. }) = way {
        command.args(url.iter().flat_map(|url| ["--url", url]));
        command.args(url.iter().zip(key_env).flat_map(|(_, key)| ["--key-env", key]));
        command.envs(key_env.iter().zip(secret).map(|(name, secret)| (name, secret.expose())));
    }
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
pub(super) async fn look(
    home: &Home,
    providers: &str,
    new: Option<(String, Option<String>)>,
    printer: &Printer,
) -> Result<()> {
    let mut config = Config::load(home)?;
    let names: Vec<String> = providers.split(',').map(str::to_owned).collect();
    let patience = if names.iter().all(|name| is_local(name)) { PATIENCE } else { models::PATIENCE };
    let local = LOCAL.iter().map(|(name, _, wire, url)| (*name, *wire, (*url).to_owned(), None));
    for (name, wire, base_url, key_env) in
        local.chain(new.map(|(url, key_env)| (OWN, Wire::OpenAiChat, url, key_env)))
    {
        config.providers.entry(name.to_owned()).or_insert_with(|| Provider {
            wire,
            base_url,
            key_env,
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
