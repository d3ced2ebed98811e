//! What the door answers by itself: whoever reads it is a program, its agent, and then a person.

use super::{
    body::{Answered, text},
    dial::{is_of_a_cloud, is_private},
};
use bailey_policy::{HostGlob, Method, UrlGlob, is_final};
use bailey_protocol::Digest;
use hyper::{Response, StatusCode, Uri, header::HeaderValue};

/// The longest rule that stands in a line, in bytes.
const RULE_BYTES_MAX: usize = 400;
/// How many digits of a digest tell two paths in names apart.
const DIGITS: usize = 6;

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
    let mut why =
        format!("Bailey's network door refused this request: {method} {url}\n{}\n", reasons.join("; "));
    if is_of_a_cloud(url) {
        why += "\nAt this address a cloud gives a machine its own secrets: no request goes there, whatever \
            a rule says.\n";
        return told(StatusCode::FORBIDDEN, why);
    }
    if reasons.iter().any(|reason| is_final(reason)) {
        why += "\nA rule denies this request, and a rule that allows it does not change that.\n";
        return told(StatusCode::FORBIDDEN, why);
    }
    if let Some(Allowing { name, matching }) = Allowing::of(method, url) {
        // The rule comes last, for who copies it with all that follows.
        let too = other_place(url).map(|place| {
            format!("; there it is reached where `[network] private` in config.toml names \"{place}\", too")
        });
        why += &format!(
            "\nTo let it pass, the owner of this Bailey adds a rule (see `bailey guide network`){}:\n\n[[rule]]\nname = \"{name}\"\n\
             answer = \"allow\"\n{matching}\n",
            too.unwrap_or_default()
        );
    }
    told(StatusCode::FORBIDDEN, why)
}

/// What a person is told of a refusal, many of whose programs show nothing of its body.
pub(super) fn why_denied(method: &str, url: &str, reasons: &[String]) -> String {
    if reasons.iter().any(|reason| is_final(reason)) {
        return "a rule denies it".into();
    }
    let rule = Allowing::of(method, url).filter(|_| !is_of_a_cloud(url));
    let Some(rule) = rule else { return "no rule allows it".into() };
    // One that is cut off would be another one.
    if rule.matching.len() > RULE_BYTES_MAX {
        return "no rule allows it, and one that does is too long to stand here".into();
    }
    let too = other_place(url).map(|place| format!(", where `[network] private` names \"{place}\", too"));
    format!(
        "no rule allows it; one with answer = \"allow\", {} does{}",
        rule.matching,
        too.unwrap_or_default()
    )
}

/// The server of a URL that rules alone do not open: at another port than the usual ones, or at an address
/// that is none of the world.
fn other_place(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let is_other = authority.port_u16().is_some_and(|port| !matches!(port, 80 | 443));
    (is_other || is_private(authority.host())).then(|| format!("{scheme}://{authority}"))
}

/// A rule that lets a request pass.
struct Allowing {
    name: String,
    matching: String,
}

impl Allowing {
    /// None where no rule can be written.
    fn of(method: &str, url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let host = uri.authority()?.as_str();
        // What is no plain host would be another rule than it looks like; what no rule can name, none allows.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        let can_be = host.bytes().all(is_plain) && HostGlob::new(host).is_ok() && Method::new(method).is_ok();
        let (name, what) =
            of_git(&uri).or_else(|| of_what_is_sent(method, &uri, url)).unwrap_or_else(|| by_method(method));
        let matching = format!("match = {{ action = \"http\", host = \"{host}\", {what} }}");
        can_be.then(|| Self { name: rule_name(host, &name), matching })
    }
}

pub(super) fn failed(method: &str, url: &str, why: &str) -> Response<Answered> {
    told(
        StatusCode::BAD_GATEWAY,
        format!("Bailey's network door could not pass this on: {method} {url}\n{why}\n"),
    )
}

/// What git does with a repository takes several requests of different methods (its `http-protocol`): what it
/// does, and all of them.
fn of_git(uri: &Uri) -> Option<(String, String)> {
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let (at, service) = match path.strip_suffix("/info/refs") {
        Some(at) => (at, query.strip_prefix("service=")?),
        None => path.rsplit_once('/')?,
    };
    let at = at.strip_prefix('/')?;
    let is_plain = |name: &str| {
        let mut bytes = name.bytes();
        !name.is_empty()
            && name != ".."
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    // What is `.git` alone, as a checkout has it, no rule about a repository names.
    if !at.split('/').all(is_plain) || at.rsplit('/').next() == Some(".git") {
        return None;
    }
    match service {
        "git-upload-pack" => {
            let repository = at.strip_suffix(".git").unwrap_or(at);
            Some((
                format!("fetch-{repository}"),
                format!("method = [\"GET\", \"POST\"], repository = \"{repository}\""),
            ))
        }
        "git-receive-pack" => Some((
            format!("push-{at}"),
            format!(
                "method = [\"GET\", \"POST\"], url_path = [\"/{at}/info/refs?service=git-receive-pack\", \"/{at}/git-receive-pack\"]"
            ),
        )),
        _ => None,
    }
}

/// What a server is asked to tell, it may tell of all its pages.
fn by_method(method: &str) -> (String, String) {
    (method.to_ascii_lowercase(), format!("method = \"{method}\""))
}

/// What a server is asked to do, it may do at this path alone: nobody should open all of a host for one
/// request. None where a rule about the path would be another one than it looks like, or none.
fn of_what_is_sent(method: &str, uri: &Uri, url: &str) -> Option<(String, String)> {
    // At the end of a glob a slash stands for all that lies below, and at the end of a request for nothing.
    let path = uri.path().strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(uri.path());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~:@+".contains(&byte);
    let is_wanted = !matches!(method, "GET" | "HEAD") && path.bytes().all(is_plain);
    let fits = is_wanted && UrlGlob::new(path).is_ok_and(|glob| glob.is_match(url));
    let (name, by_method) = by_method(method);
    // A name has fewer letters than a path, and may be cut: what differs in the others is another rule.
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let digest = Digest::of(format!("{method} {host} {path}").as_bytes()).to_string();
    let digest = digest.get(..DIGITS).unwrap_or_default();
    fits.then(|| (format!("{name}-{path}-{digest}"), format!("{by_method}, url_path = \"{path}\"")))
}

/// A name that a rule may have, and that for another host or another thing is not.
fn rule_name(host: &str, what: &str) -> String {
    let text = format!("{host}-{what}");
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    let name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    // A name has 100 letters at most, and all of them are ASCII.
    name.get(name.len().saturating_sub(100)..).unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{denied, rule_name, why_denied};
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

    async fn said(method: &str, url: &str, why: &str) -> String {
        let body = denied(method, url, &[why.into()]).into_body();
        String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    /// No rule alone opens another port than the usual ones, or an address that is none of the world.
    #[tokio::test]
    async fn a_rule_for_another_port_or_a_private_address_says_what_it_takes_besides() {
        let no_rule = ["no rule allows it".to_owned()];
        for (url, is_other) in [
            ("http://a.example:8080/x", true),
            ("https://[::1]:8443/", true),
            ("http://10.0.0.1/x", true),
            ("https://[fd12::1]/", true),
            ("http://localhost/", true),
            ("http://dev.localhost/", true),
            ("http://93.184.216.34/", false),
            ("http://a.example/x", false),
            ("https://a.example:443/x", false),
        ] {
            let told = [said("GET", url, &no_rule[0]).await, why_denied("GET", url, &no_rule)];
            assert_eq!(told.map(|told| told.contains("[network] private")), [is_other; 2], "{url}");
        }
        let told = why_denied("GET", "http://a.example:8080/x?y", &no_rule);
        assert!(
            told.ends_with(" does, where `[network] private` names \"http://a.example:8080\", too"),
            "{told}"
        );
    }

    /// A clone that may ask is refused its next request, and another method no rule allows.
    #[tokio::test]
    async fn the_rule_that_is_printed_lets_pass_what_was_asked_for() {
        let fetch = "method = [\"GET\", \"POST\"], repository = \"our/app\" }";
        let push = "method = [\"GET\", \"POST\"], url_path = [\"/our/app.git/info/refs?service=git-receive-pack\", \"/our/app.git/git-receive-pack\"] }";
        for (method, url, what) in [
            ("GET", "https://a.example/our/app.git/info/refs?service=git-upload-pack", Some(fetch)),
            ("POST", "https://a.example/our/app/git-upload-pack", Some(fetch)),
            ("GET", "https://a.example/our/app.git/info/refs?service=git-receive-pack", Some(push)),
            ("POST", "https://a.example/our/app.git/git-receive-pack", Some(push)),
            ("GET", "https://a.example/our/app.git/info/refs", Some("method = \"GET\" }")),
            (
                "GET",
                "https://a.example/our/.git/info/refs?service=git-upload-pack",
                Some("method = \"GET\" }"),
            ),
            ("GET", "https://a.example/.git/info/refs?service=git-receive-pack", Some("method = \"GET\" }")),
            ("GET", "https://a.example/../x/info/refs?service=git-upload-pack", Some("method = \"GET\" }")),
            ("GET", "https://a.example/%2e%2e/info/refs?service=git-upload-pack", Some("method = \"GET\" }")),
            ("GET", "https://a.example/a\"b/git-upload-pack", Some("method = \"GET\" }")),
            // What is asked to be done is opened at its own path, where a rule can name that.
            ("POST", "https://a.example/", Some("method = \"POST\", url_path = \"/\" }")),
            ("PUT", "https://a.example/a/b-1?c=d", Some("method = \"PUT\", url_path = \"/a/b-1\" }")),
            ("DELETE", "https://a.example/a/b/", Some("method = \"DELETE\", url_path = \"/a/b\" }")),
            ("POST", "https://a.example/a/*", Some("method = \"POST\" }")),
            ("POST", "https://a.example/a/%62", Some("method = \"POST\" }")),
            ("POST", "https://a.example/a//b", Some("method = \"POST\" }")),
            ("POST", "https://a.example/a/../b", Some("method = \"POST\" }")),
            ("GET", "https://a.example/a/b", Some("method = \"GET\" }")),
            ("get", "https://a.example/", None),
            ("M-SEARCH", "https://a.example/", None),
            ("GETGETGETGETGETGETGETGETGETGETGETGET", "https://a.example/", None),
            ("GET", "https://a..example/", None),
        ] {
            let told = said(method, url, "no rule allows it").await;
            assert_eq!(told.contains("[[rule]]"), what.is_some(), "{method} {url}: {told}");
            assert!(told.contains(what.unwrap_or_default()), "{method} {url}: {told}");
            // And to the person, in a line.
            let why = why_denied(method, url, &["no rule allows it".into()]);
            assert!(why.starts_with("no rule allows it") && why.contains(what.unwrap_or_default()), "{why}");
            assert_eq!(why.contains("match = {"), what.is_some(), "{why}");
        }
        let long = format!("https://a.example/{}/git-upload-pack", "a".repeat(500));
        let told = why_denied("POST", &long, &[]);
        assert!(
            !told.contains("match") && told.ends_with("too long to stand here"),
            "cut off, it would be another one: {told}"
        );
        assert_eq!(why_denied("GET", "http://169.254.169.254/", &[]), "no rule allows it");
        // No rule lifts what another one denies.
        let told = said("GET", "https://a.example/", "never there (user rule `never`: deny)").await;
        assert!(!told.contains("[[rule]]") && told.contains("A rule denies this request"), "{told}");
        let told =
            said("GET", "https://a.example/", "no rule allows this (built-in rule `default`: deny)").await;
        assert!(told.contains("[[rule]]"), "{told}");
    }

    /// Two rules of one name are a mistake that stops a home.
    #[tokio::test]
    async fn rules_about_paths_have_names_of_their_own() {
        let long = "a".repeat(120);
        let mut names = Vec::new();
        for (method, path) in [
            ("POST", "/"),
            ("POST", "/a/b"),
            ("POST", "/a-b"),
            ("POST", "/a@b"),
            ("PUT", "/a/b"),
            ("POST", "/%61"),
            ("POST", &format!("/{long}/x")),
            ("PUT", &format!("/{long}/x")),
            ("POST", &format!("/x/{long}/x")),
        ] {
            let told = said(method, &format!("https://a.example{path}"), "no rule allows it").await;
            let name = told.split("name = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
            assert!(name.len() <= 100, "{name}");
            names.push(name);
        }
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
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
        let names = asked.map(|(host, method)| rule_name(host, &method.to_ascii_lowercase()));
        assert_eq!(names, ["pypi.org-get", "pypi.org-post", "127.0.0.1-8080-get", "1-80-get", "a_b.c-get"]);
        let long = rule_name(&"a".repeat(253), "delete");
        assert!(long.len() == 100 && long.ends_with("a-delete"), "{long}");
        assert_eq!(rule_name("a", "m#%s"), "a-m-s");
    }
}
