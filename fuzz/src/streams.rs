//! What model providers send, and recordings of it.

use bailey_kernel::{Completion, ModelError, Provider as _};
use bailey_llm::{Cassette, Endpoint, Normaliser, Wire, decode_all, provider};

/// An answer read at once and in pieces is the same answer, and an error's body is never an answer.
pub(crate) fn read(wire: Wire, data: &[u8]) {
    let whole = decode_all(wire, 200, &[], data);
    let pieces = in_pieces(wire, data);
    assert_eq!(whole, pieces, "an answer depends on how the network cut it");
    if let Err(error) = &whole {
        assert!(!error.message.is_empty());
    }
    let line = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let headers = [("retry-after".to_owned(), String::from_utf8_lossy(line).into_owned())];
    for status in [400, 429, 529] {
        assert!(decode_all(wire, status, &headers, data).is_err(), "status {status} was taken for an answer");
    }
}

fn in_pieces(wire: Wire, data: &[u8]) -> Result<Completion, ModelError> {
    let codec = provider(Endpoint {
        provider: "provider".into(),
        wire,
        base_url: "http://127.0.0.1".into(),
        model: "model".into(),
        key: None,
        max_tokens: 1024,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: true,
        parameters: std::collections::BTreeMap::new(),
    });
    let mut decoder = codec.decoder();
    decoder.head(200, &[]);
    for piece in data.chunks(1 + data.len() % 13) {
        let _ = decoder.push(piece);
    }
    decoder.end()
}

/// A cassette that can be read is the same when it was written and read again.
pub(crate) fn cassette(data: &[u8]) {
    let normaliser = Normaliser::new("/home/ann/project");
    let request = normaliser.request(data);
    assert!(serde_json::to_string(&request).is_ok());
    let Ok(cassette) = Cassette::parse(data) else { return };
    let text = cassette.to_json().expect("a cassette can be written");
    assert_eq!(Cassette::parse(text.as_bytes()).expect("a written cassette can be read"), cassette);
}
