//! `bailey tools`: what a model is given.

use crate::{
    cli::Tools,
    config::Config,
    home::Home,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result};
use bailey_kernel::{Claims, Standpoint};
use bailey_protocol::{CallId, ToolCall, ToolSpec, WsPath};
use bailey_tools::Toolbox;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// A small patch, for asking the tool that takes one what it would write.
const PATCH: &str = "--- a/FILE\n+++ b/FILE\n@@ -1 +1 @@\n-old\n+new\n";

pub(super) fn run(home: &Home, command: Tools, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let workspace = WsPath("/WORKSPACE".into());
    let toolbox = config.toolbox(&workspace, &Standpoint::default());
    match command {
        Tools::List => {
            toolbox.specs().iter().for_each(|spec| list(&toolbox, spec, printer));
            let peers: Vec<String> = config.peers.keys().map(|peer| format!("{peer}.…")).collect();
            if !peers.is_empty() && !printer.is_json() {
                let text = format!(
                    "and the tools of peers, which say in a session what they have: {}",
                    peers.join(", ")
                );
                printer.note(&text);
            }
        }
        Tools::Show { name } => {
            let tool = toolbox.find(&name).with_context(|| {
                let names: Vec<String> = toolbox.specs().into_iter().map(|spec| spec.name).collect();
                format!("there is no tool `{name}`: there are {}", names.join(", "))
            })?;
            show(&toolbox, &tool.spec(), printer)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(toolbox: &Toolbox, spec: &ToolSpec, printer: &Printer) {
    if printer.is_json() {
        printer.json(&json!({ "name": spec.name, "aliases": spec.aliases, "summary": spec.summary, "touches": touches(toolbox, spec) }));
        return;
    }
    printer.line(format!(
        "{}  {}",
        printer.paint(Style::Bold, &format!("{:<14}", spec.name)),
        printer.paint(Style::Plain, &spec.summary)
    ));
}

fn show(toolbox: &Toolbox, spec: &ToolSpec, printer: &Printer) -> Result<()> {
    let touches = touches(toolbox, spec);
    if printer.is_json() {
        printer.json(&json!({ "spec": spec, "touches": touches }));
        return Ok(());
    }
    let field = |name: &str, text: &str| {
        printer.line(format!(
            "{} {}",
            printer.paint(Style::Dim, &format!("{name:<9}")),
            printer.paint(Style::Plain, text)
        ));
    };
    printer.line(printer.paint(Style::Bold, &spec.name));
    field("aliases", &if spec.aliases.is_empty() { "none".to_owned() } else { spec.aliases.join(", ") });
    field("what", &spec.summary);
    field("touches", &touches);
    let lines = printer.paint_lines(Style::Plain, &format!("\n{}\n", spec.description));
    lines.iter().for_each(|line| printer.line(line));
    let schema = serde_json::to_string_pretty(&spec.schema)?;
    schema.lines().for_each(|line| printer.line(printer.paint(Style::Dim, line)));
    Ok(())
}

/// What a call reads and writes, as the tool itself claims it of arguments made after its schema.
fn touches(toolbox: &Toolbox, spec: &ToolSpec) -> String {
    let arguments = sample(&spec.schema, "").to_string();
    let call = ToolCall { id: CallId("sample".into()), name: spec.name.clone(), arguments };
    let Claims { reads, writes, everything, .. } =
        toolbox.find(&spec.name).map(|tool| tool.claims(&call)).unwrap_or_default();
    if everything {
        return "may write anything in the workspace's layer, so it runs alone".into();
    }
    let list = |paths: &[WsPath]| {
        let names: Vec<String> = paths.iter().map(|path| path.0.trim_start_matches('/').to_owned()).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    format!("reads {}; writes {}", list(&reads), list(&writes))
}

/// Arguments that fit a schema: each required one, texts by their own names.
fn sample(schema: &Value, name: &str) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut fields = Map::new();
            for field in required.iter().filter_map(Value::as_str) {
                let inner = schema.pointer(&format!("/properties/{field}")).unwrap_or(&Value::Null);
                fields.insert(field.into(), sample(inner, field));
            }
            Value::Object(fields)
        }
        Some("array") => Value::Array(vec![sample(schema.get("items").unwrap_or(&Value::Null), name)]),
        Some("integer" | "number") => 1.into(),
        Some("boolean") => false.into(),
        _ if name == "patch" => PATCH.into(),
        _ => name.to_uppercase().into(),
    }
}
