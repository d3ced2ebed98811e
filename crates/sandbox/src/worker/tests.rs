//! What a worker takes after its first request.

use super::*;
use bailey_protocol::MergeKind;

fn lines(requests: &[Request]) -> Vec<u8> {
    let line = |request| [serde_json::to_vec(request).unwrap(), b"\n".to_vec()].concat();
    requests.iter().flat_map(line).collect()
}

fn served(first: Request, rest: &[u8]) -> (io::Result<()>, usize) {
    let mut replies = Vec::new();
    let served = serve(first, Unseen::default(), rest, &mut replies);
    (served, replies.iter().filter(|byte| **byte == b'\n').count())
}

#[test]
fn after_names_it_goes_on_and_after_a_file_it_ends() {
    let path = WsPath("/etc/hostname".into());
    let names = || Request::Resolve { action: Action::Stat { path: path.clone() }, workspace: "/".into() };
    let file = || Request::Perform { action: Action::Stat { path: path.clone() } };
    let (done, replies) = served(names(), &lines(&[names(), names(), file(), names(), file()]));
    assert_eq!((done.is_ok(), replies), (true, 4));
    let (done, replies) = served(file(), &lines(&[names(), file()]));
    assert_eq!((done.is_ok(), replies), (true, 1));
    let (done, replies) = served(names(), &lines(&[]));
    assert_eq!((done.is_ok(), replies), (true, 1), "whoever asks no more is no error");
}

/// It was made to see a workspace, and the warden looked at its first request only.
#[test]
fn what_was_not_looked_at_is_not_taken() {
    let names = || Request::Resolve { action: Action::Stat { path: "/".into() }, workspace: "/".into() };
    let merge = Merge::of_files(MergeKind::Apply, None, Vec::new());
    let text = |text: &str| text.to_owned();
    let merge = Request::Merge {
        merge,
        upper: text("/u"),
        project: text("/p"),
        backup: text("/b"),
        carried: None,
        bases: None,
    };
    for other in [
        merge,
        Request::Diff {
            upper: text("/u"),
            project: text("/p"),
            is_copy: false,
            also: Vec::new(),
            bases: None,
        },
    ] {
        let (done, replies) = served(names(), &lines(&[other]));
        assert_eq!((done.unwrap_err().kind(), replies), (io::ErrorKind::InvalidData, 1));
    }
    let (done, _) = served(names(), b"{\"request\": \"resol\n");
    assert!(done.is_err(), "no request");
}

/// Who was cancelled between a request and its end never hears what came of it, so it is not done.
#[test]
fn a_request_that_did_not_come_to_its_end_is_not_taken() {
    let names = || Request::Resolve { action: Action::Stat { path: "/".into() }, workspace: "/".into() };
    let whole = lines(&[names()]);
    let (done, replies) = served(names(), &whole[..whole.len() - 1]);
    assert_eq!((done.is_ok(), replies), (true, 1));
    let (done, replies) = served(names(), &whole);
    assert_eq!((done.is_ok(), replies), (true, 2), "the control");
}
