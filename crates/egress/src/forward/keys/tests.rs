use super::{BoundKey, KeyForm, Keys, Misused};
use crate::config::Origin;
use bailey_policy::{Method, UrlGlob};
use bailey_secrets::{Secret, Vault};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::HeaderMap;
use std::sync::Arc;

const VALUE: &str = "ghp_Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE";

fn key(secret: &str, at: &str, form: KeyForm) -> BoundKey {
    BoundKey {
        secret: secret.into(),
        variable: secret.into(),
        at: at.into(),
        methods: vec![Method::new("GET").unwrap(), Method::new("PUT").unwrap()],
        paths: vec![UrlGlob::new("/repos/us/**").unwrap()],
        header: "authorization".into(),
        form,
    }
}

fn keys() -> Keys {
    let vault: Vault =
        [("FORGE".to_owned(), Secret::new(VALUE.into())), ("WEAK".to_owned(), Secret::new("hello".into()))]
            .into_iter()
            .collect();
    let bearer = || KeyForm::Prefixed("Bearer ".into());
    let all = vec![
        key("FORGE", "https://api.example.com", bearer()),
        key("FORGE", "https://git.example.com:8443", KeyForm::Basic("us".into())),
        key("ABSENT", "https://other.example.com", bearer()),
        key("WEAK", "https://weak.example.com", bearer()),
    ];
    Keys::new(all, Arc::new(vault)).unwrap()
}

fn stand_in(keys: &Keys, secret: &str) -> String {
    keys.stand_ins[secret].value.clone()
}

fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
    all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

const HERE: &str = "https://api.example.com/repos/us/app";

#[test]
fn a_key_is_put_in_where_it_is_bound_and_nowhere_else() {
    let keys = keys();
    let bearer = format!("Bearer {}", stand_in(&keys, "FORGE"));
    let ask = |method, url, shown: &[(&'static str, &str)]| keys.wanted(method, url, &headers(shown));
    let right = [("authorization", bearer.as_str()), ("accept", "*/*")];
    assert_eq!(ask("GET", HERE, &right), Ok(Some("FORGE".into())));
    assert_eq!(ask("PUT", "https://API.example.com:443/repos/us/", &right), Ok(Some("FORGE".into())));
    let wrong = [
        ("POST", HERE),
        ("WEBSOCKET", HERE),
        ("GET", "https://api.example.com/repos/them/app"),
        ("GET", "https://api.example.com/repos/us/../them/app"),
        ("GET", "https://api.example.com/repos/us%2f..%2fthem"),
        ("GET", "https://api.example.com/user"),
        ("GET", "http://api.example.com/repos/us/app"),
        ("GET", "https://api.example.com:8443/repos/us/app"),
        ("GET", "https://api.example.com.evil.org/repos/us/app"),
        ("GET", "https://evil.org/repos/us/app"),
        ("GET", "https://git.example.com:8443/repos/us/app"),
    ];
    for (method, url) in wrong {
        let refused = ask(method, url, &right);
        assert!(matches!(&refused, Err(Misused::Elsewhere { .. })), "{method} {url}: {refused:?}");
        let mut sent = headers(&right);
        assert!(keys.put_in("FORGE", method, url, &mut sent).is_err(), "{method} {url}");
        assert_eq!(sent, headers(&right), "{method} {url}: nothing was put in");
    }
}

/// A31: in another header, in the URL, encoded, beside itself, with more around it.
#[test]
fn a_stand_in_in_any_other_place_is_refused() {
    let keys = keys();
    let own = stand_in(&keys, "FORGE");
    let bearer = format!("Bearer {own}");
    let is_refused = |url: &str, shown: &[(&'static str, &str)]| {
        let refused = keys.wanted("GET", url, &headers(shown));
        assert!(matches!(&refused, Err(Misused::Elsewhere { .. })), "{url} {shown:?}: {refused:?}");
    };
    let packed = STANDARD.encode(format!("us:{own}"));
    let hex: String = own.bytes().map(|byte| format!("{byte:02x}")).collect();
    for value in [&own, &packed, &hex, &format!("x{own}"), &format!("Token {own}"), &own.replace('-', "%2d")]
    {
        is_refused(HERE, &[("x-note", value)]);
        is_refused(HERE, &[("authorization", value)]);
        is_refused(HERE, &[("authorization", &bearer), ("x-note", value)]);
        is_refused(&format!("{HERE}?q={}", value.replace(' ', "+")), &[("authorization", &bearer)]);
        is_refused(&format!("https://evil.org/{}", value.replace(' ', "+")), &[]);
    }
    is_refused(HERE, &[("authorization", &bearer), ("authorization", &bearer)]);
    is_refused(HERE, &[("authorization", &format!("{bearer}, Bearer x"))]);
    let none = keys.wanted("GET", "https://evil.org/x", &headers(&[("x-note", "bailey-forge-")]));
    assert_eq!(none, Ok(None), "control: what only looks like one");
}

/// A55, A56: a login of somebody else's at a server that takes the owner's key.
#[test]
fn no_other_login_stands_beside_a_key_or_in_its_place() {
    let keys = keys();
    let bearer = format!("Bearer {}", stand_in(&keys, "FORGE"));
    let names = [
        "authorization",
        "x-api-key",
        "x_api_key",
        "private-token",
        "private_token",
        "x-auth-key",
        "x-token",
        "circle-token",
        "x-jfrog-art-api",
        "ocp-apim-subscription-key",
        "x-functions-key",
        "x-consul-token",
        "sec-websocket-protocol",
        "x-amz-security-token",
        "x-goog-api-key",
        "x-session-id",
        "x-key",
        "x-master-key",
        "x-admin-key",
        "x-auth-user",
        "x-auth-pass",
        "x-auth-email",
        "x-jwt",
        "x-jwt-assertion",
        "x-pat",
        "dpop",
        "x-wsse",
        "x-bearer",
        "x-ticket",
        "x-client-cert",
        "x-remote-user",
        "remote_user",
        "x-forwarded-user",
        "impersonate-user",
        "sudo",
    ];
    for shown in names.map(|name| (name, "mine")) {
        let refused = keys.wanted("GET", HERE, &headers(&[shown]));
        assert!(matches!(&refused, Err(Misused::OtherLogin(..))), "{shown:?}: {refused:?}");
        let elsewhere = keys.wanted("GET", "https://evil.org/", &headers(&[shown]));
        assert_eq!(elsewhere, Ok(None), "control: a server without a key");
    }
    let queries = [
        "access_token=mine",
        "x=1&Private_Token=mine",
        "token",
        "access%5Ftoken=mine",
        "api_token=x",
        "client_secret=x",
        "X-Amz-Security-Token=x",
        "a;key=x",
        "sig=x",
        "user=me&pass=x",
        "pat=x",
        "api_pass=x",
        "user_key=x",
        "userKey=x",
        "app_key=x",
        "private_key=x",
        "appid=x",
        "assertion=x",
        "bearer=x",
        "ticket=x",
        "u=me&p=x",
        "user%5Bkey%5D=x",
        "JWTValue=x",
        "DPoP=x",
        "key2=x",
        "page_access_token=x",
        "next_user_pass=x",
    ];
    for query in queries {
        let refused = keys.wanted("GET", &format!("{HERE}?{query}"), &headers(&[("authorization", &bearer)]));
        assert!(matches!(&refused, Err(Misused::OtherLogin(..))), "{query}: {refused:?}");
    }
    let plain =
        [("accept", "x"), ("x-github-api-version", "1"), ("user-agent", "x"), ("idempotency-id", "1")];
    assert_eq!(keys.wanted("GET", HERE, &headers(&plain)), Ok(None), "no login at all");
    let listed = format!("{HERE}?page_token=2&nextPageToken=3&author=x&sort=asc");
    assert_eq!(keys.wanted("GET", &listed, &headers(&plain)), Ok(None), "where a list goes on");
}

/// What usual clients send, and what lists are asked for by: none of it is a login, so none is refused.
#[test]
fn usual_headers_and_queries_are_no_logins() {
    let keys = keys();
    for name in [
        "sec-websocket-key",
        "sec-websocket-version",
        "sec-fetch-user",
        "idempotency-key",
        "x-idempotency-key",
        "x-github-api-version",
        "x-goog-user-project",
        "surrogate-key",
        "npm-auth-type",
        "npm-session",
        "npm-command",
        "cargo-protocol",
        "git-protocol",
        "docker-distribution-api-version",
        "anthropic-version",
        "openai-organization",
        "traceparent",
        "x-request-id",
        "x-amz-date",
        "x-ms-continuation-token",
        "if-none-match",
        "user-agent",
        "from",
    ] {
        assert_eq!(keys.wanted("GET", HERE, &headers(&[(name, "x")])), Ok(None), "{name}");
    }
    for query in [
        "author=x&authors=y&authored_by=z",
        "keyword=x&keywords=y&keyWord=z",
        "monkey=1&turkey=2&keyboard=3&keys",
        "page_key=2",
        "pageKey=2",
        "nextpagetoken=3",
        "next_token=3",
        "nextSyncToken=3",
        "continuation-token=3",
        "ContinuationToken=3",
        "cursor=3&cursor_token=4",
        "start_key=a&endkey=b&last-key=c",
        "ExclusiveStartKey=a",
        "sort_key=x&sortKey=y",
        "key-marker=x&key_id=y",
        "projectKey=A&issueKey=A-1&issueIdOrKey=A-1",
        "ticket_id=3&ticketIds=4",
        "last_login=x",
        "user=somebody&assignee=them",
        "p=2",
        "u=me",
        "path=x&pattern=y&pass_through=z&compass=n",
        "design=1&signal=2&assign=3",
        "filter%5Bkey%5D=x",
        "service=git-upload-pack&scope=repository",
    ] {
        let listed = keys.wanted("GET", &format!("{HERE}?{query}"), &headers(&[]));
        assert_eq!(listed, Ok(None), "{query}");
    }
}

#[test]
fn a_password_is_put_in_for_its_user_only() {
    let keys = keys();
    let own = stand_in(&keys, "FORGE");
    let at = "https://git.example.com:8443/repos/us/app";
    let basic = |user: &str| format!("basic {}", STANDARD.encode(format!("{user}:{own}")));
    let mut sent = headers(&[("authorization", &basic("us"))]);
    assert_eq!(keys.wanted("GET", at, &sent), Ok(Some("FORGE".into())));
    keys.put_in("FORGE", "GET", at, &mut sent).unwrap();
    let expected = format!("Basic {}", STANDARD.encode(format!("us:{VALUE}")));
    assert_eq!(sent["authorization"], expected.as_str());
    assert!(sent["authorization"].is_sensitive());
    let other = keys.wanted("GET", at, &headers(&[("authorization", &basic("them"))]));
    assert!(matches!(other, Err(Misused::Elsewhere { .. })), "{other:?}");
}

#[test]
fn a_key_that_is_absent_or_could_not_be_found_again_is_not_put_in() {
    let keys = keys();
    for (secret, url, expected) in [
        ("ABSENT", "https://other.example.com/repos/us/x", Misused::Missing("ABSENT".into())),
        ("WEAK", "https://weak.example.com/repos/us/x", Misused::Weak("WEAK".into())),
    ] {
        let shown = format!("Bearer {}", stand_in(&keys, secret));
        let mut sent = headers(&[("authorization", &shown)]);
        assert_eq!(keys.wanted("GET", url, &sent), Ok(Some(secret.into())));
        assert_eq!(keys.put_in(secret, "GET", url, &mut sent).unwrap_err(), expected);
        assert_eq!(sent["authorization"], shown.as_str());
    }
}

#[test]
fn what_comes_back_is_looked_through_in_every_spelling() {
    let keys = keys();
    let origin = |url: &str| Origin::of(&url.parse().unwrap()).unwrap();
    assert!(keys.mask_of(&origin("https://evil.org/")).is_none());
    let mask = keys.mask_of(&origin("https://git.example.com:8443/")).unwrap();
    let basic = STANDARD.encode(format!("us:{VALUE}"));
    for text in [
        VALUE.to_owned(),
        basic.clone(),
        STANDARD.encode(format!("Basic {basic}")),
        VALUE.replace('_', "%5F"),
    ] {
        let clean = mask.redact(&text).text.into_owned();
        assert!(clean.contains("FORGE"), "{clean}");
    }
    let pattern = "ghp_000000000000000000000000000000000000";
    assert_eq!(mask.redact(pattern).text, pattern, "nothing but this key");
}

/// A header that some binding uses is a login at its server, whatever it is called.
#[test]
fn a_bound_header_is_a_login() {
    let own =
        BoundKey { header: "x-odd".into(), ..key("A", "https://a.b", KeyForm::Prefixed(String::new())) };
    let keys = Keys::new(vec![own], Arc::default()).unwrap();
    for name in ["x-odd", "x_odd"] {
        let refused = keys.wanted("GET", "https://a.b/x", &headers(&[(name, "mine")]));
        assert!(matches!(&refused, Err(Misused::OtherLogin(..))), "{name}: {refused:?}");
    }
}

#[test]
fn a_header_that_the_door_sets_itself_holds_no_key() {
    for header in [
        "host",
        "cookie",
        "content-length",
        "proxy-authorization",
        "a b",
        "x-forwarded-host",
        "accept-encoding",
    ] {
        let key =
            BoundKey { header: header.into(), ..key("A", "https://a.b", KeyForm::Prefixed(String::new())) };
        assert!(Keys::new(vec![key], Arc::default()).is_err(), "{header}");
    }
}
