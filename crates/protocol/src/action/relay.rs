//! Let a request of a command inside the walls pass to a host.

use super::{Description, Destination, Portrait, authority};
use crate::number::decimal;
use alloc::{borrow::Cow, format, string::String};
use serde::{Deserialize, Serialize};

/// A request that a command inside the walls makes. Its headers and its body are the command's own: they
/// pass through, and Bailey does not keep them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Relay {
    /// The method in upper case.
    pub method: String,
    /// An absolute `http` or `https` URL.
    pub url: String,
    /// The length of its body that it declares, in bytes; `None` when it does not declare one.
    pub length: Option<u64>,
    /// The request's number among those that wait at the door, from 1.
    #[serde(with = "decimal")]
    pub number: u64,
    /// The name of the secret that the door puts in, if any. The command has a stand-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Relay {
    pub(super) fn describe(&self) -> Description<'_> {
        let Self { method, url, length, .. } = self;
        let to =
            Destination { method: Cow::Borrowed(method), url, any_path: false, bytes: *length, headers: &[] };
        Description {
            resources: [to.into()].into(),
            argument_bytes: method.len() + url.len(),
            ..Description::default()
        }
    }

    pub(super) fn portrait(&self) -> Portrait<'_> {
        let Self { method, url, length, key, .. } = self;
        Portrait::new(format!("Let a command's request pass: {method} {}", authority(url)))
            .with_request(&**method, url)
            .with_some("key", key.as_deref())
            .with_some("body", length.map(|length| format!("{length} bytes")))
    }
}
