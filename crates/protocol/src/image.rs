//! Pictures that people send.

use crate::{Blob, blob::as_base64};
use alloc::{string::String, sync::Arc, vec::Vec};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use core::fmt;
use serde::{Deserialize, Serialize, Serializer};

/// The most that the pictures of one message may come to, in bytes. As base64 it is what every provider takes.
pub const IMAGES_BYTES_MAX: usize = 3 << 20;

/// A picture, by the first bytes of what it is: what comes behind them was looked at by nobody.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Blob")]
pub struct Image {
    kind: ImageKind,
    bytes: Arc<[u8]>,
}

/// How a picture is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    Webp,
    /// GIF.
    Gif,
}

impl Image {
    /// These bytes, where they begin as a picture does and are not too many. No name is asked.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Option<Self> {
        let kind = ImageKind::of(&bytes)?;
        (bytes.len() <= IMAGES_BYTES_MAX).then(|| Self { kind, bytes: bytes.into() })
    }

    /// How it is written.
    #[must_use]
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// It.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// It, as requests to models hold it (RFC 4648, padded).
    #[must_use]
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} of {} bytes)", self.kind.name(), self.bytes.len())
    }
}

impl TryFrom<Blob> for Image {
    type Error = &'static str;

    fn try_from(blob: Blob) -> Result<Self, Self::Error> {
        Self::of(blob.0).ok_or("it is no picture (png, jpeg, webp, gif), or larger than 3 MiB")
    }
}

impl Serialize for Image {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        as_base64(&Blob(self.bytes.to_vec()), serializer)
    }
}

impl ImageKind {
    /// By the first bytes, as the formats' own documents have them.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Self::Png),
            [0xFF, 0xD8, 0xFF, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ => None,
        }
    }

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
            Self::Gif => "gif",
        }
    }

    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IMAGES_BYTES_MAX, Image, ImageKind};
    use alloc::{borrow::ToOwned as _, string::String, vec::Vec};

    #[test]
    fn a_picture_is_known_by_its_bytes_alone() {
        let known: [(&[u8], ImageKind); 5] = [
            (b"\x89PNG\r\n\x1a\nrest", ImageKind::Png),
            (b"\xff\xd8\xff\xe0", ImageKind::Jpeg),
            (b"RIFF\0\0\0\0WEBPVP8 ", ImageKind::Webp),
            (b"GIF87a", ImageKind::Gif),
            (b"GIF89a", ImageKind::Gif),
        ];
        for (bytes, kind) in known {
            let image = Image::of(bytes.to_owned()).unwrap();
            assert_eq!((image.kind(), image.bytes()), (kind, bytes));
            let json = serde_json::to_string(&image).unwrap();
            assert_eq!(serde_json::from_str::<Image>(&json).unwrap(), image);
            // One byte less is none.
            let cut = bytes.get(..2).unwrap().to_owned();
            assert_eq!(Image::of(cut), None);
        }
        for bytes in [&b""[..], b"photo.png", b"RIFF\0\0\0\0WAVE", b"GIF88a", b"%PDF-1.7", b"<svg>"] {
            assert_eq!(Image::of(bytes.to_owned()), None);
            let json = serde_json::to_string(&crate::Blob(bytes.to_owned())).unwrap();
            assert!(serde_json::from_str::<Image>(&json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_picture_that_is_too_large_is_none() {
        let of = |length: usize| {
            let mut bytes: Vec<u8> = b"\xff\xd8\xff".to_vec();
            bytes.resize(length, 7);
            Image::of(bytes)
        };
        assert!(of(IMAGES_BYTES_MAX).is_some());
        assert!(of(IMAGES_BYTES_MAX + 1).is_none());
        let shown: String = alloc::format!("{:?}", of(5).unwrap());
        assert_eq!(shown, "Image(jpeg of 5 bytes)");
    }
}
