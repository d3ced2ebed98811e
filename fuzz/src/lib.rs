//! Fuzz targets for every parser of foreign bytes. A target is a function of bytes that must return, whatever
//! they are; where the parser promises more than that, the target checks it.
//!
//! `cargo xtask fuzz` builds them with coverage counters, hands each the seeds in `seeds/NAME` and what it
//! found before in `corpus/NAME`, and tells what came of it. [`PLANTED`] is the harness's own control: a bug
//! put there on purpose, which has to be found before any other result counts.

#![forbid(unsafe_code)]

mod approvals;
mod channels;
mod journal;
mod redactor;
mod secrets;
mod settings;
mod streams;
mod tools;
mod torn;

use bailey_llm::Wire;

/// One parser, or one chain of them.
#[derive(Debug)]
pub struct Target {
    /// What `--target` calls it, and the name of its seeds' folder.
    pub name: &'static str,
    /// Takes any bytes; panics where a promise is broken.
    pub run: fn(&[u8]),
}

/// The bug that was put there on purpose.
pub const PLANTED: Target = target("planted", secrets::planted);

/// All targets but [`PLANTED`].
pub const TARGETS: &[Target] = &[
    target("config", |data| text(data, bailey::fuzz::configuration)),
    target("project-config", |data| text(data, bailey::fuzz::project_settings)),
    target("models", |data| text(data, settings::catalogue)),
    target("rules-toml", |data| text(data, settings::rules_in_toml)),
    target("rules-yaml", |data| text(data, settings::rules_in_yaml)),
    target("stream-anthropic", |data| streams::read(Wire::Anthropic, data)),
    target("stream-openai", |data| streams::read(Wire::OpenAiChat, data)),
    target("stream-responses", |data| streams::read(Wire::OpenAiResponses, data)),
    target("stream-gemini", |data| streams::read(Wire::Gemini, data)),
    target("stream-ollama", |data| streams::read(Wire::Ollama, data)),
    target("cassette", streams::cassette),
    target("patch", |data| text(data, tools::patch)),
    target("edit", |data| text(data, tools::edit)),
    target("arguments", |data| text(data, tools::arguments)),
    target("dotenv", |data| text(data, secrets::dotenv)),
    target("sealed", |data| text(data, secrets::sealed)),
    target("screen", secrets::screen),
    target("redactor", redactor::redactor),
    target("order", bailey_sandbox::fuzz::order),
    target("reply", bailey_sandbox::fuzz::reply),
    target("program", bailey_peers::fuzz::program),
    target("mcp", bailey_mcp::fuzz::server),
    target("proof", journal::proof),
    target("archive", journal::archive),
    target("torn", torn::database),
    target("approval", |data| text(data, approvals::pattern)),
    target("card", |data| text(data, bailey::fuzz::card)),
    target("token", |data| text(data, journal::token)),
    target("decide", bailey::fuzz::line),
    target("git-index", bailey_sandbox::fuzz::index),
    target("page", bailey_sandbox::fuzz::page),
    target("keys", bailey::fuzz::keys),
    target("telegram", channels::telegram),
    target("webhook", channels::webhook),
    target("ntfy", channels::ntfy),
    target("server-sent-events", bailey_egress::uplink::fuzz::events),
    target("collector", bailey::fuzz::collector),
    target("request", |data| text(data, bailey_web::fuzz::request)),
    target("act", bailey::fuzz::act),
    target("session-line", bailey::fuzz::session_line),
    target("daemon-line", bailey::fuzz::daemon_line),
    target("packet", bailey::fuzz::packet),
    target("chat-markup", |data| text(data, channels::markup)),
    target("markdown", |data| text(data, bailey::fuzz::markdown)),
];

/// The target of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().chain([&PLANTED]).find(|target| target.name == name)
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// Most parsers take text; other bytes never reach them.
fn text(data: &[u8], run: fn(&str)) {
    if let Ok(text) = str::from_utf8(data) {
        run(text);
    }
}
