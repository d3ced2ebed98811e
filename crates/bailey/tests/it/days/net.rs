//! Days on which the way to the model is in trouble: certificates, names, networks.

use super::{RUN, edit_then, nothing_is_lost, ran, session, tells};
use crate::{
    relay::{self, Tls},
    stage::{Ran, Stage},
};
use bailey_testkit::{ModelServer, Reply};
use std::{fs, os::unix::fs::MetadataExt as _, process::Command};

/// Points the provider `test` at this URL.
pub(super) fn point(stage: &Stage, url: &str, more: &str) {
    let config = format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"{url}\"\n{more}");
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
}

/// Points the provider at a server that has gone bad, goes on with the session there, then where all is well.
fn in_the_middle(bad: &str, words: &[&str], go_on: impl Fn(&Stage, &[&str]) -> Ran) {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let server = edit_then(&stage, |_| Reply::text("done"));
    assert_eq!(stage.ran(&RUN).code, Some(0));
    point(&stage, bad, "");
    let session = session(&stage);
    let resume = ["sessions", "resume", "--model", "test/model", "--approve", "never", &session, "go on"];
    let asked = server.requests().len();
    tells(&go_on(&stage, &resume), 4, words);
    assert_eq!(server.requests().len(), asked, "nobody was asked");
    // The control: the same session goes on, with what was said when nobody could hear it.
    point(&stage, &server.base_url(), "");
    let ended = ran(&stage, &resume);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(server.requests().last().unwrap().body.matches("go on").count(), 2);
    nothing_is_lost(&stage);
}

#[test]
fn an_expired_certificate_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = ModelServer::always(Reply::text("safe"));
    let expired = Tls::start("127.0.0.1", (2020, 2021), relay::of(&server), folder.path());
    let trusting = |stage: &Stage, arguments: &[&str], tls: &Tls| {
        Ran::of(stage.bailey(arguments).env("SSL_CERT_FILE", &tls.authority).output().unwrap())
    };
    let words = ["expired", "2021-01-01", "127.0.0.1", "clock", "renew"];
    in_the_middle(&format!("https://{}", expired.address()), &words, |stage, resume| {
        trusting(stage, resume, &expired)
    });
    assert_eq!(server.requests().len(), 0);
    // The control: by another authority of the same kind, but still valid.
    let valid = Tls::start("127.0.0.1", (2020, 4000), relay::of(&server), folder.path());
    let stage = Stage::new(&[]);
    point(&stage, &format!("https://{}", valid.address()), "");
    let ended = trusting(&stage, &RUN, &valid);
    assert_eq!((ended.code, server.requests().len()), (Some(0), 1), "{ended:?}");
    tells(&trusting(&stage, &RUN, &expired), 4, &["is not trusted", "authority"]);
}

#[test]
fn a_server_that_nobody_reaches_is_told() {
    in_the_middle("http://127.0.0.1:1", &["no server listens at `http://127.0.0.1:1`", "base_url"], ran);
}

/// Without any network but loopback, which is down.
fn without_network(stage: &Stage, arguments: &[&str]) -> Option<Ran> {
    let bailey = stage.bailey(arguments);
    let mut command = Command::new("unshare");
    command.arg("--net");
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        command.arg("--map-root-user");
    }
    command.arg(bailey.get_program()).args(bailey.get_args()).current_dir(stage.folder());
    let ran = Ran::of(command.output().unwrap());
    if ran.stderr.contains("unshare: unshare failed") {
        println!("SKIPPED: no network namespace can be made: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

#[test]
fn no_network_and_no_name_are_told() {
    if without_network(&Stage::new(&[]), &["version"]).is_none() {
        return;
    }
    for (bad, words) in [
        ("https://192.0.2.1", ["`https://192.0.2.1` cannot be reached", "unreachable"]),
        (
            "https://models.example.invalid",
            ["`https://models.example.invalid` cannot be resolved", "check the network"],
        ),
    ] {
        in_the_middle(bad, &words, |stage, resume| without_network(stage, resume).unwrap());
    }
}
