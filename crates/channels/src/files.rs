//! Files that come with messages: fetched from the platform once whoever sent them is let in, each up to a
//! size, for as long as it takes.

use super::{
    bridge::{Bridge, PAUSE_MAX, PAUSE_MIN},
    notes::PendingMessage,
};
use crate::{Attachment, AttachmentKind, Failure, KEY};
use bailey_protocol::{Blob, IMAGES_BYTES_MAX, Image, Inbound, SENT_BYTES_MAX, SentFile};

/// How often one is tried, which comes to about a quarter of an hour.
const TRIES_MAX: u32 = 20;
/// The longest path that a platform may give a file, in bytes.
const PATH_BYTES_MAX: usize = 512;

/// What became of the files of a message.
#[derive(Debug, Default, Clone)]
pub(super) struct Fetched {
    images: Vec<Image>,
    files: Vec<SentFile>,
    /// What is not there, and why.
    missing: Vec<String>,
    /// Whether somebody spoke.
    is_spoken: bool,
}

/// A file that was fetched.
enum FetchedFile {
    Picture(Image),
    File(SentFile),
}

impl Fetched {
    /// What is said to the person, where something is not there.
    pub(super) fn words(&self) -> Option<String> {
        let missing = (!self.missing.is_empty()).then(|| format!("Not read: {}.", self.missing.join("; ")));
        let spoken = "Bailey cannot turn speech into text yet: the agent gets your voice message as a file that it \
            cannot hear. Write it in words, or let your phone's keyboard write what you say.";
        let spoken = self.is_spoken.then(|| spoken.to_owned());
        let words: Vec<String> = missing.into_iter().chain(spoken).collect();
        (!words.is_empty()).then(|| words.join("\n"))
    }

    /// The message with them. The model is told what it is not shown.
    pub(super) fn inbound(&self, open: &PendingMessage) -> Inbound {
        let mut text = open.text.clone();
        if text.trim().is_empty() {
            text = match (self.images.is_empty(), self.files.is_empty(), self.is_spoken) {
                (false, ..) => "(A picture, without words.)".into(),
                (_, _, true) => {
                    "(A voice message. Nothing here turns speech into words: it is only a file.)".into()
                }
                (_, false, _) => "(A file, without words.)".into(),
                _ => text,
            };
        }
        for missing in &self.missing {
            text.push_str(&format!("\n(With it came what is not here: {missing}.)"));
        }
        Inbound {
            text: text.trim_start().into(),
            key: Some(open.key.clone()),
            is_quoted: open.is_quoted,
            images: self.images.clone(),
            files: self.files.clone(),
            ..Inbound::default()
        }
    }
}

/// Fetches the files of a message.
pub(super) async fn fetch(bridge: &Bridge, files: &[Attachment]) -> Fetched {
    let mut fetched = Fetched::default();
    for file in files {
        let what = file.kind.words();
        match one(bridge, file).await {
            Ok(FetchedFile::Picture(image)) => fetched.images.push(image),
            Ok(FetchedFile::File(sent)) => {
                fetched.is_spoken |= file.kind == AttachmentKind::Voice;
                fetched.files.push(sent);
            }
            Err(why) => fetched.missing.push(format!("{what}, {why}")),
        }
    }
    fetched
}

/// One file, or why it will not come.
async fn one(bridge: &Bridge, file: &Attachment) -> Result<FetchedFile, String> {
    if file.kind == AttachmentKind::Picture {
        let image = Image::of(bytes(bridge, file, IMAGES_BYTES_MAX).await?);
        let image = image.ok_or("which is none that is read here (png, jpeg, webp, gif)")?;
        return Ok(FetchedFile::Picture(image));
    }
    let name = match (file.name.as_str(), file.kind) {
        ("", AttachmentKind::Voice) => "voice.oga",
        (name, _) => name,
    };
    let bytes = Blob(bytes(bridge, file, SENT_BYTES_MAX).await?);
    Ok(FetchedFile::File(SentFile { name: name.into(), bytes }))
}

async fn bytes(bridge: &Bridge, file: &Attachment, bytes_max: usize) -> Result<Vec<u8>, String> {
    let too_large = || format!("which is larger than {} MiB", bytes_max >> 20);
    if file.bytes.is_some_and(|bytes| usize::try_from(bytes).map_or(true, |bytes| bytes > bytes_max)) {
        return Err(too_large());
    }
    let mut pause = PAUSE_MIN;
    let mut tries = 0;
    loop {
        tries += 1;
        match once(bridge, file, bytes_max).await {
            Ok(bytes) => return Ok(bytes),
            Err(Gone::TooLarge) => return Err(too_large()),
            Err(Gone::Failed(Failure::Refused(why) | Failure::Key(why))) => return Err(gone(&why)),
            Err(Gone::Failed(failure)) if tries == TRIES_MAX => return Err(gone(&failure.to_string())),
            Err(Gone::Failed(failure)) => bridge.pause(&failure, pause).await,
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Why nothing came.
enum Gone {
    TooLarge,
    Failed(Failure),
}

impl From<Failure> for Gone {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

async fn once(bridge: &Bridge, file: &Attachment, bytes_max: usize) -> Result<Vec<u8>, Gone> {
    let again = |why: String| Failure::Again(why);
    let locate = bridge.channel.locate(file);
    let locate = locate.ok_or_else(|| Failure::Refused("no files are fetched there".into()))?;
    let located = bridge.call(locate).await.map_err(|error| again(error.to_string()))?;
    let call = bridge.channel.located(&located, bytes_max)?;
    let is_plain = is_plain(&call.target);
    #[cfg(feature = "controls")]
    let is_plain = is_plain || bailey_session::controls::is_page_without("path");
    if !is_plain {
        return Err(Failure::Refused("the server names a place that may be another's".into()).into());
    }
    match bridge.call(call).await {
        Ok(reply) => Ok(bridge.channel.fetched(reply)?),
        Err(error) if error.is_too_large => Err(Gone::TooLarge),
        Err(error) => Err(again(error.to_string()).into()),
    }
}

fn gone(why: &str) -> String {
    format!("which could not be fetched ({why})")
}

/// Whether a path leads beneath where it begins, as it is written and however a server reads it. The platform
/// named it.
fn is_plain(path: &str) -> bool {
    let path = path.replacen(KEY, "key", 1);
    let is_name = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && !part.bytes().all(|byte| byte == b'.') && part.bytes().all(is_plain)
    };
    path.len() <= PATH_BYTES_MAX && path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_name))
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn a_path_leads_beneath_where_it_begins() {
        for plain in ["photos/file_1.jpg", "documents/file-2.tar.gz", "x", "a/.b/..c"] {
            assert!(is_plain(&format!("/file/bot{{key}}/{plain}")), "{plain}");
        }
        for other in [
            "",
            "..",
            "../getMe",
            "photos/../../x",
            "photos/./x",
            "/etc/passwd",
            "a//b",
            "a/",
            "a?b",
            "a#b",
            "%2e%2e/x",
            "a\\..\\b",
            "a b",
            "a\r\nb: c",
            "{key}",
            "@example.com/x",
            "http://example.com/x",
            "ü",
        ] {
            assert!(!is_plain(&format!("/file/bot{{key}}/{other}")), "{other}");
        }
        assert!(!is_plain(&format!("/file/bot{{key}}/{}", "a".repeat(512))));
    }
}
