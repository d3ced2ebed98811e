use super::{HeaderMap, HeaderName, HeaderValue, StatusCode, behind, check_plain, header, without_overrides};

fn checked(media: &[&str]) -> Result<(), String> {
    let mut headers = HeaderMap::new();
    for media in media {
        headers.append(header::CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
    }
    check_plain(StatusCode::OK, &headers)
}

#[test]
fn a32_an_answer_in_other_letters_is_not_passed_on_however_it_names_them() {
    for media in [
        &["text/plain; charset=utf-32"][..],
        &["text/plain; charset = utf-32"],
        &["text/plain;charset\t=\t\"utf-32\""],
        &["text/plain; charset=\"utf-8"],
        &["text/plain; charset=\"u\\tf-32\""],
        &["text/plain; note=\"charset=utf-8\"; charset=utf-32"],
        &["text/plain; note=\"\\\"; charset=utf-8; x=\"; charset=utf-32"],
        &["text/plain; charset=utf-8; charset=utf-32"],
        &["text/plain; charset=utf-8", "text/plain; charset=utf-32"],
        &["text/plain; charset=utf-8, text/plain; charset=utf-32"],
        &["text/plain, text/plain; charset=utf-32"],
        &["text/plain; charset*=utf-8''utf-32"],
        &["text/plain; charset*0=utf; charset*1=-32"],
        &["text/plain; charset=utf-8-not"],
        &["text/plain; charset=iso-8859-8-e"],
        &["text/plain; charset=utf-7"],
        &["text/plain; charset utf-32"],
        &["text/plain; charset="],
    ] {
        assert!(checked(media).is_err(), "{media:?}");
    }
    for media in [
        &[][..],
        &[""],
        &["text/plain"],
        &["text/html; charset=UTF-8;"],
        &["text/html;charset=\"utf-8\" ; x=y"],
        &["text/plain; charset=iso-8859-15; format=flowed"],
        &["multipart/mixed; boundary=\"a;b=c, d\""],
        &["application/vnd.github+json; charset=utf-8", "text/plain; charset=windows-1252"],
        &["application/json;odata.metadata=minimal"],
    ] {
        assert_eq!(checked(media), Ok(()), "the control: {media:?}");
    }
}

#[test]
fn a_header_that_names_another_host_path_or_method_is_taken_away() {
    let named = [
        "forwarded",
        "x-envoy-original-path",
        "x-forwarded-method",
        "x-forwarded-prefix",
        "x-forwarded-server",
        "x-host",
        "x-http-host-override",
        "x-http-path-override",
        "x-original-host",
        "x-original-method",
        "x-override-url",
        "x-proxy-url",
        "x-real-url",
        "x-request-uri",
        "x_request_uri",
    ];
    let mut headers = HeaderMap::new();
    for name in named.into_iter().chain(["x-forwarded-for", "x-request-id"]) {
        headers.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static("a"));
    }
    without_overrides(&mut headers);
    let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["x-forwarded-for", "x-request-id"], "the control: those name nothing of the kind");
}

#[test]
fn what_says_how_a_body_is_read_does_not_come_behind_it() {
    let mut trailers = HeaderMap::new();
    for name in ["content-length", "transfer-encoding", "set-cookie", "content-type", "grpc-status"] {
        trailers.insert(name, HeaderValue::from_static("0"));
    }
    let kept: Vec<String> = behind(&trailers).keys().map(ToString::to_string).collect();
    assert_eq!(kept, ["grpc-status"]);
}
