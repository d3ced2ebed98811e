//! Pictures that people send.

use crate::{Blob, blob::as_base64};
use alloc::{string::String, sync::Arc, vec::Vec};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use core::fmt;
use serde::{Deserialize, Serialize, Serializer};

/// The maximum total size of the pictures of one message, in bytes. Every provider accepts this size as
/// base64.
pub const IMAGES_BYTES_MAX: usize = 3 << 20;

/// A picture, recognised by its first bytes. The bytes behind them are not checked.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Blob")]
pub struct Image {
    kind: ImageKind,
    bytes: Arc<[u8]>,
}

/// The format of a picture.
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
    /// These bytes as a picture; `None` when they do not begin like a picture, or are too many. The file's
    /// name plays no role.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Option<Self> {
        let kind = ImageKind::of(&bytes)?;
        (bytes.len() <= IMAGES_BYTES_MAX).then(|| Self { kind, bytes: bytes.into() })
    }

    /// Its format.
    #[must_use]
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its bytes as base64, as requests to models hold them (RFC 4648, padded).
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
    /// Recognises the format by the first bytes, as the formats' own documents define them.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Self::Png),
            [0xFF, 0xD8, 0xFF, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ => None,
        }
    }

    /// Whether a file of this name should be a picture, by the end of the name.
    #[must_use]
    pub fn is_named(path: &str) -> bool {
        let end = path.rsplit_once('.').map_or("", |(_, end)| end);
        ["png", "jpg", "jpeg", "webp", "gif"].iter().any(|known| end.eq_ignore_ascii_case(known))
    }

    /// Width and height in pixels, as the file's header states them.
    #[must_use]
    pub fn size(self, bytes: &[u8]) -> Option<(u32, u32)> {
        match self {
            Self::Png => match bytes.get(12..24)? {
                [b'I', b'H', b'D', b'R', a, b, c, d, e, f, g, h] => {
                    Some((u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h])))
                }
                _ => None,
            },
            Self::Gif => Some((little(bytes.get(6..8)?), little(bytes.get(8..10)?))),
            Self::Jpeg => size_of_jpeg(bytes),
            Self::Webp => size_of_webp(bytes.get(12..)?),
        }
    }

    /// Its name for people.
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

fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn big(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Reads the size from the first frame header among a JPEG's segments (ITU T.81, B.1 and B.2).
fn size_of_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.get(2..)?;
    loop {
        let [0xFF, marker, after @ ..] = rest else { return None };
        match marker {
            0xFF => rest = rest.get(1..)?,
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                return Some((big(after.get(5..7)?), big(after.get(3..5)?)));
            }
            _ => rest = after.get(usize::try_from(big(after.get(..2)?)).ok()?..)?,
        }
    }
}

/// Reads the size from the first chunk of a WebP file (RFC 9649; RFC 6386, 9.1).
fn size_of_webp(chunk: &[u8]) -> Option<(u32, u32)> {
    let data = chunk.get(8..)?;
    match chunk.get(..4)? {
        b"VP8X" => Some((little(data.get(4..7)?) + 1, little(data.get(7..10)?) + 1)),
        b"VP8L" => {
            let bits = little(data.get(1..5)?);
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        b"VP8 " => Some((little(data.get(6..8)?) & 0x3FFF, little(data.get(8..10)?) & 0x3FFF)),
        _ => None,
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
            // Two bytes are too few for a picture.
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
    fn the_size_is_read_from_the_head() {
        let sized: [&[u8]; 6] = [
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08",
            b"GIF89a\x80\x02\xe0\x01\0",
            // A comment segment and a fill byte stand before the frame header.
            b"\xff\xd8\xff\xfe\0\x04ab\xff\xff\xc2\0\x11\x08\x01\xe0\x02\x80\x03",
            b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0",
            b"RIFF\0\0\0\0WEBPVP8L\x05\0\0\0\x2f\x7f\xc2\x77\0",
            b"RIFF\0\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01",
        ];
        let unknown: [&[u8]; 3] = [
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0",
            b"\xff\xd8\xff\xfe\0\0\xff",
            b"\xff\xd8\xff\xfe\xff\xff",
        ];
        let size = |bytes: &[u8]| ImageKind::of(bytes).unwrap().size(bytes);
        sized.iter().for_each(|bytes| assert_eq!(size(bytes), Some((640, 480)), "{bytes:?}"));
        unknown.iter().for_each(|bytes| assert_eq!(size(bytes), None, "{bytes:?}"));
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
