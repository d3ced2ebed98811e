use super::{Direction, HostLimit, Limits, MINUTE, Meter};
use bailey_policy::HostGlob;
use std::sync::Arc;
use tokio::time::Instant;

fn limit(host: &str, sent: Option<u64>, received: Option<u64>, per_minute: Option<u32>) -> HostLimit {
    HostLimit { host: HostGlob::new(host).unwrap(), sent, received, per_minute }
}

#[test]
fn bytes_pass_up_to_the_limit_of_their_host_and_direction() {
    let limits = Limits::new(vec![limit("*.example.com", Some(10), Some(20), None)]);
    let of = |host: &str| limits.of(host, &format!("https://{host}/x"));
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
            && used.begin(None, Instant::now()).is_ok()
    );
}

#[test]
fn of_several_limits_the_lowest_of_each_counts() {
    let all = vec![
        limit("*", Some(100), None, None),
        limit("a.com", None, Some(5), None),
        limit("a.com", Some(3), None, None),
    ];
    let limits = Limits::new(all);
    let used = limits.of("a.com", "https://a.com/").unwrap();
    assert_eq!((used.limit.sent, used.limit.received), (Some(3), Some(5)));
    assert_eq!(limits.of("b.com", "https://b.com/").unwrap().limit.sent, Some(100));
}

#[test]
fn a_minute_has_so_many_requests() {
    let limits = Limits::new(vec![limit("*", None, None, Some(2))]);
    let used = limits.of("a.com", "https://a.com/").unwrap();
    let now = used.minute.lock().unwrap().0;
    assert!(used.begin(None, now).is_ok() && used.begin(None, now).is_ok());
    let over = used.begin(None, now).unwrap_err();
    assert!(over.contains("2 times in a minute") && over.contains("again in 61 s"), "{over}");
    assert!(used.begin(None, now + MINUTE).is_ok());
}
