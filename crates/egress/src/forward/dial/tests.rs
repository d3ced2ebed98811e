use super::{Barred, Guarded, Private, is_of_the_world};
use crate::{Proxies, config::Origin};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tower_service::Service as _;

fn guarded(private: &[&str]) -> Guarded {
    let urls: Vec<String> = private.iter().map(|&url| url.to_owned()).collect();
    let proxies = Arc::new(Proxies::default().ways());
    Guarded::new(Private::new(&urls).unwrap(), Private::default(), proxies, Duration::from_secs(1))
}

fn origin(url: &str) -> Origin {
    Origin::of(&url.parse().unwrap()).unwrap()
}

fn vetted(guarded: &Guarded, url: &str, addresses: &[&str]) -> Result<usize, Barred> {
    let host = origin(url);
    let port = host.port;
    let addresses = addresses.iter().map(|text| SocketAddr::new(text.parse().unwrap(), port)).collect();
    guarded.vet(&host, addresses).map(|addresses| addresses.len())
}

#[test]
fn a30_an_address_of_this_machine_or_its_neighbours_is_none_of_the_world() {
    let kept = [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.9",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:c0a8:101::1",
        "3fff::1",
        "5f00::1",
        "100::1",
    ];
    for address in kept {
        assert!(!is_of_the_world(address.parse().unwrap()), "{address}");
    }
    let given_out = [
        "1.1.1.1",
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.0.1.1",
        "198.17.0.1",
        "198.20.0.1",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2002:808:808::1",
    ];
    for address in given_out {
        assert!(is_of_the_world(address.parse().unwrap()), "the control: {address}");
    }
}

#[test]
fn a30_one_private_address_among_others_bars_the_name() {
    let none = guarded(&[]);
    let barred = vetted(&none, "https://two.test/", &["8.8.8.8", "10.0.0.1"]).unwrap_err();
    assert!(
        barred.to_string().contains("10.0.0.1") && barred.to_string().contains("[network] private"),
        "{barred}"
    );
    assert_eq!(vetted(&none, "https://two.test/", &["8.8.8.8", "8.8.4.4"]), Ok(2), "the control");
    assert!(vetted(&none, "https://none.test/", &[]).is_err());
}

#[test]
fn what_the_owner_names_is_that_scheme_host_and_port_and_no_metadata() {
    let named = guarded(&["http://127.0.0.1:8080", "https://registry.internal", "http://169.254.169.254"]);
    assert_eq!(vetted(&named, "http://127.0.0.1:8080/x", &["127.0.0.1"]), Ok(1), "the control");
    assert_eq!(vetted(&named, "https://registry.internal/", &["10.1.2.3"]), Ok(1));
    for other in ["http://127.0.0.1:8081/", "https://127.0.0.1:8080/", "http://localhost:8080/"] {
        assert!(vetted(&named, other, &["127.0.0.1"]).is_err(), "{other}");
    }
    assert!(vetted(&named, "https://registry.internal:8443/", &["10.1.2.3"]).is_err());
    for address in [
        "169.254.169.254",
        "169.254.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fe80::a9fe:a9fe",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1:0:a9:fea9:fe00:0",
        "2002:a9fe:a9fe::1",
        "2002:6464:64c8::",
    ] {
        let barred = vetted(&named, "http://169.254.169.254/latest", &[address]);
        assert!(matches!(barred, Err(Barred::Metadata(..))), "{address}: {barred:?}");
    }
    for address in ["10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1", "fe80::1", "100.100.100.201"] {
        let let_pass = vetted(&named, "http://169.254.169.254/latest", &[address]);
        assert_eq!(let_pass, Ok(1), "the control: {address} is only private, and named");
    }
}

#[tokio::test]
async fn behind_a_proxy_no_number_no_own_name_and_no_other_port_passes() {
    // Nobody listens there: what is not barred fails by that.
    let proxies = Proxies::of(|name| (name == "HTTP_PROXY").then(|| "http://127.0.0.1:9".to_owned()));
    let matcher = Arc::new(proxies.ways());
    let mut guarded = Guarded::new(Private::default(), Private::default(), matcher, Duration::from_secs(5));
    let mut barred = async |url: &str| {
        let error = guarded.call(url.parse().unwrap()).await.unwrap_err();
        error.downcast_ref::<Barred>().cloned()
    };
    for host in
        ["127.1", "2130706433", "0x7f.1", "017700000001", "a.localhost", "localhost.", "10.0.0.1", "[::1]"]
    {
        assert!(barred(&format!("http://{host}/")).await.is_some(), "{host}");
    }
    assert!(matches!(barred("http://example.com:22/").await, Some(Barred::Port(_))));
    assert_eq!(barred("http://example.com/").await, None, "the control");
}
