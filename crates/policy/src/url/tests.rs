use super::{UrlGlob, UrlGlobError, UrlPath};
use crate::fit::Fit;
use alloc::format;

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

/// An allow needs a yes: what one server takes for another path than the next one passes by no rule about paths.
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
        ("/x?service=y", UrlGlobError::Character('?')),
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
}
