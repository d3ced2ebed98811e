use super::{Unsendable, build};
use crate::config::{Endpoint, Endpoints};
use bailey_protocol::{HeaderValue, HttpRequest};
use bailey_secrets::{Secret, Vault};

fn request(url: &str) -> HttpRequest {
    let secret = HeaderValue::Secret { name: "KEY".into(), prefix: String::new() };
    HttpRequest {
        method: "POST".into(),
        url: url.into(),
        headers: vec![("x-key".into(), secret)],
        body: "b".into(),
    }
}

fn endpoints() -> Endpoints {
    Endpoints::new(vec![Endpoint {
        url: "https://Example.com/v1".into(),
        secrets: vec!["KEY".into()],
        first_byte_timeout: None,
    }])
    .unwrap()
}

#[test]
fn a_secret_is_marked_as_sensitive() {
    let mut vault = Vault::default();
    vault.insert("KEY".into(), Secret::new("value\n".into()));
    let (sent, origin) = build(request("https://example.com:443/x"), &endpoints(), &vault).unwrap();
    let value = &sent.headers()["x-key"];
    assert!(value.is_sensitive() && value == "value", "white space around a key is not part of it");
    assert!(!format!("{sent:?}").contains("value"));
    assert_eq!(origin.to_string(), "https://example.com");
}

#[test]
fn the_port_and_the_scheme_count() {
    let vault = Vault::default();
    let refused = |url: &str| build(request(url), &endpoints(), &vault).map(|_| ()).unwrap_err();
    assert!(matches!(refused("https://example.com/x"), Unsendable::MissingSecret(_)), "the control");
    assert!(matches!(refused("https://example.com:8443/x"), Unsendable::OtherOrigin(_)));
    assert!(matches!(refused("http://example.com:443/x"), Unsendable::OtherOrigin(_)));
    assert!(matches!(refused("https://example.com./x"), Unsendable::OtherOrigin(_)));
    assert!(matches!(refused("https://example.com\0.evil.test/x"), Unsendable::Url));
}

#[test]
fn spellings_of_another_origin_are_refused() {
    let endpoints = Endpoints::new(vec![Endpoint {
        url: "http://127.0.0.1:8080".into(),
        secrets: vec![],
        first_byte_timeout: None,
    }])
    .unwrap();
    let sent =
        |url: &str| build(HttpRequest { headers: vec![], ..request(url) }, &endpoints, &Vault::default());
    for url in [
        "http://user@127.0.0.1:8080/",
        "http://127.0.0.1:8080@example.com/",
        "https://127.0.0.1:8080/",
        "http://localhost:8080/",
        "http://127.0.0.1.:8080/",
        "http://127.1:8080/",
        "http://2130706433:8080/",
        "http://[::ffff:127.0.0.1]:8080/",
        "ftp://127.0.0.1:8080/",
        "http://127.0.0.1/",
        "http:///",
        "/relative",
        "127.0.0.1:8080",
        "",
    ] {
        assert!(matches!(sent(url), Err(Unsendable::Url | Unsendable::OtherOrigin(_))), "{url}");
    }
    let (request, _) = sent("HTTP://127.0.0.1:8080/any/path?q=1").unwrap();
    assert_eq!(request.uri().path_and_query().unwrap(), "/any/path?q=1");
}

#[test]
fn line_breaks_and_reserved_headers_are_refused() {
    let vault = Vault::default();
    let sent = |name: &str, value: &str| {
        let headers = vec![(name.into(), HeaderValue::Text(value.into()))];
        build(HttpRequest { headers, ..request("https://example.com/") }, &endpoints(), &vault)
    };
    for value in ["a\r\nx-evil: 1", "a\nb", "a\rb", "a\0b"] {
        assert!(matches!(sent("x-a", value), Err(Unsendable::Header(_))), "{value:?}");
        assert!(matches!(sent(value, "a"), Err(Unsendable::Header(_))), "{value:?}");
    }
    for name in ["host", "Host", "content-length", "Transfer-Encoding", "connection"] {
        assert!(matches!(sent(name, "a"), Err(Unsendable::ReservedHeader(_))), "{name}");
    }
    assert_eq!(sent("x-a", "a b").unwrap().0.headers()["x-a"], "a b");
}
