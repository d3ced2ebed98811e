use super::{Cassette, CassetteError, Exchange, Response};
use crate::{Endpoint, Wire};
use bailey_protocol::Blob;
use serde_json::json;

fn cassette() -> Cassette {
    let endpoint = Endpoint {
        provider: "acme".into(),
        wire: Wire::OpenAiChat,
        base_url: "http://127.0.0.1".into(),
        model: "m".into(),
        key: Some("KEY".into()),
        max_tokens: 1,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    };
    let body = vec![Blob::from("data: {}\r"), Blob(vec![0xff]), Blob::from("")];
    let headers = vec![("content-type".into(), "text/event-stream".into())];
    let exchange =
        Exchange { request: json!({ "model": "m" }), response: Response { status: 200, headers, body } };
    Cassette { exchanges: vec![exchange], ..Cassette::new(&endpoint) }
}

#[test]
fn the_file_reads_well_and_comes_back() {
    let json = cassette().to_json().unwrap();
    assert!(json.contains("\n        \"body\": [\n          \"data: {}\\r\",\n"), "{json}");
    assert!(json.ends_with("}\n"));
    assert_eq!(Cassette::parse(json.as_bytes()).unwrap(), cassette());
}

#[test]
fn what_is_no_cassette_is_refused() {
    let json = cassette().to_json().unwrap();
    let newer = json.replace("\"version\": 1", "\"version\": 2");
    assert!(matches!(Cassette::parse(newer.as_bytes()), Err(CassetteError::Version(2))));
    let unknown = json.replace("\"version\": 1", "\"version\": 1, \"x\": 1");
    assert!(matches!(Cassette::parse(unknown.as_bytes()), Err(CassetteError::Malformed(_))));
    assert!(matches!(Cassette::parse(b"{"), Err(CassetteError::Malformed(_))));
}
