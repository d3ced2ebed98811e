//! Talk with a chat channel's servers, or with a collector of telemetry.

use super::{Description, Destination, Portrait, Resource, Value};
use alloc::{borrow::Cow, borrow::ToOwned as _, format, string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// The method of a request that opens a WebSocket.
pub const WEBSOCKET: &str = "WEBSOCKET";

/// The way to a chat channel's servers, or to a collector of telemetry. Bailey does not keep the traffic:
/// messages of a channel stand in the sessions where they are said, and the data for a collector is made
/// from the journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Uplink {
    /// The channel's name in the configuration.
    pub channel: String,
    /// The `http` or `https` URL of its server; requests go to paths beneath it. This server gets the key.
    pub url: String,
    /// The name of the secret that the door puts in; empty when the server needs no secret.
    pub key: String,
    /// The header that holds the secret, when the secret belongs in a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The text before the secret in that header, such as `Bearer `.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The methods of the requests to `url`, in upper case; [`WEBSOCKET`] opens a WebSocket. Entries from
    /// before there was a choice have `POST`.
    #[serde(default = "post", skip_serializing_if = "is_post")]
    pub methods: Vec<String>,
    /// Further servers that requests may go to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<UplinkServer>,
}

/// A further server of an [`Uplink`], such as one that keeps files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UplinkServer {
    /// Its `http` or `https` URL. A WebSocket has the same: `wss` is `https`.
    pub url: String,
    /// The methods of the requests to it, in upper case.
    pub methods: Vec<String>,
    /// Whether the secret goes there, too.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub takes_key: bool,
}

impl Uplink {
    /// A way to one server, which takes `POST`. The secret stands in the path where the path has a place for
    /// it; otherwise the requests are signed with it.
    #[must_use]
    pub fn new(channel: &str, url: &str, key: &str) -> Self {
        Self {
            channel: channel.to_owned(),
            url: url.to_owned(),
            key: key.to_owned(),
            header: None,
            prefix: String::new(),
            methods: post(),
            also: Vec::new(),
        }
    }

    /// Every server, with its methods, and whether the secret goes there.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &[String], bool)> {
        let also = self.also.iter().map(|it| (it.url.as_str(), it.methods.as_slice(), it.takes_key));
        [(self.url.as_str(), self.methods.as_slice(), true)].into_iter().chain(also)
    }

    /// Each server is judged with each of its methods.
    pub(super) fn describe(&self) -> Description<'_> {
        let Self { channel, key, header, prefix, .. } = self;
        let names = channel.len() + key.len() + header.as_ref().map_or(0, String::len) + prefix.len();
        let mut about = Description { argument_bytes: names, ..Description::default() };
        for (url, methods, _) in self.servers() {
            about.argument_bytes += url.len() + methods.iter().map(String::len).sum::<usize>();
            // A server without a method is judged, too: it makes the action malformed.
            let named = methods.iter().map(String::as_str).chain(methods.is_empty().then_some(""));
            about.resources.extend(named.map(|method| {
                let method = Cow::Borrowed(method);
                // The holder of an open uplink may send anything over it.
                Resource::from(Destination { method, url, any_path: true, bytes: None, headers: &[] })
            }));
        }
        about
    }

    /// Each server, with its methods and the key that goes there.
    pub(super) fn portrait(&self) -> Portrait<'_> {
        let mut portrait = Portrait::new(format!("Open the channel {}", self.channel));
        for (url, methods, takes_key) in self.servers() {
            let key = (takes_key && !self.key.is_empty()).then_some(&*self.key);
            portrait = portrait.with_request(methods.join(", "), url).with_some("key", key);
        }
        portrait.with_some("header", self.header.as_deref())
    }

    /// The URLs.
    pub(super) fn values(&self) -> impl Iterator<Item = Value<'_>> {
        self.servers().map(|(url, ..)| Value::Word(url))
    }
}

fn post() -> Vec<String> {
    ["POST".to_owned()].into()
}

fn is_post(methods: &[String]) -> bool {
    methods == ["POST"]
}

#[cfg(test)]
mod tests {
    use super::{Uplink, UplinkServer};
    use crate::{Action, action::Resource};
    use alloc::{borrow::ToOwned as _, string::String, vec::Vec};

    /// The form of every journal from before there were more servers than one.
    const OLD: &str =
        r#"{"kind":"line","channel":"ci","url":"https://ci.example.org/x","key":"CI_KEY","header":"x-key"}"#;

    #[test]
    fn old_entries_are_read_and_written_as_they_were() {
        let action: Action = serde_json::from_str(OLD).unwrap();
        let way = Uplink::new("ci", "https://ci.example.org/x", "CI_KEY");
        assert_eq!(action, Action::Uplink(Uplink { header: Some("x-key".into()), ..way }));
        assert_eq!(serde_json::to_string(&action).unwrap(), OLD);
    }

    #[test]
    fn each_server_is_described_with_each_of_its_methods() {
        let servers = |action: &Action| -> Vec<String> {
            let about = action.describe();
            let host = |resource: &Resource<'_>| match resource {
                Resource::Host(to) => alloc::format!("{} {}", to.method, to.url),
                other => panic!("{other:?}"),
            };
            about.resources.iter().map(host).collect()
        };
        let way = Uplink::new("d", "https://api.example", "D_KEY");
        assert_eq!(servers(&Action::Uplink(way.clone())), ["POST https://api.example"]);
        let also = |url: &str, methods: &[&str]| UplinkServer {
            url: url.into(),
            methods: methods.iter().map(|it| (*it).to_owned()).collect(),
            takes_key: false,
        };
        let methods = ["POST", "PATCH"].map(str::to_owned).into();
        let also = [also("https://gateway.example", &["WEBSOCKET"]), also("https://cdn.example", &[])].into();
        let action = Action::Uplink(Uplink { methods, also, ..way });
        assert_eq!(
            servers(&action),
            [
                "POST https://api.example",
                "PATCH https://api.example",
                "WEBSOCKET https://gateway.example",
                " https://cdn.example"
            ]
        );
        let kept = serde_json::to_string(&action).unwrap();
        assert_eq!(serde_json::from_str::<Action>(&kept).unwrap(), action);
    }
}
