//! `message.send`: words and a file of the workspace, to the session's own person or to another one.
//!
//! The two are different effects, so that rules can tell them apart: [`TO_OWN`] stays with the person whose
//! session it is, [`TO_OTHERS`] leaves them. A file is named by the digest of its content: a human is asked
//! about that content, and no other is sent.

use crate::{
    PeerTool, aliases, arguments, change,
    typed::{PerformedCall, Typed, unexpected, writes},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{
    Action, CallReport, Digest, Kind, Report, Status, ToolEffect, ToolSpec, ToolUse, WsPath,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The peer that performs it.
pub const MESSAGE_PEER: &str = "message";
/// The names of the two effects in rules.
const TO_OWN: &str = "message.send";
const TO_OTHERS: &str = "message.send_to";
/// The most characters of a text.
const TEXT_CHARS_MAX: usize = 8_000;
/// The path that all calls claim, so that one is sent after the other.
const OUTBOX: &str = "~/.bailey/outbox";

/// Sends a message.
pub(crate) struct MessageSend;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    text: Option<String>,
    file: Option<String>,
    to: Option<String>,
}

/// A message, as rules judge it and a human is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutgoingMessage {
    /// The person at a channel, `CHANNEL:ID`; `None` for the session's own person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The words; may be empty beside a file.
    pub text: String,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<OutgoingFile>,
}

/// A file that is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutgoingFile {
    /// Where it lies.
    pub path: WsPath,
    /// How many bytes it has.
    pub bytes: u64,
    /// The digest of its content.
    pub digest: Digest,
}

/// The tools of [`MESSAGE_PEER`], by which its calls are known: to the model they are one.
#[must_use]
pub fn message_tools() -> [PeerTool; 2] {
    [(TO_OWN, ToolEffect::Write), (TO_OTHERS, ToolEffect::Egress)].map(|(name, effect)| {
        let spec = ToolSpec { name: name.into(), ..MessageSend.spec() };
        PeerTool { peer: MESSAGE_PEER.into(), spec, effect }
    })
}

impl Typed for MessageSend {
    type Args = Args;
    // It is given to no sub-agent.
    const KINDS: Option<&'static [Kind]> = None;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: TO_OWN.into(),
            aliases: aliases::names(TO_OWN),
            summary: "Send the person a message now, also with a file of the workspace.".into(),
            description:
                "For what they want on their phone: a picture, a report, word that something long is \
                          done. Your answers reach them without it. Pictures (png, jpeg, webp) are shown as \
                          such; a file has at most 8 MiB and no secret in it. With `to` it goes to another \
                          person, and yours is asked first."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "Markdown; may be left out beside a file."},
                    "file": {"type": "string", "description": "A path, relative to the workspace or absolute."},
                    "to": {
                        "type": "string",
                        "description": "Another person at a channel, `CHANNEL:NUMBER`. Leave it out for your own."
                    }
                }
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        let file = args.file.iter().filter(|path| !path.is_empty());
        Claims { reads: file.map(|path| WsPath(path.clone())).collect(), ..writes(OUTBOX) }
    }

    fn plan(&self, args: &Args, seen: &[Output]) -> Result<Plan, String> {
        let text = args.text.clone().unwrap_or_default();
        let count = text.chars().count();
        if count > TEXT_CHARS_MAX {
            return Err(format!(
                "`text` has {count} characters: {TEXT_CHARS_MAX} at most; send the rest as a file"
            ));
        }
        if let Some(mark) = change::foreign_mark(&[], text.as_bytes()) {
            return Err(format!("refused to send `{mark}`: it stands for a secret that you are not shown"));
        }
        let to = args.to.as_deref().map(str::trim).filter(|to| !to.is_empty());
        if let Some(to) = to
            && !to.split_once(':').is_some_and(|(channel, id)| !channel.is_empty() && !id.is_empty())
        {
            return Err(format!("`{to}` names no person: write `CHANNEL:NUMBER`, such as `telegram:4711`"));
        }
        let file = match args.file.as_deref().filter(|path| !path.is_empty()) {
            None if text.trim().is_empty() => return Err("there is neither `text` nor `file` to send".into()),
            None => None,
            Some(path) => {
                let path = arguments::path("file", path)?;
                let Some(read) = seen.first() else { return Ok(Plan::Need(vec![Action::Read { path }])) };
                Some(outgoing(path, read)?)
            }
        };
        let message = OutgoingMessage { to: to.map(str::to_owned), text, file };
        let [own, others] = message_tools();
        let PeerTool { peer, spec, effect } = if to.is_some() { others } else { own };
        let args = serde_json::to_string(&message).map_err(|error| error.to_string())?;
        Ok(Plan::Act(Action::Tool(ToolUse {
            pinned: Some(spec.digest()),
            name: spec.name,
            effect: Some(effect),
            args,
            peer: Some(peer),
        })))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        match &done.outcome.report {
            Report::Called(CallReport { ok, text, .. }) => {
                Conclusion { ok: *ok, summary: text.clone(), text: text.clone() }
            }
            _ => unexpected(),
        }
    }
}

fn outgoing(path: WsPath, read: &Output) -> Result<OutgoingFile, String> {
    let wrong = |why: String| format!("cannot send `{path}`: {why}");
    if let Status::Failed { reason } = &read.outcome().status {
        return Err(wrong(reason.clone()));
    }
    let Report::File(file) = read.report() else { return Err(wrong("it was not read".into())) };
    match file.digest {
        None => Err(wrong(format!("it has {} bytes, and at most 8 MiB are sent", file.size))),
        Some(_) if file.size == 0 => Err(wrong("it is empty".into())),
        Some(digest) => Ok(OutgoingFile { bytes: file.size, digest, path }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, MessageSend, OutgoingMessage, message_tools};
    use crate::typed::Typed;
    use bailey_kernel::{Output, Plan};
    use bailey_protocol::{Action, Digest, FileReport, Outcome, Report, Status, ToolEffect, ToolUse};

    fn read(content: &[u8], digest: Option<Digest>) -> Output {
        let file = FileReport { content: content.to_vec().into(), size: 5, digest, mode: 0o644 };
        Output::new(Outcome {
            status: Status::Done,
            enforced: None,
            duration_ms: 0,
            report: Report::File(file),
        })
    }

    fn plan(
        text: Option<&str>,
        file: Option<&str>,
        to: Option<&str>,
        seen: &[Output],
    ) -> Result<Plan, String> {
        let owned = |value: Option<&str>| value.map(str::to_owned);
        MessageSend.plan(&Args { text: owned(text), file: owned(file), to: owned(to) }, seen)
    }

    #[test]
    fn what_goes_to_others_is_another_effect_than_what_goes_to_ones_own_person() {
        let used = |to| match plan(Some("hi"), None, to, &[]) {
            Ok(Plan::Act(Action::Tool(used))) => used,
            other => panic!("{other:?}"),
        };
        let [own, others] = message_tools();
        let of = |used: ToolUse| (used.name, used.effect, used.pinned);
        assert_eq!(of(used(None)), ("message.send".into(), Some(ToolEffect::Write), Some(own.spec.digest())));
        assert_eq!(of(used(Some(" "))).1, Some(ToolEffect::Write));
        let to = used(Some("phone:77"));
        assert!(to.args.contains("phone:77"), "{}", to.args);
        assert_eq!(of(to), ("message.send_to".into(), Some(ToolEffect::Egress), Some(others.spec.digest())));
        for wrong in ["Bob", ":77", "phone:"] {
            assert!(
                plan(Some("hi"), None, Some(wrong), &[]).unwrap_err().contains("names no person"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_file_is_read_first_and_named_by_its_content() {
        assert!(matches!(plan(None, Some("a.csv"), None, &[]), Ok(Plan::Need(_))));
        let digest = Digest::of(b"a,b,c");
        let Ok(Plan::Act(Action::Tool(used))) =
            plan(None, Some("a.csv"), None, &[read(b"a,b,c", Some(digest))])
        else {
            panic!("it is sent")
        };
        let message: OutgoingMessage = serde_json::from_str(&used.args).unwrap();
        assert_eq!(message.file.unwrap().digest, digest);
        assert!(!used.args.contains("a,b,c"));
        // A file that is too large was not read whole.
        assert!(
            plan(None, Some("a.csv"), None, &[read(b"a,b,c", None)]).unwrap_err().contains("at most 8 MiB")
        );
        assert!(plan(Some(" "), None, None, &[]).is_err());
        assert!(plan(Some("[redacted:KEY]"), None, None, &[]).is_err(), "a mark is no word");
    }
}
