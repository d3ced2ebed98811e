//! Talk with a chat channel's server, or with a collector of telemetry.

use super::{Description, Destination, Portrait};
use alloc::{borrow::Cow, format, string::String};
use serde::{Deserialize, Serialize};

/// The way to a chat channel's server, or to a collector of telemetry. Bailey does not keep the traffic:
/// messages of a channel stand in the sessions where they are said, and the data for a collector is made
/// from the journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// The channel's name in the configuration.
    pub channel: String,
    /// The URL of its server; requests go to paths beneath it.
    pub url: String,
    /// The name of the secret that the door puts in; empty when the server needs no secret.
    pub key: String,
    /// The header whose whole value is the secret, when the secret belongs in a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

impl Line {
    pub(super) fn describe(&self) -> Description<'_> {
        let Self { channel, url, key, header } = self;
        // The holder of an open line may send anything over it.
        let to =
            Destination { method: Cow::Borrowed("POST"), url, any_path: true, bytes: None, headers: &[] };
        Description {
            resources: [to.into()].into(),
            argument_bytes: channel.len() + url.len() + key.len() + header.as_ref().map_or(0, String::len),
            ..Description::default()
        }
    }
    pub(super) fn portrait(&self) -> Portrait<'_> {
        Portrait::new(format!("Open the channel {}", self.channel))
            .with_request("POST", &*self.url)
            .with("key", &*self.key)
            .with_some("header", self.header.as_deref())
    }
}
