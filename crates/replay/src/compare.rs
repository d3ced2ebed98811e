//! Compares the recorded entries with the new ones, and finds the first entry at which they part.
//!
//! Calls that ran at the same time have their entries in any order, so the entries of each call are compared
//! among themselves.

use super::replayer::{Divergence, Recording};
use bailey_journal::{Fact, Recorded};
use bailey_protocol::{Action, ApprovalId, Digest, Effect, EffectId, Role};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The entries of each call, and of the conversation itself, reduced to the parts that must be the same.
type Streams = BTreeMap<String, Vec<(u64, Value)>>;

/// The first recorded entry that came differently, or did not come at all.
pub(super) fn first(recorded: &[Recorded], now: &[Recorded], recording: &Recording) -> Option<Divergence> {
    let before = streams(recorded, str::to_owned);
    let after = streams(now, |text| recording.renamed(text));
    let end = recorded.last().map_or(0, |last| last.entry.seq.0);
    let nothing = Vec::new();
    let names = before.keys().chain(after.keys());
    let parted = names.filter_map(|name| {
        let (old, new) = (before.get(name).unwrap_or(&nothing), after.get(name).unwrap_or(&nothing));
        let place = (0..old.len().max(new.len())).find(|place| said(old, *place) != said(new, *place))?;
        let seq = old.get(place).map_or_else(|| old.last().map_or(end, |(seq, _)| *seq), |(seq, _)| *seq);
        Some(Divergence { seq, recorded: shown(said(old, place)), now: shown(said(new, place)) })
    });
    parted.min_by_key(|divergence| divergence.seq)
}

fn said(stream: &[(u64, Value)], place: usize) -> Option<&Value> {
    stream.get(place).map(|(_, said)| said)
}

fn shown(said: Option<&Value>) -> String {
    said.map_or_else(|| "nothing".into(), |said| serde_json::to_string_pretty(said).unwrap_or_default())
}

/// The call of each effect and of each question.
#[derive(Default)]
struct CallIndex {
    effects: HashMap<EffectId, String>,
    questions: HashMap<ApprovalId, String>,
}

fn streams(entries: &[Recorded], renamed: impl Fn(&str) -> String) -> Streams {
    let mut streams = Streams::new();
    let mut known = CallIndex::default();
    for recorded in entries {
        let Some((stream, said)) = row(recorded, &mut known, &renamed) else { continue };
        streams.entry(stream).or_default().push((recorded.entry.seq.0, said));
    }
    streams
}

/// The content of an entry, without names, times and costs.
fn row(
    recorded: &Recorded,
    known: &mut CallIndex,
    renamed: &impl Fn(&str) -> String,
) -> Option<(String, Value)> {
    let text = || renamed(&recorded.text());
    let of_call = |call: &Option<bailey_protocol::CallId>| {
        call.as_ref().map_or_else(String::new, |call| call.0.clone())
    };
    let (stream, said) = match &recorded.entry.fact {
        Fact::Accepted { .. } => (String::new(), json!({ "said": text() })),
        Fact::Image { kind, .. } => {
            let digest = recorded.payload.as_deref().map(Digest::of);
            (String::new(), json!({ "shown": kind, "digest": digest }))
        }
        Fact::Pinned { .. } => (String::new(), json!({ "pinned": text() })),
        // An effect of a person: a merge, or a file that they sent.
        Fact::Intent { role, .. } | Fact::Denied { role, .. }
            if !matches!(role, Role::Agent | Role::Plugin) =>
        {
            return None;
        }
        Fact::Intent { kind, target, admitted, reasons, call, .. } => {
            let stream = of_call(call);
            known.effects.insert(recorded.entry.effect?, stream.clone());
            (
                stream,
                json!({ "let through": kind, "target": target, "how": admitted, "by": reasons, "action": action(recorded) }),
            )
        }
        Fact::Denied { kind, target, reasons, call, .. } => (
            of_call(call),
            json!({ "denied": kind, "target": target, "by": reasons, "action": action(recorded) }),
        ),
        Fact::Asked { approval, target, action, call, .. } => {
            let stream = of_call(call);
            known.questions.insert(*approval, stream.clone());
            let card: Option<Value> =
                recorded.payload.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok());
            let told = |field: &str| card.as_ref().and_then(|card| card.pointer(field));
            // An effect of the owner, such as a merge, is not done again.
            if told("/effect/role").is_some_and(|role| *role == json!(Role::Owner)) {
                return None;
            }
            let reasons = told("/reasons");
            (stream, json!({ "asked": target, "action": action, "by": reasons }))
        }
        Fact::Answered { approval, answer, .. } => {
            // The answer to a question without a call has no fixed place among the other entries of the
            // conversation.
            let stream = known.questions.get(approval).filter(|stream| !stream.is_empty()).cloned()?;
            (stream, json!({ "answered": answer, "why": text() }))
        }
        Fact::Observation { call, ok, waits, .. } => {
            (call.0.clone(), json!({ "result": text(), "ok": ok, "waits": waits.is_some() }))
        }
        Fact::Outcome { status, .. } => {
            let stream = recorded.entry.effect.and_then(|effect| known.effects.get(&effect)).cloned()?;
            (stream, json!({ "ended": status }))
        }
        Fact::Reply { provider, model, .. } => {
            let answer: Value = serde_json::from_slice(recorded.payload.as_deref()?).ok()?;
            (
                String::new(),
                json!({ "model": format!("{provider}/{model}"), "text": answer.get("text"), "calls": answer.get("calls") }),
            )
        }
        Fact::Guide { path, .. } => (String::new(), json!({ "guide": path, "text": text() })),
        Fact::Warned { .. } => (String::new(), json!({ "warned": text() })),
        Fact::Shortened { entries, bytes } => {
            (String::new(), json!({ "shortened": entries.len(), "to": bytes }))
        }
        Fact::Summary { .. } => (String::new(), json!({ "summary": text() })),
        Fact::TurnEnded { reason, .. } => (String::new(), json!({ "turn ended": reason })),
        _ => return None,
    };
    Some((stream, said))
}

/// The action, or its digest if it is long: the result tells the content of a file.
fn action(recorded: &Recorded) -> Value {
    const BYTES_MAX: usize = 4 << 10;
    let effect: Option<Effect> =
        recorded.payload.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok());
    let Some(Effect { action, .. }) = effect else { return Value::Null };
    let json = |action: &Action| serde_json::to_value(action).unwrap_or_default();
    match serde_json::to_vec(&action) {
        Ok(bytes) if bytes.len() > BYTES_MAX => json!(Digest::of(&bytes)),
        _ => json(&action),
    }
}

#[cfg(test)]
mod tests;
