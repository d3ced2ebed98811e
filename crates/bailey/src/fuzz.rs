//! Entries for the fuzz targets into what the program reads: its settings, a terminal's bytes, a model's markdown. Only the
//! feature `fuzz` has them. Each does what the program does with such a text, and fails when a promise is broken.

pub use crate::front::fuzz::{card, keys, markdown};

use crate::{
    commands::decide::{self, Asked},
    config::{Config, Document},
    home::Home,
};
use bailey_policy::is_tool_name;
use serde_json::Value;
use std::path::Path;

/// The human's `config.toml`. What is in force can be shown as a file that is taken again.
pub fn configuration(text: &str) {
    let Ok(document) = parse("config.toml", text) else { return };
    let home = Home { root: "/nowhere/.bailey".into(), user: "/nowhere".into() };
    match Config::of(&home, &document) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(config) => assert!(config.values().iter().all(|(key, _)| !key.is_empty())),
    }
}

/// A trusted project's own settings: whatever they say, they only choose a model and lower limits.
pub fn project_settings(text: &str) {
    let Ok(document) = parse(".bailey/config.toml", text) else { return };
    let before = Config::default();
    let mut config = Config::default();
    if let Err(error) = config.obey(&document) {
        assert!(!error.to_string().is_empty());
    }
    assert!(config.budgets.session.tokens <= before.budgets.session.tokens, "a project raised the budget");
    assert!(config.tool_calls <= before.tool_calls, "a project raised the calls of a turn");
    assert!(config.command.wall_ms <= before.command.wall_ms, "a project raised a command's time");
    assert!(config.providers.keys().eq(before.providers.keys()), "a project named a provider");
}

/// A line of another runtime. What is allowed of it has the shape that is promised, however it was written.
pub fn line(bytes: &[u8]) {
    match decide::read(bytes) {
        Err(why) | Ok(Asked::Begin(Err(why))) => assert!(!why.is_empty()),
        Ok(Asked::Begin(Ok((_, tools)))) => assert!(tools.iter().all(|tool| is_tool_name(&tool.name))),
        Ok(Asked::Decide { tool, args, .. }) => {
            if decide::is_judged(tool, args.clone()) {
                let read: Value = serde_json::from_str(&args).unwrap_or_default();
                let written = read.to_string();
                assert!(read.is_object() && decide::is_judged("t".into(), written), "{args}");
            }
        }
        Ok(Asked::Hello | Asked::Observe { .. } | Asked::End) => {}
    }
}

fn parse(name: &str, text: &str) -> Result<Document, crate::config::ConfigError> {
    let document = Document::parse(Path::new(name), text.to_owned())?;
    let (keys, names) = (document.keys().count(), document.names().len());
    assert!(names <= keys, "{names} names of {keys} keys");
    Ok(document)
}
