//! The traffic through the network door: limits, `[[network.limit]]`, and servers that commands speak with
//! while nothing inspects the traffic, `network.tunnels`.

use super::{ConfigError, document::Document, models};
use bailey_egress::{BoundKey, HostLimit, is_same_server};
use bailey_policy::{HostGlob, unit};
use serde::{Deserialize, Serialize};

/// The key of the limits' tables.
const LIMIT: &str = "network.limit";
const TUNNELS: &str = "network.tunnels";
/// The most limits that there may be.
const LIMITS_MAX: usize = 64;

/// How much may pass to and from each host that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    host: String,
    /// Sizes such as `10 MiB`.
    sent: Option<String>,
    received: Option<String>,
    per_minute: Option<u32>,
}

/// Turns the limits into the form that the network door takes.
pub(super) fn limits(document: &Document, limits: &[Limit]) -> Result<Vec<HostLimit>, ConfigError> {
    if limits.len() > LIMITS_MAX {
        let message = format!("there are {} limits, and {LIMITS_MAX} at most", limits.len());
        return Err(document.mistake(LIMIT, message));
    }
    let read =
        |(place, limit): (usize, &Limit)| limit.read().map_err(|why| document.mistake_in(LIMIT, place, why));
    limits.iter().enumerate().map(read).collect()
}

/// Checks the tunnels. A tunnel leads to a server over TLS or with a protocol of its own, and no key is bound
/// there.
pub(super) fn check_tunnels(
    document: &Document,
    tunnels: &[String],
    keys: &[BoundKey],
) -> Result<(), ConfigError> {
    for (place, url) in tunnels.iter().enumerate() {
        let mistake = |why: String| Err(document.mistake_in(TUNNELS, place, why));
        if let Err(why) = models::is_place(url) {
            return mistake(format!("`{url}` is no place such as `https://db.example.com:5432`: {why}"));
        }
        if !url.starts_with("https://") {
            return mistake(format!(
                "`{url}`: a tunnel is written `https://HOST:PORT`, whatever is spoken there"
            ));
        }
        if keys.iter().any(|key| is_same_server(&key.at, url)) {
            return mistake(format!("`{url}`: nobody looks into a tunnel, so no key can be put in there"));
        }
    }
    Ok(())
}

impl Limit {
    fn read(&self) -> Result<HostLimit, String> {
        let host = HostGlob::new(&self.host).map_err(|error| error.to_string())?;
        let size = |text: &Option<String>| {
            text.as_deref().map(unit::size).transpose().map_err(|error| format!("`{}`: {error}", self.host))
        };
        let (sent, received) = (size(&self.sent)?, size(&self.received)?);
        if sent.is_none() && received.is_none() && self.per_minute.is_none() {
            return Err(format!("`{}`: write `sent`, `received` or `per_minute`", self.host));
        }
        if self.per_minute == Some(0) {
            return Err(format!(
                "`{}`: with `per_minute = 0` no request would ever be let pass: write 1 or more, or deny the host by a rule",
                self.host
            ));
        }
        Ok(HostLimit { host, sent, received, per_minute: self.per_minute })
    }
}
