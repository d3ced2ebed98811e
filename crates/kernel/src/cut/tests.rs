use super::{tidy, to_conclude};
use crate::Output;
use bailey_protocol::{
    Blob, ExecReport, FOUND_BYTES_MAX, FileReport, Outcome, PageReport, Report, SearchHit, SearchReport,
    Status, Stream,
};
use bailey_secrets::{Redactor, Secret, Vault};

const SECRET: &str = "x7Kq9Lm2pBdW4TzRw8NsYc3HdF6gKe1U";

fn redactor() -> Redactor {
    let mut vault = Vault::default();
    vault.insert("TEST_TOKEN".into(), Secret::new(SECRET.into()));
    Redactor::new(&vault)
}

fn output(report: Report) -> Output {
    Output::new(Outcome { status: Status::Done, enforced: None, duration_ms: 0, report })
}

/// A stream of which the secret stands at `at`, cut to its first and last 1,000 bytes.
fn cut(at: usize) -> Stream {
    let whole = format!("{}{SECRET}{}", "-".repeat(at), ".".repeat(4000 - at));
    let (head, tail) = (whole.as_bytes()[..1000].to_vec(), whole.as_bytes()[whole.len() - 1000..].to_vec());
    Stream { head: Blob(head), tail: Blob(tail), total: whole.len() as u64 }
}

fn shows_a_part(bytes: &[u8]) -> bool {
    SECRET.as_bytes().windows(4).any(|part| bytes.windows(4).any(|seen| seen == part))
}

#[test]
fn no_half_of_a_secret_is_left_beside_a_cut() {
    let mut control = 0;
    for at in (940..1010).chain(2980..3040) {
        let stream = cut(at);
        let both = |stream: &Stream| [stream.head.0.as_slice(), b"\n", stream.tail.0.as_slice()].concat();
        // Control: the whole secret is found, a half is not.
        control += usize::from(shows_a_part(&redactor().redact_bytes(&both(&stream))));
        let report = ExecReport { stdout: stream.clone(), stderr: stream.clone(), ..ExecReport::default() };
        let clean = tidy(&redactor(), output(Report::Exec(report)));
        let Report::Exec(clean) = clean.report() else { panic!("an exec report") };
        for clean in [&clean.stdout, &clean.stderr] {
            assert!(!shows_a_part(&both(clean)), "at {at}");
            let kept = (clean.head.0.len() + clean.tail.0.len()) as u64;
            assert!(clean.total - kept >= stream.total - 2000, "the cut is still told");
            assert!(kept > 1500, "{kept}");
        }
    }
    assert!(control > 40, "{control}");
}

#[test]
fn what_is_left_out_beside_a_cut_confirms_no_guess() {
    let shown = |end: &str| {
        let head = format!("{}{end}", "-".repeat(1000 - end.len()));
        let stream = Stream { head: Blob(head.into_bytes()), tail: Blob(vec![b'.'; 1000]), total: 5000 };
        tidy(&redactor(), output(Report::Exec(ExecReport { stdout: stream, ..ExecReport::default() })))
    };
    // The beginning of the secret and what only looks like it leave the same behind.
    assert_eq!(shown(&SECRET[..20]).report(), shown("x7Kq9Lm2pBdW4TzRw8Nt").report());
    // Control: the whole one is found and does not.
    assert_ne!(shown(SECRET).report(), shown("x7Kq9Lm2pBdW4TzRw8NsYc3HdF6gKe1V").report());
}

#[test]
fn what_was_not_cut_stays_as_it_is() {
    let stream = Stream { head: Blob(b"x7Kq9Lm2pBdW".to_vec()), tail: Blob::default(), total: 12 };
    let report = Report::Exec(ExecReport { stdout: stream, ..ExecReport::default() });
    assert_eq!(tidy(&redactor(), output(report.clone())).report(), &report);
    let report = search("x7Kq9Lm2pBdW".into());
    assert_eq!(tidy(&redactor(), output(report.clone())).report(), &report);
}

fn search(text: String) -> Report {
    Report::Search(SearchReport {
        found: vec![SearchHit { path: "a".into(), line: 1, text }],
        cut: false,
        ..SearchReport::default()
    })
}

#[test]
fn a_line_that_a_search_cut_ends_with_no_half_of_a_secret() {
    for half in 4..SECRET.len() {
        let line = format!("{}{}", "ä".repeat((FOUND_BYTES_MAX - half) / 2), &SECRET[..half]);
        assert!(shows_a_part(&redactor().redact_bytes(line.as_bytes())), "control: {line}");
        let clean = tidy(&redactor(), output(search(line)));
        let Report::Search(clean) = clean.report() else { panic!("a search report") };
        let text = &clean.found[0].text;
        assert!(!shows_a_part(text.as_bytes()) && text.ends_with("ä…"), "{text}");
    }
}

#[test]
fn a_file_is_concluded_without_secrets() {
    let file = |content: String| {
        let size = content.len() as u64;
        output(Report::File(FileReport {
            content: Blob(content.into_bytes()),
            size,
            digest: None,
            mode: 0o644,
        }))
    };
    let large = file(format!("{}{SECRET}{}", "-".repeat(99_990), "-".repeat(1000)));
    let clean = to_conclude(&redactor(), &large).unwrap();
    let Report::File(clean) = clean.report() else { panic!("a file") };
    assert!(!shows_a_part(&clean.content.0[..100_000]));
    assert_eq!(clean.size, clean.content.0.len() as u64);
    // Control: cut first, and a half would show.
    let Report::File(raw) = large.report() else { panic!("a file") };
    assert!(shows_a_part(&redactor().redact_bytes(&raw.content.0[..100_000])));
    // One line in the middle of a short key is known for one only together with the others.
    let body = "MIIEowIBAAKCAQEAr8Hs1vWcTn5Jb0Fq2Zu6Ye9Oa4Pd7Lm3XkGiCtVhRjSo";
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n{body}\n-----END RSA PRIVATE KEY-----\n");
    let clean = to_conclude(&redactor(), &file(format!("a key:\n{key}"))).unwrap();
    let Report::File(clean) = clean.report() else { panic!("a file") };
    assert!(!clean.content.lossy().contains(body), "{}", clean.content.lossy());
    assert!(redactor().redact(body).text.contains(body), "control");
    assert!(to_conclude(&redactor(), &file("nothing".into())).is_none());
}

#[test]
fn a_page_that_is_shown_in_parts_shows_no_half_of_a_secret() {
    let page = |text: String, cut: bool| {
        let (media, location, body) = (String::new(), None, None);
        output(Report::Page(PageReport {
            status: 200,
            media,
            location,
            text: Some(text),
            unread: None,
            body,
            bytes: 0,
            cut,
        }))
    };
    let shown = |output: &Output| match to_conclude(&redactor(), output).unwrap().into_outcome().report {
        Report::Page(page) => page.text.unwrap(),
        other => panic!("{other:?}"),
    };
    let text = format!("{}{SECRET}{}", "-".repeat(99), "-".repeat(99));
    let clean = shown(&page(text.clone(), false));
    assert!((0..clean.len()).all(|from| !shows_a_part(&clean.as_bytes()[from..])), "{clean}");
    // The control: from the middle of it on it is not known any more.
    assert!(shows_a_part(&redactor().redact_bytes(&text.as_bytes()[105..])));
    let half = &text[..120];
    assert!(shows_a_part(half.as_bytes()) && !shows_a_part(shown(&page(half.into(), true)).as_bytes()));
    assert!(to_conclude(&redactor(), &page("nothing".into(), false)).is_none());
}

#[test]
fn a_file_that_was_cut_when_it_was_read_ends_with_no_half_of_a_secret() {
    let content = format!("{}{}", "-".repeat(4000), &SECRET[..20]);
    let concluded = |size: u64| {
        let content = Blob(content.clone().into_bytes());
        to_conclude(
            &redactor(),
            &output(Report::File(FileReport { content, size, digest: None, mode: 0o644 })),
        )
    };
    let clean = concluded(9 << 20).unwrap();
    let Report::File(clean) = clean.report() else { panic!("a file") };
    assert!(!shows_a_part(&clean.content.0) && clean.content.0.len() > 3000);
    assert!(clean.size > clean.content.0.len() as u64, "that it was cut is still told");
    // The control: a whole file stays as it is, for what it ends with is no secret.
    assert!(concluded(content.len() as u64).is_none() && shows_a_part(content.as_bytes()));
}
