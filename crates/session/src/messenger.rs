//! The agent's messages to people, apart from its answers. A message is an effect like any other: it is
//! judged, written down, and then told to the session's front ends. The channel that the person writes on
//! shows it there; a terminal shows it in a line.
//!
//! A file in which a secret is recognised does not leave this way. The search sees the bytes as text; it does
//! not look into archives, pictures and compressed documents.

use bailey_journal::Journal;
use bailey_kernel::{BoxFuture, Io};
use bailey_peers::Peer;
use bailey_protocol::{Action, CallReport, Digest, Happening, Report, SentFile, SessionId, Speaker};
use bailey_tools::{OutgoingFile, OutgoingMessage, PeerTool, message_tools};
use serde_json::{Map, Value};
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Messages in any minute.
const MESSAGES_MAX: usize = 20;
const MINUTE: Duration = Duration::from_secs(60);

/// Sends the messages that the rules allow.
pub(crate) struct Messenger {
    journal: Journal,
    session: SessionId,
    times: Mutex<VecDeque<Instant>>,
}

impl Messenger {
    pub(crate) fn new(journal: Journal, session: SessionId) -> Self {
        Self { journal, session, times: Mutex::default() }
    }

    async fn send(&self, message: OutgoingMessage, io: Io) -> Result<CallReport, String> {
        let OutgoingMessage { to, text, file } = message;
        if let Some(to) = &to {
            self.is_reached(to).await?;
        }
        let file = match file {
            Some(file) => Some(self.content(file, &io).await?),
            None => None,
        };
        self.take(Instant::now())?;
        let said = match &to {
            None => {
                "told to your person, where they wrote to you; a terminal shows a file's name only".into()
            }
            Some(to) => format!("handed to the channel, which sends it to {to}"),
        };
        let speaker = self.journal.speaker(self.session).await.map_err(|error| error.to_string())?;
        let of = speaker.map(|Speaker { channel, id, .. }| format!("{channel}:{id}"));
        io.door.tell(Happening::Sent { to, text, file, of }).await.map_err(|error| error.to_string())?;
        Ok(CallReport { ok: true, text: said, touched: Vec::new() })
    }

    /// Whether the conversation is at the channel of another person: only its process can write to them.
    async fn is_reached(&self, to: &str) -> Result<(), String> {
        let (channel, _) = to.split_once(':').unwrap_or_default();
        let speaker = self.journal.speaker(self.session).await.map_err(|error| error.to_string())?;
        match speaker {
            Some(Speaker { channel: at, .. }) if at == channel => Ok(()),
            _ => Err(format!(
                "`{to}` cannot be reached from here: this conversation is not on the channel `{channel}`"
            )),
        }
    }

    /// The file as it was judged.
    async fn content(
        &self,
        OutgoingFile { path, digest, .. }: OutgoingFile,
        io: &Io,
    ) -> Result<SentFile, String> {
        let read = io.door.act(Action::Read { path: path.clone() }).await;
        let read = read.map_err(|error| format!("`{path}` cannot be read: {error}"))?;
        let Report::File(file) = read.report() else {
            return Err(format!("`{path}` cannot be read any more"));
        };
        let bytes = file.content.clone();
        let is_same = Digest::of(&bytes.0) == digest;
        #[cfg(feature = "controls")]
        let is_same = is_same || crate::controls::is_page_without("message-digest");
        if !is_same {
            return Err(format!("`{path}` changed after it was looked at: nothing was sent"));
        }
        let hits = self.journal.redactor().redact(&bytes.lossy()).hits;
        #[cfg(feature = "controls")]
        let hits = if crate::controls::is_page_without("message-secrets") { 0 } else { hits };
        if hits > 0 {
            return Err(format!(
                "`{path}` holds what looks like a secret, so it is not sent: nothing was sent"
            ));
        }
        let name = path.0.rsplit('/').next().unwrap_or_default();
        let name = self.journal.redactor().redact(name).text.into_owned();
        Ok(SentFile { name, bytes })
    }

    /// Notes one more message, if the limit allows it.
    fn take(&self, now: Instant) -> Result<(), String> {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        while times.front().is_some_and(|first| now.duration_since(*first) >= MINUTE) {
            times.pop_front();
        }
        if times.len() >= MESSAGES_MAX {
            return Err(format!("{MESSAGES_MAX} messages were sent in a minute: put more into one"));
        }
        times.push_back(now);
        Ok(())
    }
}

impl Peer for Messenger {
    fn tools(&self) -> Vec<PeerTool> {
        message_tools().into()
    }

    /// The toolbox has them as one.
    fn is_offered(&self) -> bool {
        false
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        args: Map<String, Value>,
        io: Io,
    ) -> BoxFuture<'a, Result<CallReport, String>> {
        Box::pin(async move {
            let message = serde_json::from_value(Value::Object(args)).map_err(|error| error.to_string())?;
            self.send(message, io).await
        })
    }
}
