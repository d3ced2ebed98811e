use super::{UrlGlob, UrlGlobError, UrlPath};
use crate::fit::Fit;
use alloc::{format, string::ToString as _};

fn fit(glob: &str, path: &str) -> Fit {
    UrlGlob::new(glob).unwrap().fit(&UrlPath::of(&format!("https://example.com{path}")))
}

#[test]
fn a_path_is_compared_name_by_name_and_without_its_query() {
    for (glob, path, expected) in [
        ("/simple/**", "/simple/six/", Fit::Yes),
        ("/simple/**", "/simple", Fit::Yes),
        ("/simple/", "/simple/six", Fit::Yes),
        ("/simple/*", "/simple/six?x=/other", Fit::Yes),
        ("/simple/*", "/simple/six#/other", Fit::Yes),
        ("/simple/six", "/simple/six/", Fit::Yes),
        ("/simple/six", "/simple/si%78", Fit::Yes),
        ("/größe", "/gr%C3%B6%c3%9fe", Fit::Yes),
        ("/simple/*", "/simple/six/more", Fit::Maybe),
        ("/simple/*", "/other/six", Fit::No),
        ("/simple/*", "/Simple/six", Fit::No),
        ("/", "", Fit::Yes),
        ("/", "/", Fit::Yes),
        ("/", "?x", Fit::Yes),
        ("/", "/any", Fit::Maybe),
        ("/", "/any/where/", Fit::Maybe),
        ("/**", "/any/where", Fit::Yes),
    ] {
        assert_eq!(fit(glob, path), expected, "{glob} {path}");
    }
}

#[test]
fn a_query_that_is_written_has_to_be_the_same() {
    for (glob, path, expected) in [
        ("/refs?service=a", "/refs?service=a", Fit::Yes),
        ("/refs?service=a", "/refs/?service=a#more", Fit::Yes),
        ("/refs?service=a", "/other?service=a", Fit::No),
        ("/refs?service=a", "/refs", Fit::Maybe),
        ("/refs?service=a", "/refs?service=b", Fit::Maybe),
        ("/refs?service=a", "/refs?service=a&service=b", Fit::Maybe),
        ("/refs?service=a", "/refs#?service=a", Fit::Maybe),
        ("/refs?service=a", "/refs?SERVICE=a", Fit::Maybe),
        ("/refs?a=b&c=d", "/refs?a=b&c=d", Fit::Yes),
        ("/refs?a=b&c=d", "/refs?c=d&a=b", Fit::Maybe),
        ("/refs/?service=a", "/refs/?service=a", Fit::Yes),
        ("/refs/?service=a", "/refs/more?service=a", Fit::Maybe),
        ("/refs?service=a", "/refs?x?service=a", Fit::Maybe),
        ("/refs?service=a", "/refs??service=a", Fit::Maybe),
        ("/**?service=a", "/any/where?service=a", Fit::Yes),
        ("/**?service=a", "/any/where", Fit::Maybe),
        ("/?service=a", "?service=a", Fit::Yes),
        ("/?service=a", "/?service=b", Fit::Maybe),
    ] {
        assert_eq!(fit(glob, path), expected, "{glob} {path}");
    }
    for text in ["/refs?service=a", "/**?a=b", "/?a=b", "/x"] {
        let glob = UrlGlob::new(text).unwrap();
        assert_eq!(glob.to_string(), text);
        let json = serde_json::to_string(&glob).unwrap();
        assert_eq!(serde_json::from_str::<UrlGlob>(&json).unwrap(), glob, "{text}: nothing is lost");
    }
}

/// An allow needs a yes: what one server takes for another path than the next one passes by no rule about
/// paths.
#[test]
fn what_servers_read_differently_is_certain_for_nobody() {
    for path in [
        "/open/../closed",
        "/open/./x",
        "/open/%2e%2e/closed",
        "/open/.%2E/closed",
        "/open/..;/closed",
        "/open/..;a=b/closed",
        "/open/%252e%252e/closed",
        "/open/x%2f..%2f..%2fclosed",
        "/open/a%2fb/../../closed",
        "/open//x",
        "/open/%5c..%5cclosed",
        "/open/%00",
        "/open/%0d%0a",
        "/open/%zz",
        "/open/%2",
        "/open/%ff",
        "/open/..%20/x",
        "/open/%EF%BC%8E%EF%BC%8E/x",
        "/open/;a/x",
    ] {
        assert_eq!(fit("/open/**", path), Fit::Maybe, "{path}");
        assert_eq!(fit("/closed/**", path), Fit::Maybe, "{path}: a deny fits, too");
        assert_eq!(fit("/**", path), Fit::Yes, "{path}");
    }
}

#[test]
fn an_encoded_slash_is_read_both_ways() {
    assert_eq!(fit("/@types/*", "/@types%2fnode"), Fit::Maybe);
    assert_eq!(fit("/**", "/@types%2fnode"), Fit::Yes);
    assert_eq!(fit("/@types/**", "/@types/no%2Fde"), Fit::Yes);
    assert_eq!(fit("/other/**", "/@types%2fnode"), Fit::No);
}

#[test]
fn parameters_of_a_name_are_read_both_ways() {
    assert_eq!(fit("/admin/**", "/admin;x/secret"), Fit::Maybe, "a deny fits");
    assert_eq!(fit("/admin/**", "/admin%3bx/secret"), Fit::Maybe);
    assert_eq!(fit("/open/*", "/open/a;b=c"), Fit::Yes);
    assert_eq!(fit("/open/a", "/open/a;b"), Fit::Maybe);
}

#[test]
fn a_glob_that_no_path_is_compared_with_is_refused() {
    for (text, error) in [
        ("simple/*", UrlGlobError::Relative),
        ("{home}/x", UrlGlobError::Relative),
        ("/file?.txt", UrlGlobError::Query(".txt".into())),
        ("/x?", UrlGlobError::Query("".into())),
        ("/x?=y", UrlGlobError::Query("=y".into())),
        ("/x?a=b&", UrlGlobError::Query("a=b&".into())),
        ("/x?a=*", UrlGlobError::Query("a=*".into())),
        ("/x?a=b?c=d", UrlGlobError::Query("a=b?c=d".into())),
        ("/x?a=%2f", UrlGlobError::Query("a=%2f".into())),
        ("/a%2fb", UrlGlobError::Character('%')),
        ("/a#b", UrlGlobError::Character('#')),
    ] {
        assert_eq!(UrlGlob::new(text), Err(error), "{text}");
    }
    assert!(UrlGlob::new("/a/../b").is_err());
}

#[test]
fn a_set_of_paths_fits_where_it_is_certain() {
    let glob = |text| UrlGlob::new(text).unwrap();
    assert_eq!(glob("/**").fit_all(&glob("/a")), Fit::Yes);
    assert_eq!(glob("/a/*").fit_all(&glob("/a/*")), Fit::Yes);
    assert_eq!(glob("/a/*").fit_all(&glob("/a/b")), Fit::Maybe);
    assert_eq!(glob("/a?b=c").fit_all(&glob("/a?b=c")), Fit::Yes);
    assert_eq!(glob("/a?b=c").fit_all(&glob("/a")), Fit::Maybe);
    assert_eq!(glob("/**").fit_all(&glob("/a?b=c")), Fit::Yes);
    assert_eq!(glob("/**?b=c").fit_all(&glob("/a?b=c")), Fit::Maybe);
}
