//! The agent's messages apart from its answer: words and a file, to the session's own person, or to another
//! person of the channel.

use super::Talk;
use crate::{
    Conversation, Post, Sender, Upload,
    need::{PersonAnswer, RequestKind},
};
use bailey_protocol::{ImageKind, SentFile};

impl Talk {
    /// Shows a message of the agent's. The gate has let it pass.
    pub(super) async fn sent(&mut self, to: Option<String>, text: String, file: Option<SentFile>) {
        let place = match to {
            None => Ok(self.at.clone()),
            Some(to) => self.place_of(&to).await,
        };
        let sent = match place {
            Ok(place) => self.deliver_to(&place, text, file).await,
            Err(why) => Err(why),
        };
        if let Err(why) = sent {
            self.now(&format!("⚠ A message of the agent's was not sent: {why}.")).await;
        }
    }

    /// The conversation with another person of this channel, whom the owner let in.
    async fn place_of(&self, to: &str) -> Result<Conversation, String> {
        let (channel, id) = to.split_once(':').unwrap_or_default();
        if channel != self.bridge.name {
            return Err(format!(
                "this conversation is on the channel `{}`, and not on that of `{to}`",
                self.bridge.name
            ));
        }
        let person = Sender { id: id.to_owned(), name: String::new() };
        match self.bridge.ask(&person, &self.at, RequestKind::Address).await {
            Ok((PersonAnswer::Done(_), _)) => {}
            Ok(_) => return Err(format!("the person {id} is not let in here")),
            Err(error) => return Err(format!("{error:#}")),
        }
        self.bridge.channel.alone(id).ok_or_else(|| "this channel writes to nobody by a number".into())
    }

    async fn deliver_to(
        &self,
        place: &Conversation,
        text: String,
        file: Option<SentFile>,
    ) -> Result<(), String> {
        let bridge = &self.bridge;
        for text in bridge.pages(text).await {
            let post = Post { text, buttons: Vec::new() };
            bridge.deliver(place, bridge.call_name(), || bridge.channel.send(place, &post)).await?;
        }
        let Some(SentFile { name, bytes }) = file else { return Ok(()) };
        // Models know png, jpeg, webp and gif; platforms show the first three as photos.
        let is_picture = ImageKind::of(&bytes.0).is_some_and(|kind| kind != ImageKind::Gif);
        self.send_file_to(place, &Upload { name, bytes: bytes.0, is_picture }).await
    }

    /// Sends a file to this conversation.
    pub(super) async fn send_file(&self, file: &Upload) -> Result<(), String> {
        self.send_file_to(&self.at, file).await
    }

    async fn send_file_to(&self, place: &Conversation, file: &Upload) -> Result<(), String> {
        let none = || "this channel takes no files".to_owned();
        let mut why = none();
        // A platform that does not take a picture as one takes it as a file.
        for is_picture in [file.is_picture, false] {
            let file = Upload { is_picture, ..file.clone() };
            let call = self.bridge.channel.send_file(place, &file).ok_or_else(none)?;
            match self.bridge.deliver(place, self.bridge.call_name(), || call.clone()).await {
                Ok(_) => return Ok(()),
                Err(refused) => why = refused,
            }
            if !file.is_picture {
                break;
            }
        }
        Err(why)
    }
}
