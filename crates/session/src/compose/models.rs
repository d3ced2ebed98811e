//! The models of a session and the door to them.

use super::Keys;
use crate::{
    TurnOptions,
    config::{Config, Witness},
    home::Home,
};
use anyhow::{Context as _, Result, anyhow, bail};
use bailey_agent::{Models as ByRole, Retry, Route};
use bailey_egress::{Authority, Egress, ForwardConfig, ForwardProxy, Proxies, Uplink, UplinkEnd};
use bailey_journal::Journal;
use bailey_kernel::{Executor, Provider};
use bailey_llm::{Cassette, Catalogue, Endpoint, Normaliser, Player, Recorder, Recording};
use bailey_protocol::WsPath;
use std::{fs, io, path::Path, sync::Arc, time::Duration};

/// The models of a session by their roles, and the way to them.
pub(super) struct Models {
    pub(super) by_role: ByRole,
    pub(super) door: Arc<dyn Executor>,
    pub(super) retry: Retry,
}

/// Chooses the models, in this order: the flags, the model that the session had (when it is still usable),
/// the configuration, the first key that exists.
#[expect(clippy::too_many_arguments, reason = "all that a choice depends on; it is made in one place")]
pub(super) fn models(
    home: &Home,
    config: &Config,
    keys: &Keys,
    (options, before): (&TurnOptions, Option<&str>),
    recording: Option<Recording>,
    any_model: bool,
    workspace: &WsPath,
    journal: &Journal,
) -> Result<Models> {
    if let Some(file) = options.model.as_deref().and_then(Cassette::file) {
        return replay(config, file, workspace, journal);
    }
    let catalogue = catalogue(home)?;
    let before = before.filter(|model| usable(config, keys, &catalogue, model).is_ok());
    let name = match options.model.as_deref().or(before) {
        Some(name) => name.to_owned(),
        None => config.default_model(|key| keys.has(key))?,
    };
    if let Some(recording) = recording {
        let main = usable(config, keys, &catalogue, &name)?;
        // A cassette holds one conversation with one model.
        let door = Arc::new(door(config, keys, journal, std::slice::from_ref(&main))?);
        let redactor = keys.redactor.clone();
        let normaliser =
            Normaliser::new(&workspace.0).redacting(move |text| redactor.redact(text).text.into_owned());
        let door = Arc::new(Recorder::new(door, Cassette::new(&main), recording, normaliser));
        let by_role = ByRole::only(bailey_llm::provider(main));
        return Ok(Models { by_role, door, retry: Retry::default() });
    }
    let (by_role, mut endpoints) = routes(config, keys, &catalogue, &name)?;
    if any_model {
        let all = config.providers.keys().map(|provider| format!("{provider}/-"));
        endpoints.extend(all.filter_map(|model| usable(config, keys, &catalogue, &model).ok()));
    }
    let door = Arc::new(door(config, keys, journal, &endpoints)?);
    Ok(Models { by_role, door, retry: Retry::default() })
}

/// The models of a session that turns to the model `name`.
///
/// # Errors
/// When there is no such provider, or its key is not there.
pub fn by_role(home: &Home, config: &Config, keys: &Keys, name: &str) -> Result<ByRole> {
    Ok(routes(config, keys, &catalogue(home)?, name)?.0)
}

/// The models by their roles, with the main model of this name, and the endpoints that serve them.
fn routes(
    config: &Config,
    keys: &Keys,
    catalogue: &Catalogue,
    name: &str,
) -> Result<(ByRole, Vec<Endpoint>)> {
    let usable = |model: &str| usable(config, keys, catalogue, model);
    let main = usable(name)?;
    let of_key = |(key, model): (String, &str)| {
        usable(model).with_context(|| format!("`{key}`, from {}", config.origin(&key)))
    };
    let mut endpoints: Vec<Endpoint> = config.models.named().map(of_key).collect::<Result<_>>()?;
    endpoints.push(main);
    let provider = |model: &str| -> Result<Arc<dyn Provider>> { Ok(bailey_llm::provider(usable(model)?)) };
    let route = |model: &str| {
        let instead = config.models.fallback.iter().filter(|other| *other != model);
        let instead = instead.map(|model| provider(model)).collect::<Result<Vec<_>>>()?;
        anyhow::Ok(Route::new(provider(model)?, instead))
    };
    let mut by_role = ByRole::new(route(name)?);
    for (role, model) in config.models.roles() {
        by_role = by_role.with_role(role, route(model)?);
    }
    for (skill, model) in &config.models.skills {
        by_role = by_role.with_skill(skill, route(model)?);
    }
    Ok((by_role, endpoints))
}

/// The endpoint that serves `PROVIDER/MODEL`.
///
/// # Errors
/// When there is no such provider.
pub fn endpoint(config: &Config, catalogue: &Catalogue, model: &str) -> Result<Endpoint> {
    let (provider, found, model) = config.find(model)?;
    let url = found.base_url.as_str();
    let window_tokens = found.window_tokens.or_else(|| catalogue.window_tokens(url, model));
    // In a small window, the reply must leave room for the messages before it.
    let quarter = window_tokens.and_then(|tokens| u32::try_from(tokens / 4).ok());
    Ok(Endpoint {
        provider: provider.into(),
        wire: found.wire,
        base_url: url.into(),
        model: model.into(),
        key: found.key_env.clone(),
        max_tokens: config.reply_tokens.min(quarter.unwrap_or(u32::MAX)),
        window_tokens,
        prices: catalogue.prices(url, model),
        takes_images: catalogue.takes_images(url, model),
        parameters: found.parameters.clone(),
    })
}

/// The network door to these endpoints, with the configured time limits and the environment's proxies.
///
/// # Errors
/// When a URL is not valid, or a proxy is of a kind that cannot be used.
pub fn door(config: &Config, keys: &Keys, journal: &Journal, endpoints: &[Endpoint]) -> Result<Egress> {
    let allowed = endpoints.iter().map(|endpoint| {
        let provider = config.providers.get(&endpoint.provider);
        let own = provider.and_then(|provider| provider.first_byte_seconds);
        let seconds = own.or(config.network.first_byte_seconds);
        let seconds = seconds.unwrap_or_else(|| crate::config::first_byte_seconds(&endpoint.base_url));
        bailey_egress::Endpoint {
            url: endpoint.url(),
            secrets: endpoint.key.iter().cloned().collect(),
            first_byte_timeout: Some(Duration::from_secs(seconds)),
        }
    });
    // A recording does not reach the witness: it plays only the words of a model.
    let witness = config.witness.as_ref().filter(|witness| matches!(witness, Witness::Url(_)));
    let witness = witness.map(|witness| bailey_egress::Endpoint {
        url: witness.to_string(),
        secrets: Vec::new(),
        first_byte_timeout: None,
    });
    let network = &config.network;
    let door = bailey_egress::Config {
        endpoints: allowed.chain(witness).collect(),
        proxies: Proxies::of(|name| std::env::var(name).ok()),
        connect_timeout: Duration::from_secs(network.connect_seconds),
        idle_timeout: Duration::from_secs(network.idle_seconds),
        ..bailey_egress::Config::default()
    };
    Ok(Egress::new(door, keys.vault.clone(), journal.seal())?)
}

/// A line to one server, and its end that takes requests. An answer has at most `answer_bytes_max` bytes.
///
/// # Errors
/// When the line's URL is not valid.
pub(super) fn uplink(
    config: &Config,
    way: &bailey_protocol::Uplink,
    keys: &Keys,
    journal: &Journal,
    answer_bytes_max: usize,
) -> Result<(Arc<dyn Executor>, UplinkEnd)> {
    let door = bailey_egress::Config {
        proxies: Proxies::of(|name| std::env::var(name).ok()),
        connect_timeout: Duration::from_secs(config.network.connect_seconds),
        body_bytes_max: answer_bytes_max,
        ..bailey_egress::Config::default()
    };
    let (uplink, end) = Uplink::new(way.clone(), &door, keys.vault.clone(), journal.seal())?;
    Ok((uplink, end))
}

/// The door of commands.
///
/// # Errors
/// When a private place is not a URL.
pub(super) fn forward(
    config: &Config,
    authority: Authority,
    keys: &Keys,
    journal: &Journal,
) -> Result<Arc<ForwardProxy>> {
    let network = &config.network;
    let door = ForwardConfig {
        private: network.private.clone(),
        proxies: Proxies::of(|name| std::env::var(name).ok()),
        extra_authorities: None,
        connect_timeout: Duration::from_secs(network.connect_seconds),
        idle_timeout: Duration::from_secs(network.idle_seconds),
        requests_max: network.requests,
        keys: network.keys.clone(),
        tunnels: network.tunnels.clone(),
        limits: network.limits.clone(),
    };
    Ok(Arc::new(ForwardProxy::new(door, authority, keys.vault.clone(), journal.seal())?))
}

/// The catalogue of models, with the human's own `models.toml` first.
///
/// # Errors
/// When that file cannot be read.
pub fn catalogue(home: &Home) -> Result<Catalogue> {
    let path = home.catalogue();
    let own = match fs::read_to_string(&path) {
        Ok(own) => Some(own),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(anyhow!(error).context(format!("cannot read `{}`", path.display()))),
    };
    Catalogue::with(own.as_deref()).with_context(|| format!("`{}`", path.display()))
}

/// The endpoint of a model, when its key exists.
fn usable(config: &Config, keys: &Keys, catalogue: &Catalogue, model: &str) -> Result<Endpoint> {
    let endpoint = endpoint(config, catalogue, model)?;
    if let Some(key) = endpoint.key.as_deref().filter(|key| !keys.has(key)) {
        bail!(
            "provider `{}` needs a key: set {key} in the environment or in Bailey's own .env",
            endpoint.provider
        );
    }
    Ok(endpoint)
}

/// A recording in place of a model. It plays the model's words; everything else really happens.
fn replay(config: &Config, file: &Path, workspace: &WsPath, journal: &Journal) -> Result<Models> {
    let bytes = fs::read(file).with_context(|| format!("cannot read the recording `{}`", file.display()))?;
    let cassette = Cassette::parse(&bytes).with_context(|| format!("`{}`", file.display()))?;
    let endpoint = Endpoint {
        provider: cassette.provider.clone(),
        wire: cassette.wire,
        base_url: "http://recorded.invalid".into(),
        model: cassette.model.clone(),
        key: None,
        max_tokens: config.reply_tokens,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    };
    let door = Arc::new(Player::new(cassette, Normaliser::new(&workspace.0), journal.seal()));
    let retry = Retry { attempts: 1, ..Retry::default() };
    Ok(Models { by_role: ByRole::only(bailey_llm::provider(endpoint)), door, retry })
}
