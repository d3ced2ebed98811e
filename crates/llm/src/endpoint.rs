//! Where a model is served, and the codec for it.

use crate::{Wire, anthropic, decode::Reading, estimate, openai, transcript};
use bailey_kernel::{Context, Decoder, Encoded, Provider};
use bailey_protocol::{Blob, Cost, HeaderValue, HttpRequest, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

/// One model behind one URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The provider's name in the configuration, such as `anthropic`.
    pub provider: String,
    /// What it speaks.
    pub wire: Wire,
    /// Where it is: for Anthropic the part before `/v1/messages` (with or without `/v1`), for Chat Completions the
    /// part before `/chat/completions`.
    pub base_url: String,
    /// The model's name as the provider knows it.
    pub model: String,
    /// The name of the secret that holds the key; none for servers that ask for no key.
    pub key: Option<String>,
    /// The most tokens that one reply may have.
    pub max_tokens: u32,
}

impl Endpoint {
    /// The URL that model calls go to.
    #[must_use]
    pub fn url(&self) -> String {
        match self.wire {
            Wire::Anthropic => format!("{}/v1/messages", self.root()),
            Wire::OpenAiChat => format!("{}/chat/completions", self.root()),
        }
    }

    /// The URL at which the provider lists its models.
    #[must_use]
    pub fn models_url(&self) -> String {
        match self.wire {
            Wire::Anthropic => format!("{}/v1/models", self.root()),
            Wire::OpenAiChat => format!("{}/models", self.root()),
        }
    }

    fn root(&self) -> &str {
        let root = self.base_url.trim_end_matches('/');
        match self.wire {
            Wire::Anthropic => root.strip_suffix("/v1").unwrap_or(root),
            Wire::OpenAiChat => root,
        }
    }

    fn headers(&self) -> Vec<(String, HeaderValue)> {
        let text = |name: &str, value: &str| (name.to_owned(), HeaderValue::Text(value.into()));
        let mut headers = vec![
            text("content-type", "application/json"),
            text("accept", "text/event-stream, application/json"),
            text("user-agent", concat!("bailey/", env!("CARGO_PKG_VERSION"))),
        ];
        let secret =
            |prefix: &str, key: &String| HeaderValue::Secret { name: key.clone(), prefix: prefix.into() };
        match self.wire {
            Wire::Anthropic => {
                headers.push(text("anthropic-version", "2023-06-01"));
                headers.extend(self.key.iter().map(|key| ("x-api-key".into(), secret("", key))));
            }
            Wire::OpenAiChat => {
                headers.extend(self.key.iter().map(|key| ("authorization".into(), secret("Bearer ", key))));
            }
        }
        headers
    }
}

/// The codec of one endpoint.
#[derive(Debug, Clone)]
pub struct Codec {
    endpoint: Arc<Endpoint>,
}

/// The codec of this endpoint.
#[must_use]
pub fn provider(endpoint: Endpoint) -> Arc<Codec> {
    Arc::new(Codec { endpoint: Arc::new(endpoint) })
}

impl Codec {
    /// The endpoint that it speaks to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn request(&self, body: &Value) -> Encoded {
        let body = body.to_string().into_bytes();
        let tokens = estimate::tokens(body.len()).saturating_add(self.endpoint.max_tokens.into());
        let request = HttpRequest {
            method: "POST".into(),
            url: self.endpoint.url(),
            headers: self.endpoint.headers(),
            body: Blob(body),
        };
        Encoded { request, cost: Cost { tokens } }
    }
}

impl Provider for Codec {
    fn name(&self) -> &str {
        &self.endpoint.provider
    }

    fn model(&self) -> &str {
        &self.endpoint.model
    }

    fn encode(&self, context: &Context, tools: &[ToolSpec]) -> Encoded {
        let turns = transcript::turns(context, self.name(), self.endpoint.wire);
        let instruction = context.instruction().text();
        let body = match self.endpoint.wire {
            Wire::Anthropic => anthropic::body(&self.endpoint, instruction, &turns, tools),
            Wire::OpenAiChat => openai::body(&self.endpoint, instruction, &turns, tools),
        };
        self.request(&body)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reading::new(self.endpoint.clone()))
    }
}
