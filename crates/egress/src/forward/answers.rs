//! What the door answers by itself: whoever reads it is a program, its agent, and then a person.

use super::{
    body::{Answered, text},
    dial::is_of_a_cloud,
};
use hyper::{Response, StatusCode, Uri, header::HeaderValue};

pub(super) fn told(status: StatusCode, why: String) -> Response<Answered> {
    let mut answer = Response::new(text(why));
    *answer.status_mut() = status;
    answer.headers_mut().insert("content-type", HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// A refusal that no rule lifts.
pub(super) fn refused(status: StatusCode, method: &str, url: &str, why: &str) -> Response<Answered> {
    told(status, format!("Bailey's network door refused this request: {method} {url}\n{why}\n"))
}

/// A refusal by the rules says what would let it pass.
pub(super) fn denied(method: &str, url: &str, reasons: &[String]) -> Response<Answered> {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(|uri| uri.authority()).map_or("", |authority| authority.as_str());
    let mut why =
        format!("Bailey's network door refused this request: {method} {url}\n{}\n", reasons.join("; "));
    if is_of_a_cloud(url) {
        why +=
            "\nThere a cloud tells a machine its own secrets: no request goes there, whatever a rule says.\n";
        return told(StatusCode::FORBIDDEN, why);
    }
    // What is no plain host would be another rule than it looks like.
    if !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
    {
        let name = rule_name(host, method);
        why += &format!(
            "\nTo let it pass, the owner of this Bailey adds a rule (see docs/network.md):\n\n[[rule]]\nname = \"{name}\"\n\
             answer = \"allow\"\nmatch = {{ action = \"http\", host = \"{host}\", method = \"{method}\" }}\n"
        );
    }
    told(StatusCode::FORBIDDEN, why)
}

pub(super) fn failed(method: &str, url: &str, why: &str) -> Response<Answered> {
    told(
        StatusCode::BAD_GATEWAY,
        format!("Bailey's network door could not pass this on: {method} {url}\n{why}\n"),
    )
}

/// A name that a rule may have, and that of another host or method is not.
fn rule_name(host: &str, method: &str) -> String {
    let text = format!("{host}-{}", method.to_ascii_lowercase());
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    let name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    // A name has 100 letters at most, and all of them are ASCII.
    name.get(name.len().saturating_sub(100)..).unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{denied, rule_name};
    use http_body_util::BodyExt as _;

    /// A rule that would let nothing pass is not recommended.
    #[tokio::test]
    async fn what_nobody_may_ask_is_not_said_to_need_a_rule() {
        for (url, may) in [
            ("http://169.254.169.254/latest", false),
            ("http://[fd00:ec2::254]/", false),
            ("http://10.0.0.1/", true),
        ] {
            let body = denied("GET", url, &["no rule allows it".into()])
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes();
            let told = String::from_utf8(body.to_vec()).unwrap();
            assert_eq!(
                (told.contains("[[rule]]"), told.contains("whatever a rule says")),
                (may, !may),
                "{told}"
            );
        }
    }

    #[test]
    fn rules_that_are_printed_have_names_of_their_own() {
        let asked = [
            ("pypi.org", "GET"),
            ("pypi.org", "POST"),
            ("127.0.0.1:8080", "GET"),
            ("[::1]:80", "GET"),
            ("a_b.c", "GET"),
        ];
        let names = asked.map(|(host, method)| rule_name(host, method));
        assert_eq!(names, ["pypi.org-get", "pypi.org-post", "127.0.0.1-8080-get", "1-80-get", "a_b.c-get"]);
        let long = rule_name(&"a".repeat(253), "DELETE");
        assert!(long.len() == 100 && long.ends_with("a-delete"), "{long}");
        assert_eq!(rule_name("a", "M#%S"), "a-m-s");
    }
}
