//! Files that come with messages: fetched from the platform once whoever sent them is let in, each up to a size, for as long as it takes.

use super::{
    bridge::{Bridge, PAUSE_MAX, PAUSE_MIN},
    notes::Open,
};
use bailey_channels::{Attachment, AttachmentKind, Failure, KEY};
use bailey_protocol::{IMAGES_BYTES_MAX, Image, Inbound};

/// How often one is tried, which comes to about a quarter of an hour.
const TRIES_MAX: u32 = 20;
/// The longest path that a platform may give a file, in bytes.
const PATH_BYTES_MAX: usize = 512;

/// What became of the files of a message.
#[derive(Debug, Default, Clone)]
pub(super) struct Fetched {
    images: Vec<Image>,
    /// What is not there, and why.
    missing: Vec<String>,
}

impl Fetched {
    /// What is said to the person, where something is not there.
    pub(super) fn words(&self) -> Option<String> {
        (!self.missing.is_empty()).then(|| format!("Not read: {}.", self.missing.join("; ")))
    }

    /// The message with them. The model is told what it is not shown.
    pub(super) fn inbound(&self, open: &Open) -> Inbound {
        let mut text = open.text.clone();
        if text.trim().is_empty() && !self.images.is_empty() {
            text = "(A picture, without words.)".into();
        }
        for missing in &self.missing {
            text.push_str(&format!("\n(With it came what is not here: {missing}.)"));
        }
        let (key, images) = (Some(open.key.clone()), self.images.clone());
        Inbound {
            text: text.trim_start().into(),
            key,
            is_quoted: open.is_quoted,
            images,
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
            Ok(image) => fetched.images.push(image),
            Err(why) => fetched.missing.push(format!("{what}, {why}")),
        }
    }
    fetched
}

/// One picture, or why it will not come.
async fn one(bridge: &Bridge, file: &Attachment) -> Result<Image, String> {
    if file.kind != AttachmentKind::Picture {
        return Err("which is not read yet".into());
    }
    let bytes = bytes(bridge, file, IMAGES_BYTES_MAX).await?;
    Image::of(bytes).ok_or_else(|| "which is none that is read here (png, jpeg, webp, gif)".into())
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
    let is_plain = is_plain(&call.path);
    #[cfg(feature = "controls")]
    let is_plain = is_plain || crate::controls::is_page_without("path");
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

/// Whether a path leads beneath where it begins, as it is written and however a server reads it. The platform named it.
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
