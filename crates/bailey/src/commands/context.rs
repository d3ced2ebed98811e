//! `bailey sessions context`: what the model sees, part by part.

use crate::{
    compose::{self, Keys},
    config::Config,
    front::short,
    home::Home,
    place::{origin, standpoint},
    print::{Printer, Style},
};
use anyhow::Result;
use bailey_agent::{Budget, Ceiling, Part, parts};
use bailey_kernel::{Context, Provider, Segment, recall};
use bailey_protocol::ToolSpec;
use bailey_sandbox::Shape;
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode};

pub(super) async fn run(home: &Home, name: &str, printer: &Printer) -> Result<ExitCode> {
    let keys = Keys::load(home, &Config::load(home)?, printer)?;
    let journal = compose::journal(home, &keys).await?.0;
    let info = journal.session(name).await?;
    let home = &super::home_of(home, &journal, info.id).await?;
    let mut config = Config::load(home)?;
    let origin = origin(home, info.id);
    printer.notes(config.narrow(home, Path::new(&origin.as_ref().unwrap_or(&info.workspace).0))?);
    let shape = match origin {
        Some(_) => Shape::Copied,
        None => compose::last_shape(&journal, info.id).await?,
    };
    let standpoint = standpoint(home, info.id)?;
    let instruction = compose::instruction(&config, &info.workspace, &standpoint, shape);
    let context = recall(&journal, info.id, instruction).await?;
    let tools = config.toolbox(&info.workspace, &standpoint).specs();
    // A model that is not configured any more, or was a recording, still leaves its words.
    let model = compose::codec(home, &config, &info.model).ok();
    let parts = parts(&context, &tools);
    if printer.is_json() {
        parts.iter().for_each(|part| printer.json(part));
        if let Some(model) = &model {
            printer.json(&budget(&**model, &context, &tools));
            printer.json(&request(&**model, &context, &tools));
        }
        return Ok(ExitCode::SUCCESS);
    }
    printer.line(printer.paint(Style::Bold, &format!("{}  {}", short(&info.id), info.model)));
    if let Some(model) = &model {
        let Budget { window, fixed } = Budget::of(&**model, &context, &tools, &Ceiling::default());
        printer.line(format!(
            "about {} of {} tokens: {fixed} for the instruction, the tools and the reply, {} for the conversation",
            fixed + taken(&context),
            window,
            taken(&context),
        ));
    }
    parts.iter().for_each(|part| show(printer, part));
    if is_cut(&context) {
        printer.note("the last step was cut off: going on tells the model what became of its calls");
    }
    Ok(ExitCode::SUCCESS)
}

fn show(printer: &Printer, part: &Part) {
    let entry = part.entry.map(|entry| format!(" · entry {entry}")).unwrap_or_default();
    let labels = part.labels.as_ref().map(|labels| {
        let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
        format!(" · {}/{}", word(json!(labels.integrity)), word(json!(labels.secrecy)))
    });
    let head = format!("{}{entry} · about {} tokens{}", part.part, part.tokens, labels.unwrap_or_default());
    printer.line("");
    printer.line(printer.paint(Style::Cyan, &head));
    part.text.lines().for_each(|line| printer.line(printer.paint(Style::Plain, &format!("    {line}"))));
}

fn budget(model: &dyn Provider, context: &Context, tools: &[ToolSpec]) -> Value {
    let budget = Budget::of(model, context, tools, &Ceiling::default());
    json!({
        "part": "budget", "window": budget.window, "fixed": budget.fixed, "room": budget.room(),
        "summary": budget.summary(), "taken": taken(context),
    })
}

/// The body that would be sent if the model were asked now.
fn request(model: &dyn Provider, context: &Context, tools: &[ToolSpec]) -> Value {
    let body = model.encode(context, tools).request.body.0;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    json!({ "part": "request", "model": format!("{}/{}", model.name(), model.model()), "body": body })
}

fn taken(context: &Context) -> u64 {
    context.segments().iter().map(Segment::tokens).sum()
}

/// Whether calls of the last reply have no result yet.
fn is_cut(context: &Context) -> bool {
    let last = context.segments().iter().rposition(|segment| matches!(segment, Segment::Reply(_)));
    let Some(Segment::Reply(reply)) = last.and_then(|last| context.segments().get(last)) else {
        return false;
    };
    let results = context.segments().iter().skip(last.unwrap_or(0));
    results.filter(|segment| matches!(segment, Segment::Observation(_))).count() < reply.answer().calls.len()
}
