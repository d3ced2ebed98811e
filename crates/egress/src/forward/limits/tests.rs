use super::{COUNTS_MAX, Direction, HostLimit, HostLimits, MINUTE, Meter};
use bailey_policy::HostGlob;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

fn limit(host: &str, sent: Option<u64>, received: Option<u64>, per_minute: Option<u32>) -> HostLimit {
    HostLimit { host: HostGlob::new(host).unwrap(), sent, received, per_minute }
}

#[test]
fn bytes_pass_up_to_the_limit_of_their_host_and_direction() {
    let limits = HostLimits::new(vec![limit("*.example.com", Some(10), Some(20), None)]);
    let of = |host: &str| limits.of(&format!("https://{host}/x"), Instant::now()).unwrap();
    let meter = |host, direction| Meter::new(&Arc::default(), direction, of(host).as_ref());
    let out = meter("a.example.com", Direction::Out);
    assert!(out.pass(6).is_ok() && out.pass(4).is_ok());
    let over = out.pass(1).unwrap_err();
    assert!(over.contains("10 bytes are sent to `a.example.com`"), "{over}");
    assert!(meter("a.example.com", Direction::Out).pass(1).is_err(), "for all requests together");
    assert!(meter("a.example.com", Direction::Back).pass(20).is_ok(), "each way by itself");
    assert!(meter("b.example.com", Direction::Out).pass(10).is_ok(), "each host by itself");
    assert!(of("example.org").is_none());
    let used = of("b.example.com").unwrap();
    assert!(
        used.begin(Some(1), Instant::now()).is_err()
            && used.begin(Some(0), Instant::now()).is_ok()
            && used.begin(None, Instant::now()).is_err()
    );
    assert!(of("c.example.com").unwrap().begin(None, Instant::now()).is_ok(), "as long as there is room");
}

#[test]
fn where_no_answer_may_come_nothing_is_asked() {
    let limits = HostLimits::new(vec![limit("a.com", None, Some(20), None)]);
    let of = || limits.of("http://a.com/", Instant::now()).unwrap().unwrap();
    let back = Meter::new(&Arc::default(), Direction::Back, Some(&of()));
    assert!(back.pass(19).is_ok() && of().begin(Some(5), Instant::now()).is_ok(), "a byte may come still");
    assert!(back.pass(1).is_ok());
    let full = of().begin(Some(5), Instant::now()).unwrap_err();
    assert!(full.contains("20 bytes are received from `a.com`"), "{full}");
}

/// Connections at once take no more together than may pass, and what one did not send another may.
#[test]
fn what_is_about_to_be_sent_is_nobody_elses() {
    let all = vec![limit("a.com", Some(9), None, None), limit("*", Some(8), None, None)];
    let limits = HostLimits::new(all);
    let out = || {
        let of = limits.of("http://a.com/", Instant::now()).unwrap();
        Meter::new(&Arc::default(), Direction::Out, of.as_ref())
    };
    let (one, two) = (out(), out());
    assert_eq!((one.reserve(6), two.reserve(6)), (Ok(6), Ok(2)), "the narrower limit holds");
    let full = two.reserve(1).unwrap_err();
    assert!(full.contains("8 bytes are sent to `a.com`"), "{full}");
    one.sent(6, 5);
    two.sent(2, 0);
    assert_eq!(two.reserve(9), Ok(3));
    two.sent(3, 3);
    assert!(one.reserve(1).is_err() && one.reserve(0) == Ok(0));
}

#[test]
fn each_limit_that_fits_holds_and_one_server_has_one_count() {
    let all = vec![
        limit("*", Some(100), None, None),
        limit("a.com:443", None, Some(5), None),
        limit("a.com:443", Some(3), None, None),
    ];
    let limits = HostLimits::new(all);
    let out = |url: &str| {
        Meter::new(&Arc::default(), Direction::Out, limits.of(url, Instant::now()).unwrap().as_ref())
    };
    // What is asked for first, and in which spelling, decides nothing.
    assert!(out("http://a.com/").pass(90).is_ok());
    assert!(out("https://a.com/").pass(2).is_ok());
    assert!(out("https://a.com:0443/").pass(1).is_ok());
    for url in ["https://a.com/", "https://A.com:443/x", "https://a.com:0443/", "https://a.com./"] {
        assert!(out(url).pass(1).unwrap_err().contains("3 bytes"), "{url}");
    }
    assert!(
        Meter::new(
            &Arc::default(),
            Direction::Back,
            limits.of("https://a.com/", Instant::now()).unwrap().as_ref()
        )
        .pass(6)
        .is_err()
    );
    assert!(out("http://a.com/").pass(10).unwrap_err().contains("100 bytes"));
    assert!(out("https://b.com/").pass(100).is_ok());
}

#[test]
fn any_minute_has_so_many_requests() {
    let limits = HostLimits::new(vec![limit("*", None, None, Some(2))]);
    let used = limits.of("https://a.com/", Instant::now()).unwrap().unwrap();
    let now = Instant::now();
    let late = now + MINUTE - Duration::from_secs(1);
    assert!(used.begin(None, now).is_ok() && used.begin(None, late).is_ok());
    let over = used.begin(None, late).unwrap_err();
    assert!(over.contains("2 times in a minute") && over.contains("again in 2 s"), "{over}");
    // One is a minute old then, and the other is not.
    assert!(used.begin(None, now + MINUTE).is_ok());
    assert!(used.begin(None, now + MINUTE + Duration::from_secs(1)).is_err());
}

#[test]
fn requests_that_were_not_let_pass_shut_no_host() {
    let limits = HostLimits::new(vec![limit("*", Some(10), None, Some(2))]);
    let now = Instant::now();
    let begun = |host: &str, now| {
        let used = limits.of(&format!("https://{host}/"), now).unwrap().unwrap();
        used.begin(None, now).map(|()| used)
    };
    for number in 0..COUNTS_MAX * 2 {
        begun(&format!("h{number}.example"), now).unwrap().take_back(now);
    }
    let used = begun("real.example", now).unwrap();
    assert!(begun("real.example", now).is_ok() && begun("real.example", now).is_err(), "it is counted");
    used.take_back(now);
    assert!(begun("real.example", now).is_ok(), "one fewer was made");
}

#[test]
fn what_is_in_use_is_kept_and_a_full_table_says_so() {
    let limits = HostLimits::new(vec![limit("*", Some(10), None, Some(2))]);
    let (now, later) = (Instant::now(), Instant::now() + MINUTE);
    let begin = |host: String, now| {
        let used = limits.of(&format!("https://{host}/"), now)?.unwrap();
        used.begin(None, now).map(|()| used)
    };
    let sent = begin("sent.example".into(), now).unwrap();
    Meter::new(&Arc::default(), Direction::Out, Some(&sent)).pass(10).unwrap();
    drop(sent);
    for number in 1..COUNTS_MAX {
        begin(format!("h{number}.example"), now).unwrap();
    }
    let full = begin("new.example".into(), now).unwrap_err();
    assert!(full.contains("10000 counts of hosts are in use") && !full.contains("again in"), "{full}");
    assert!(begin("h1.example".into(), now).is_ok(), "the control: who is known is counted on");
    assert!(begin("new.example".into(), later).is_ok(), "the last minute's requests are past");
    let over = begin("sent.example".into(), later).unwrap_err();
    assert!(
        over.contains("10 bytes are sent to `sent.example`"),
        "kept as long as the process lives: {over}"
    );
}
