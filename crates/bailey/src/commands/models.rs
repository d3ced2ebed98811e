//! `bailey models`: which models are configured, by whom, and whether their providers answer.

use crate::{
    cli,
    compose::{self, Keys},
    config::{Config, Origin, Provider},
    exit,
    front::one_line,
    home::Home,
    print::{Printer, Style, fold},
};
use anyhow::Result;
use bailey_kernel::{Acted, Kernel, Scope};
use bailey_llm::{Catalogue, Endpoint};
use bailey_protocol::{Action, Report, Status};
use serde::Serialize;
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// How long a provider may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Who has less time than this is asked a second time.
const LITTLE: Duration = Duration::from_secs(1);

/// A column that is narrower than this is not folded, in cells.
const NARROWEST: usize = 20;

/// A provider, and what became of asking it.
#[derive(Debug, Serialize)]
struct ModelLine {
    provider: String,
    wire: &'static str,
    base_url: String,
    origin: String,
    /// The variable that holds the key; none for servers that ask for none.
    key_env: Option<String>,
    key_present: bool,
    /// None when nobody asked.
    reachable: Option<bool>,
    /// What is wrong and how to fix it; empty where nothing is.
    problem: String,
    /// The models that it lists.
    models: Vec<String>,
    /// The models of it that Bailey has prices or windows of, without asking.
    known: Vec<String>,
}

impl ModelLine {
    /// Takes the models that it lists; a server may have no list, but what is none is no provider's answer.
    fn take(&mut self, endpoint: &Endpoint, list: Option<&[u8]>) {
        let Some(list) = list else { return };
        match endpoint.listed_models(list) {
            Some(models) => self.models = models,
            None => {
                self.problem = format!(
                    "`{}` answers, but not with a list of models; check `base_url` and `wire` in config.toml",
                    endpoint.base_url
                );
            }
        }
    }
}

/// What a model is used for.
#[derive(Debug, Serialize)]
struct Use {
    #[serde(rename = "use")]
    used_for: String,
    model: String,
    origin: String,
    window_tokens: Option<u64>,
    price_known: bool,
    problem: String,
}

pub(super) async fn run(home: &Home, command: cli::Models, printer: &Printer) -> Result<ExitCode> {
    let mut config = Config::load(home)?;
    if let Ok((root, _)) = crate::project::find(None, home) {
        printer.notes(config.narrow(home, &root)?);
    }
    let keys = Keys::load(home, &config, printer)?;
    let catalogue = compose::catalogue(home)?;
    if let Some(provider) = &command.provider {
        config.find(&format!("{provider}/-"))?;
    }
    let mut shown: Vec<ModelLine> =
        config.providers.iter().map(|(name, provider)| configured(&config, &keys, name, provider)).collect();
    for (shown, provider) in shown.iter_mut().zip(config.providers.values()) {
        shown.known = catalogue.names(&provider.base_url).into_iter().map(str::to_owned).collect();
    }
    if !command.offline {
        ask_all(home, &config, keys.clone(), &catalogue, &mut shown, printer).await?;
    }
    let uses = uses(&config, &keys, &catalogue, &shown);
    if printer.is_json() {
        printer.json(&serde_json::json!({ "uses": uses, "providers": shown }));
    } else {
        show_uses(printer, &uses);
        show_providers(printer, &shown, command.provider.as_deref());
    }
    let all_well = !uses.is_empty() && uses.iter().all(|used| used.problem.is_empty());
    Ok(ExitCode::from(if all_well { exit::DONE } else { exit::MODEL }))
}

fn configured(config: &Config, keys: &Keys, name: &str, provider: &Provider) -> ModelLine {
    let key_present = provider.key_env.as_deref().is_none_or(|key| keys.has(key));
    let problem = match &provider.key_env {
        Some(key) if !key_present => format!("no key: set {key} in the environment or in Bailey's own .env"),
        _ => String::new(),
    };
    ModelLine {
        provider: name.into(),
        wire: provider.wire.setting(),
        base_url: provider.base_url.clone(),
        origin: config.origin(&format!("providers.{name}.base_url")).to_string(),
        key_env: provider.key_env.clone(),
        key_present,
        reachable: None,
        problem,
        models: Vec::new(),
        known: Vec::new(),
    }
}

/// Asks every provider whose key is there, all at once. Each question is an effect like any other: decided
/// and journalled.
async fn ask_all(
    home: &Home,
    config: &Config,
    keys: Keys,
    catalogue: &Catalogue,
    shown: &mut [ModelLine],
    printer: &Printer,
) -> Result<()> {
    let endpoint = |shown: &ModelLine| compose::endpoint(config, catalogue, &format!("{}/-", shown.provider));
    let endpoints: Vec<Endpoint> = shown.iter().map(endpoint).collect::<Result<_>>()?;
    let (kernel, scope, _events, _guest) = compose::owner(home, config, keys, &endpoints).await?;
    let (mut asked, mut open) = (Vec::new(), Vec::new());
    for (shown, endpoint) in shown.iter_mut().zip(endpoints) {
        if shown.key_present {
            let (kernel, scope, about) = (kernel.clone(), scope.clone(), endpoint.clone());
            let answer = tokio::spawn(async move { ask(&kernel, &scope, &about, PATIENCE).await });
            open.push((shown.provider.clone(), answer.abort_handle()));
            asked.push((shown, endpoint, answer));
        }
    }
    let waits_for = || {
        let names = open.iter().filter(|(_, answer)| !answer.is_finished()).map(|(name, _)| name.as_str());
        format!("asking {}", names.collect::<Vec<_>>().join(", "))
    };
    let answers = async {
        for (shown, endpoint, answer) in asked {
            match answer.await? {
                Ok(body) => {
                    shown.reachable = Some(true);
                    shown.take(&endpoint, body.as_deref());
                }
                Err((reachable, problem)) => {
                    shown.reachable = Some(reachable);
                    shown.problem = problem;
                }
            }
        }
        Ok(())
    };
    printer.waiting(waits_for, answers).await
}

/// The models that these providers list, or the fault of each, after at most `patience`. All are asked
/// at once.
pub(super) async fn listed(
    home: &Home,
    config: &Config,
    keys: Keys,
    providers: &[String],
    patience: Duration,
) -> Result<Vec<Result<Vec<String>, String>>> {
    let catalogue = compose::catalogue(home)?;
    let endpoint = |name: &String| compose::endpoint(config, &catalogue, &format!("{name}/-"));
    let endpoints: Vec<Endpoint> = providers.iter().map(endpoint).collect::<Result<_>>()?;
    let (kernel, scope, _events, _guest) = compose::owner(home, config, keys, &endpoints).await?;
    let asked: Vec<_> = endpoints
        .into_iter()
        .map(|endpoint| {
            let (kernel, scope) = (kernel.clone(), scope.clone());
            tokio::spawn(async move {
                let begun = Instant::now();
                let mut list = ask(&kernel, &scope, &endpoint, patience).await;
                // The first request of a home waits for the journal, too, and may be late by that.
                if list.is_err() && patience < LITTLE && begun.elapsed() >= patience {
                    list = ask(&kernel, &scope, &endpoint, patience).await;
                }
                let list = list.map_err(|(_, problem)| problem)?;
                let models = list.as_deref().map(|list| endpoint.listed_models(list));
                // A server of one model may have no list.
                models.unwrap_or(Some(Vec::new())).ok_or_else(|| "it answers, but lists no models".to_owned())
            })
        })
        .collect();
    let mut all = Vec::new();
    for answer in asked {
        all.push(answer.await?);
    }
    Ok(all)
}

/// The list of models where the server has one, or whether somebody answered at all and what is wrong.
async fn ask(
    kernel: &Kernel,
    scope: &Scope,
    endpoint: &Endpoint,
    patience: Duration,
) -> Result<Option<Vec<u8>>, (bool, String)> {
    let action = Action::Model {
        provider: endpoint.provider.clone(),
        model: "(list)".into(),
        request: endpoint.models_request(),
    };
    let acted = tokio::time::timeout(patience, kernel.act(scope, action, &[])).await;
    let seconds = patience.as_secs_f64();
    let Ok(acted) = acted else {
        let url = &endpoint.base_url;
        return Err((
            false,
            format!("`{url}` did not answer in {seconds} s; check the network, and `base_url`"),
        ));
    };
    let output = match acted {
        Ok(Acted::Done(output)) => output,
        Ok(Acted::Denied(reasons)) => {
            return Err((false, format!("denied by a rule: {}", reasons.join("; "))));
        }
        Ok(Acted::Waiting(_)) => return Err((false, "a rule requires that a person is asked first".into())),
        Err(error) => return Err((false, error.to_string())),
    };
    match (&output.outcome().status, output.report()) {
        (Status::Done, Report::Http(answer)) if (200..300).contains(&answer.status) => {
            Ok(Some(answer.body.0.clone()))
        }
        // A server of one model may have no list.
        (Status::Done, Report::Http(answer)) if matches!(answer.status, 404 | 405 | 501) => Ok(None),
        (Status::Done, Report::Http(answer)) => {
            Err((true, endpoint.refusal(answer.status, &answer.headers, &answer.body.0)))
        }
        (Status::Failed { reason }, _) => Err((false, reason.clone())),
        _ => Err((false, "the request did not end".into())),
    }
}

/// What each model is used for; empty when none is configured and no key is there.
fn uses(config: &Config, keys: &Keys, catalogue: &Catalogue, shown: &[ModelLine]) -> Vec<Use> {
    let used = |used_for: String, model: &str, origin: String| {
        let endpoint = compose::endpoint(config, catalogue, model);
        let provider = model.split_once('/').map_or(model, |(provider, _)| provider);
        let at = shown.iter().find(|shown| shown.provider == provider);
        let name = model.split_once('/').map_or("", |(_, name)| name);
        let problem = match (&endpoint, at) {
            (Err(error), _) => format!("{error:#}"),
            (_, Some(at)) if !at.problem.is_empty() => at.problem.clone(),
            (Ok(endpoint), Some(at)) if !at.models.is_empty() && !lists(at, name) => format!(
                "`{}` lists no model `{name}`; `bailey models {provider}` shows those that it lists",
                endpoint.provider
            ),
            _ => String::new(),
        };
        let known = endpoint.ok();
        Use {
            used_for,
            model: model.into(),
            origin,
            window_tokens: known.as_ref().and_then(|endpoint| endpoint.window_tokens),
            price_known: known.is_some_and(|endpoint| !endpoint.prices.is_empty()),
            problem,
        }
    };
    let mut uses = Vec::new();
    if let Ok(model) = config.default_model(|key| keys.has(key)) {
        let origin = match &config.model {
            Some(_) => config.origin("model").to_string(),
            None => "the first key that is there".into(),
        };
        uses.push(used("default".into(), &model, origin));
    }
    for (key, model) in config.models.named() {
        let used_for = key.strip_prefix("models.").unwrap_or(&key).to_owned();
        uses.push(used(used_for, model, config.origin(&key).to_string()));
    }
    uses
}

/// Whether a provider lists this model; Ollama names the newest of a kind `:latest`.
fn lists(shown: &ModelLine, model: &str) -> bool {
    shown.models.iter().any(|listed| listed == model || listed.strip_suffix(":latest") == Some(model))
}

fn show_uses(printer: &Printer, uses: &[Use]) {
    if uses.is_empty() {
        printer.line(printer.paint(
            Style::Yellow,
            "No model: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or name one in config.toml, such as \
             model = \"ollama/qwen3-coder\"",
        ));
    }
    let width = uses.iter().map(|used| used.used_for.len()).max().unwrap_or_default();
    for used in uses {
        let window = used.window_tokens.map_or("window unknown".into(), |tokens| format!("{tokens} tokens"));
        let price = if used.price_known { "price known" } else { "price unknown (models.toml can set it)" };
        let from = if used.origin == Origin::Default.to_string() { "built in" } else { &used.origin };
        printer.line(format!(
            "{}{:pad$}  {}  {}",
            printer.paint(Style::Bold, &used.used_for),
            "",
            printer.paint(Style::Plain, &used.model),
            printer.paint(Style::Dim, &format!("{window}, {price}; {from}")),
            pad = width - used.used_for.len(),
        ));
        if !used.problem.is_empty() {
            let problem = folded(printer, Style::Red, &used.problem, width + 2);
            printer.line(format!("{:width$}  {problem}", ""));
        }
    }
}

fn show_providers(printer: &Printer, shown: &[ModelLine], listed: Option<&str>) {
    printer.line("");
    let width = shown.iter().map(|shown| shown.provider.len()).max().unwrap_or_default();
    for shown in shown {
        let (word, style) = match (shown.reachable, shown.key_present, shown.problem.is_empty()) {
            (_, false, _) => ("no key", Style::Dim),
            (None, true, _) => ("not asked", Style::Dim),
            (Some(true), true, true) => ("ready", Style::Green),
            (Some(true), true, false) => ("unusable", Style::Red),
            (Some(false), true, _) => ("not reached", Style::Red),
        };
        let key = match &shown.key_env {
            Some(key) if shown.key_present => format!("key in {key}"),
            Some(key) => format!("needs {key}"),
            None => "no key needed".into(),
        };
        let from = if shown.origin == Origin::Default.to_string() { "built in" } else { &shown.origin };
        let about = format!("{}, {}, {key}; {from}", shown.base_url, shown.wire);
        let about = folded(printer, Style::Dim, &about, width + 2 + "not reached".len() + 2);
        printer.line(format!(
            "{}{:pad$}  {}{:state$}  {}",
            printer.paint(Style::Bold, &shown.provider),
            "",
            printer.paint(style, word),
            "",
            about,
            pad = width - shown.provider.len(),
            state = "not reached".len() - word.len(),
        ));
        if shown.key_present && !shown.problem.is_empty() {
            let problem = folded(printer, Style::Yellow, &shown.problem, width + 2);
            printer.line(format!("{:width$}  {problem}", ""));
        }
        if listed == Some(shown.provider.as_str()) {
            for model in &shown.models {
                printer.line(printer.paint(Style::Plain, &format!("{:width$}    {model}", "")));
            }
        }
    }
}

/// Text for a column that begins there: on a terminal folded to its width, in a pipe on one line.
fn folded(printer: &Printer, style: Style, text: &str, indent: usize) -> String {
    let text = one_line(text);
    let text = match printer.columns() {
        Some(columns) if columns > indent + NARROWEST => fold(&text, columns - indent, indent),
        _ => text,
    };
    printer.paint_lines(style, &text).join("\n")
}
