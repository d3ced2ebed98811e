//! Proxies that the environment names, on the way of the real binary to its model.

use crate::{
    relay::{self, Proxy, Tls},
    stage::{Ran, Stage},
};
use bailey_testkit::{ModelServer, Reply};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

/// A host that nobody but a proxy knows.
const FAR: &str = "models.example.invalid";

/// One run with the model at this URL, and these variables in place of the developer's.
fn run(stage: &Stage, url: &str, variables: &[(&str, &str)]) -> Ran {
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!("[providers.far]\nwire = \"openai\"\nbase_url = \"{url}/v1\"\n");
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let mut command = stage.bailey(&["run", "--model", "far/m", "--approve", "never", "do it"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    Ran::of(command.envs(variables.iter().copied()).output().unwrap())
}

fn answers(ran: &Ran) {
    assert!(ran.code == Some(0) && ran.stdout.contains("far away"), "{ran:?}");
}

#[test]
fn a_tunnel_leads_to_the_answer_with_and_without_a_password() {
    let server = ModelServer::always(Reply::text("far away"));
    let stage = Stage::new(&[]);
    let tls = Tls::start(FAR, (2020, 4000), relay::of(&server), stage.folder());
    let authority = ("SSL_CERT_FILE", tls.authority.to_str().unwrap());
    let ways = [
        ("http", "HTTP_PROXY", relay::of(&server), "80"),
        ("https", "HTTPS_PROXY", tls.address(), "443"),
        ("https", "ALL_PROXY", tls.address(), "443"),
    ];
    for (scheme, variable, to, port) in ways {
        for wants_password in [false, true] {
            let proxy = Proxy::start(to, wants_password);
            let url = format!("{scheme}://{FAR}");
            let user = if wants_password { "ann:secret@" } else { "" };
            let named = format!("http://{user}{}", proxy.address());
            answers(&run(&stage, &url, &[(variable, &named), authority]));
            let asked = proxy.asked();
            assert!(asked[0].starts_with(&format!("connect {FAR}:{port} http/1.1\r\n")), "{asked:?}");
            assert_eq!(asked.len(), 1, "all through one tunnel: {asked:?}");
            if wants_password && variable != "ALL_PROXY" {
                let wrong = format!("http://ann:wrong@{}", proxy.address());
                let refused = run(&stage, &url, &[(variable, &wrong), authority]);
                assert_eq!(refused.code, Some(4), "the control: {refused:?}");
                assert!(
                    refused.stderr.contains("through the proxy") && !refused.stderr.contains("wrong"),
                    "{refused:?}"
                );
            }
        }
    }
    let straight = run(&stage, &format!("http://{FAR}"), &[]);
    assert_eq!(straight.code, Some(4), "the control: nobody else leads there: {straight:?}");
}

#[test]
fn whom_no_proxy_names_is_asked_straight() {
    let server = ModelServer::always(Reply::text("far away"));
    let proxy = Proxy::start(relay::of(&server), false);
    let named = format!("http://{}", proxy.address());
    let stage = Stage::new(&[]);
    // An address that leads to this machine and is none of those that no proxy is ever asked for.
    let url = server.base_url().replace("127.0.0.1", "0.0.0.0");
    answers(&run(&stage, &url, &[("HTTP_PROXY", &named)]));
    assert_eq!(proxy.asked().len(), 1, "the control: without NO_PROXY it is on the way");
    for no in ["0.0.0.0", "example.com, 0.0.0.0/8", "*"] {
        answers(&run(&stage, &url, &[("HTTP_PROXY", &named), ("NO_PROXY", no)]));
        assert_eq!(proxy.asked().len(), 1, "{no}");
    }
    answers(&run(&stage, &url, &[("HTTP_PROXY", &named), ("no_proxy", "example.com")]));
    assert_eq!(proxy.asked().len(), 2, "the control: it names another");
    answers(&run(&stage, &server.base_url(), &[("HTTP_PROXY", &named)]));
    assert_eq!(proxy.asked().len(), 2, "this machine is never asked for through a proxy");
}

#[test]
fn a_proxy_that_refuses_or_cannot_be_used_is_told() {
    let stage = Stage::new(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://ann:secret@{}", listener.local_addr().unwrap());
    let asked = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(|line| line.unwrap());
        let head: String = lines.take_while(|line| !line.is_empty()).map(|line| line + "\n").collect();
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").unwrap();
        head
    });
    let url = format!("http://{FAR}");
    let ran = run(&stage, &url, &[("HTTP_PROXY", &proxy)]);
    let head = asked.join().unwrap();
    assert!(head.starts_with("CONNECT models.example.invalid:80 HTTP/1.1"), "{head}");
    assert!(head.to_lowercase().contains("proxy-authorization: basic "), "{head}");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("through the proxy") && ran.stderr.contains("NO_PROXY"), "{ran:?}");
    assert!(!ran.stderr.contains("secret") && !ran.stdout.contains("secret"), "{ran:?}");
    let other = run(&stage, &url, &[("HTTP_PROXY", "socks5://127.0.0.1:9050")]);
    assert_eq!(other.code, Some(4), "{other:?}");
    assert!(other.stderr.contains("HTTP_PROXY names `socks5://127.0.0.1:9050`"), "{other:?}");
}

#[test]
fn a_proxy_that_cannot_be_used_stops_nothing_that_does_not_need_it() {
    let server = ModelServer::always(Reply::text("far away"));
    let stage = Stage::new(&[]);
    let socks = [("all_proxy", "socks5://127.0.0.1:9"), ("HTTPS_PROXY", "socks5h://127.0.0.1:9")];
    answers(&run(&stage, &server.base_url(), &socks));
    for words in [&["sessions", "list"][..], &["sandbox", "run", "--", "true"]] {
        let ran = Ran::of(stage.bailey(words).envs(socks).output().unwrap());
        assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    }
    let doctor = Ran::of(stage.bailey(&["doctor", "--offline"]).envs(socks).output().unwrap());
    assert!(doctor.stdout.contains("a command ran behind"), "{doctor:?}");
    let far = run(&stage, &format!("http://{FAR}"), &socks);
    assert!(far.code == Some(4) && far.stderr.contains("all_proxy"), "the control: {far:?}");
}
