//! Where a model is served, and the codec for it.

use crate::{
    Wire, anthropic, decode::Reading, failure, form::Form, gemini, ollama, openai, responses, transcript,
    wire::word,
};
use bailey_kernel::{Context, Decoder, Encoded, Price, Provider};
use bailey_protocol::{Blob, HeaderValue, HttpRequest, ToolSpec};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// One model behind one URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The provider's name in the configuration, such as `anthropic`.
    pub provider: String,
    /// What it speaks.
    pub wire: Wire,
    /// Where it is: for Anthropic the part before `/v1/messages` and for Gemini that before `/v1beta/models`
    /// (both with or without the version), for Chat Completions the part before `/chat/completions`, for
    /// Responses that before `/responses`, for Ollama that before `/api/chat`.
    pub base_url: String,
    /// The model's name as the provider knows it.
    pub model: String,
    /// The name of the secret that holds the key; none for servers that ask for no key.
    pub key: Option<String>,
    /// The most tokens that one reply may have.
    pub max_tokens: u32,
    /// The most tokens that a request and its reply may have together; none where nobody knows.
    pub window_tokens: Option<u64>,
    /// What its tokens cost; empty where nobody knows.
    pub prices: Vec<Price>,
    /// Whether it takes pictures.
    pub takes_images: bool,
    /// Parameters of requests that the owner set: `false` leaves one out that Bailey would send, a text names
    /// the one that takes its place, and anything else is sent as it is.
    pub parameters: BTreeMap<String, Value>,
}

impl Endpoint {
    /// The URL that model calls go to.
    #[must_use]
    pub fn url(&self) -> String {
        let root = self.root();
        match self.wire {
            Wire::Anthropic => format!("{root}/v1/messages"),
            Wire::OpenAiChat => format!("{root}/chat/completions"),
            Wire::OpenAiResponses => format!("{root}/responses"),
            Wire::Gemini => {
                format!("{root}/v1beta/{}:streamGenerateContent?alt=sse", gemini::model_path(&self.model))
            }
            Wire::Ollama => format!("{root}/api/chat"),
        }
    }

    /// The URL at which the provider lists its models.
    #[must_use]
    pub fn models_url(&self) -> String {
        let root = self.root();
        match self.wire {
            Wire::Anthropic => format!("{root}/v1/models"),
            Wire::OpenAiChat | Wire::OpenAiResponses => format!("{root}/models"),
            Wire::Gemini => format!("{root}/v1beta/models"),
            Wire::Ollama => format!("{root}/api/tags"),
        }
    }

    fn root(&self) -> &str {
        let root = self.base_url.trim_end_matches('/');
        let version = match self.wire {
            Wire::Anthropic => "/v1",
            Wire::Gemini => "/v1beta",
            Wire::Ollama => "/api",
            Wire::OpenAiChat | Wire::OpenAiResponses => "",
        };
        root.strip_suffix(version).unwrap_or(root)
    }

    /// The request that lists the provider's models: what asks whether it is there and takes the key, and
    /// costs nothing.
    #[must_use]
    pub fn models_request(&self) -> HttpRequest {
        let (url, headers) = (self.models_url(), self.headers());
        HttpRequest { method: "GET".into(), url, headers, body: Blob(Vec::new()) }
    }

    /// The names of the models in the body of the answer to [`Endpoint::models_request`]; none where it is no
    /// such list.
    #[must_use]
    pub fn listed_models(&self, body: &[u8]) -> Option<Vec<String>> {
        let list: Value = serde_json::from_slice(body).ok()?;
        let (models, name) = match self.wire {
            Wire::Anthropic | Wire::OpenAiChat | Wire::OpenAiResponses => ("data", "id"),
            Wire::Gemini | Wire::Ollama => ("models", "name"),
        };
        let names = list.get(models)?.as_array()?.iter().map(|model| word(model, name));
        Some(names.map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned()).collect())
    }

    /// What an answer of another status than success means, for people: what, why, and how to fix it.
    #[must_use]
    pub fn refusal(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> String {
        failure::of_status(self, status, headers, body, &mut Form::default()).message
    }

    fn headers(&self) -> Vec<(String, HeaderValue)> {
        let text = |name: &str, value: &str| (name.to_owned(), HeaderValue::Text(value.into()));
        let mut headers = vec![
            text("content-type", "application/json"),
            text("accept", "text/event-stream, application/x-ndjson, application/json"),
            text("user-agent", concat!("bailey/", env!("CARGO_PKG_VERSION"))),
        ];
        let secret =
            |prefix: &str, key: &String| HeaderValue::Secret { name: key.clone(), prefix: prefix.into() };
        if self.wire == Wire::Anthropic {
            headers.push(text("anthropic-version", "2023-06-01"));
        }
        let (name, prefix) = match self.wire {
            Wire::Anthropic => ("x-api-key", ""),
            Wire::Gemini => ("x-goog-api-key", ""),
            Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Ollama => ("authorization", "Bearer "),
        };
        headers.extend(self.key.iter().map(|key| (name.to_owned(), secret(prefix, key))));
        headers
    }
}

/// The codec of one endpoint. Clones share the form that its server was seen to want.
#[derive(Debug, Clone)]
pub struct Codec {
    endpoint: Arc<Endpoint>,
    form: Arc<Mutex<Form>>,
}

/// The codec of this endpoint.
#[must_use]
pub fn provider(endpoint: Endpoint) -> Arc<Codec> {
    Arc::new(Codec { endpoint: Arc::new(endpoint), form: Arc::default() })
}

impl Codec {
    /// The endpoint that it speaks to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn form(&self) -> Form {
        self.form.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Provider for Codec {
    fn name(&self) -> &str {
        &self.endpoint.provider
    }

    fn model(&self) -> &str {
        &self.endpoint.model
    }

    fn window_tokens(&self) -> Option<u64> {
        [self.endpoint.window_tokens, self.form().window()].into_iter().flatten().min()
    }

    fn prices(&self) -> &[Price] {
        &self.endpoint.prices
    }

    fn takes_images(&self) -> bool {
        self.endpoint.takes_images
    }

    fn encode(&self, context: &Context, tools: &[ToolSpec]) -> Encoded {
        let form = self.form();
        let endpoint = form.bounded(&self.endpoint);
        let turns = transcript::turns(context, &endpoint, form.makes_ids());
        let instruction = context.instruction().text();
        let body = match endpoint.wire {
            Wire::Anthropic => anthropic::body,
            Wire::OpenAiChat => openai::body,
            Wire::OpenAiResponses => responses::body,
            Wire::Gemini => gemini::body,
            Wire::Ollama => ollama::body,
        };
        let mut body = body(&endpoint, instruction, &turns, tools);
        form.write(&endpoint, &mut body);
        let request = HttpRequest {
            method: "POST".into(),
            url: endpoint.url(),
            headers: endpoint.headers(),
            body: Blob(body.to_string().into_bytes()),
        };
        Encoded { request, writes: endpoint.max_tokens.into() }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reading::new(self.endpoint.clone(), self.form.clone()))
    }
}
