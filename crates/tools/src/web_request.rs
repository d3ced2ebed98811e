//! `web.request`: a request of another method, with headers and a body.

use crate::{
    aliases,
    typed::{PerformedCall, Typed},
    web,
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Action, Blob, HeaderValue, HttpRequest, Kind, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// The most bytes of a body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Sends a request.
pub(crate) struct WebRequest;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    method: String,
    url: String,
    headers: Option<BTreeMap<String, String>>,
    body: Option<String>,
}

impl Typed for WebRequest {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Http]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "web.request".into(),
            aliases: aliases::names("web.request"),
            summary: "Send a request to a server: POST, PUT and others.".into(),
            description: "For what web.fetch cannot do. The human sees method, address, headers and body first. Keys are not \
                          for this: a command with `network` finds stand-ins for them. A redirect is told and not followed."
                .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "method": {"type": "string", "description": "In upper case, such as POST."},
                    "url": {"type": "string", "description": "Absolute, `https://` or `http://`."},
                    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                    "body": {"type": "string"}
                },
                "required": ["method", "url"]
            }),
        }
    }

    fn claims(&self, _args: &Args) -> Claims {
        Claims::default()
    }

    fn plan(&self, args: &Args, _seen: &[Output]) -> Result<Plan, String> {
        web::check(&args.url)?;
        let body = args.body.clone().unwrap_or_default();
        if body.len() > BODY_BYTES_MAX {
            return Err(format!("the body has {} bytes: {BODY_BYTES_MAX} at most", body.len()));
        }
        let headers = args.headers.iter().flatten();
        let headers =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), HeaderValue::Text(value.clone())));
        let request = HttpRequest {
            method: args.method.clone(),
            url: args.url.clone(),
            headers: headers.collect(),
            body: Blob(body.into_bytes()),
        };
        Ok(Plan::Act(Action::Fetch { request, raw: false }))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        web::conclude(&done.args.url, done.outcome, 0)
    }
}
