//! Send an HTTP request: to a model, to a page of the web, to any other host.

use super::{Description, Destination, Portrait, Value};
use crate::Blob;
use alloc::{borrow::Cow, format, string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// An HTTP request, except that secrets in its headers are names; the network door puts the values in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HttpRequest {
    /// The method in upper case.
    pub method: String,
    /// An absolute `http` or `https` URL.
    pub url: String,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, HeaderValue)>,
    /// The body.
    pub body: Blob,
}

/// Host and port of a URL as they are written, without a user.
#[must_use]
pub fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderValue {
    /// Sent as it is.
    Text(String),
    /// `prefix` followed by the value of the secret of this name.
    Secret {
        /// The secret's name, such as `ANTHROPIC_API_KEY`.
        name: String,
        /// The text before the secret, such as `Bearer `.
        prefix: String,
    },
}

impl HttpRequest {
    pub(super) fn describe(&self) -> Description<'_> {
        let bytes = self.body.0.len();
        let to = Destination {
            method: Cow::Borrowed(&self.method),
            url: &self.url,
            any_path: false,
            bytes: u64::try_from(bytes).ok(),
            headers: &self.headers,
        };
        Description {
            resources: [to.into()].into(),
            argument_bytes: self.head_bytes(),
            content_bytes: bytes,
            ..Description::default()
        }
    }

    /// A request to a model.
    pub(super) fn describe_model<'a>(&'a self, provider: &str, model: &str) -> Description<'a> {
        let argument_bytes = provider.len() + model.len() + self.head_bytes();
        Description { argument_bytes, ..self.describe() }
    }

    /// A request to a model, for a person. Its body is the conversation.
    pub(super) fn portrait_model(&self, provider: &str, model: &str) -> Portrait<'_> {
        Portrait::new(format!("Ask the model {provider}/{model}"))
            .with("model", format!("{provider}/{model}"))
            .with_request(&*self.method, &self.url)
            .with("body", format!("{} bytes", self.body.0.len()))
    }

    /// The URL, the body and the headers; a secret has no origin.
    pub(super) fn values(&self) -> impl Iterator<Item = Value<'_>> {
        let headers = self.headers.iter().filter_map(|(_, value)| match value {
            HeaderValue::Text(text) => Some(Value::Word(text)),
            HeaderValue::Secret { .. } => None,
        });
        [Value::Word(&self.url), Value::Content(&self.body)].into_iter().chain(headers)
    }

    /// The bytes of method, URL and headers.
    fn head_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| match value {
            HeaderValue::Text(text) => name.len() + text.len(),
            HeaderValue::Secret { name: secret, prefix } => name.len() + secret.len() + prefix.len(),
        });
        self.method.len() + self.url.len() + headers.sum::<usize>()
    }
}
