//! The logins of the page: browsers that showed a one-time code of the owner, and collectors of figures. Each
//! of them authenticates with its *bearer*, of which only the digest is kept.

use anyhow::{Context as _, Result, bail};
use bailey_home::home::{Home, change_json, make_private, read_json};
use bailey_journal::{Clock as _, SystemClock};
use bailey_protocol::{Digest, Role, Speaker, Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

/// The first message to the page's process; the listener comes with it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// The address of the listener.
    pub at: SocketAddr,
    /// The address that browsers see.
    pub shown_as: Option<String>,
}

/// The default port, unless one is configured or another process listens there.
pub const PORT: u16 = 7411;
/// How many logins there may be.
const LOGINS_MAX: usize = 64;
/// How long an unseen login is kept, and how exactly the time of its last request is noted, in milliseconds.
const UNSEEN_MS: i64 = 30 * 24 * 60 * 60 * 1000;
const SEEN_MS: i64 = 60 * 60 * 1000;
/// The random bytes of a bearer or a code: more than anybody can guess.
const RANDOM_BYTES: usize = 32;

/// The logins of a home.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Logins {
    /// The number of the next login.
    next: u64,
    /// The page's last address: bookmarks stay valid, and a browser's bearer is for that address alone.
    #[serde(default, alias = "port")]
    pub at: Option<PageAddress>,
    /// The logins.
    pub logins: Vec<Login>,
}

/// A browser or collector that is let in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Login {
    /// Its number.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// The name that it gave itself.
    pub(crate) name: String,
    pub(crate) since: Timestamp,
    /// The time of its last request, to the hour.
    pub(crate) seen: Timestamp,
    /// The digest of its bearer.
    digest: Digest,
}

/// The rights of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// All that the owner may do at the page.
    Browser,
    /// Reading figures.
    Metrics,
}

impl Logins {
    /// Reads the logins of a home.
    ///
    /// # Errors
    /// When the file cannot be read; the page lets no client in then.
    pub fn of(home: &Home) -> Result<Self> {
        read_json(&path(home))
    }

    /// Changes the logins, one process after the other. The owner's commands add logins, too; without the
    /// lock, the later of two writes could undo a revocation by the other.
    ///
    /// # Errors
    /// The error of `change`, after which nothing is changed; or the logins cannot be written.
    pub fn change<T>(home: &Home, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        make_private(&home.page())?;
        change_json(&home.page().join("lock"), &path(home), change)
    }

    /// Adds a login, and returns its bearer.
    ///
    /// # Errors
    /// When there are too many logins, or no random numbers.
    pub fn add(&mut self, kind: Kind, name: &str) -> Result<String> {
        let now = SystemClock.now();
        self.logins.retain(|login| !login.is_old(now));
        if self.logins.len() >= LOGINS_MAX {
            bail!("there are {LOGINS_MAX} logins already; revoke some with `bailey web revoke`");
        }
        let bearer = random()?;
        self.next += 1;
        let (number, digest) = (self.next, Digest::of(bearer.as_bytes()));
        self.logins.push(Login { number, kind, name: name.to_owned(), since: now, seen: now, digest });
        Ok(bearer)
    }

    /// The login of a bearer, and whether its last request is old enough to be noted anew.
    pub fn of_bearer(&self, bearer: &str) -> Option<(Login, bool)> {
        let (now, digest) = (SystemClock.now(), Digest::of(bearer.as_bytes()));
        // Digests are compared, so the time that this takes tells nothing about a bearer.
        let login = self.logins.iter().find(|login| login.digest == digest && !login.is_old(now))?;
        let is_news = now.as_millisecond() - login.seen.as_millisecond() > SEEN_MS;
        Some((login.clone(), is_news))
    }

    /// Notes a request of a login, if it is still let in.
    pub fn seen(&mut self, number: u64) {
        let login = self.logins.iter_mut().find(|login| login.number == number);
        login.into_iter().for_each(|login| login.seen = SystemClock.now());
    }

    /// Removes one login, or all. Returns how many were removed.
    pub fn revoke(&mut self, number: Option<u64>) -> usize {
        let before = self.logins.len();
        self.logins.retain(|login| number.is_some_and(|number| login.number != number));
        before - self.logins.len()
    }

    /// Removes the logins of all browsers. Returns how many were removed.
    pub fn revoke_browsers(&mut self) -> usize {
        let before = self.logins.len();
        self.logins.retain(|login| login.kind != Kind::Browser);
        before - self.logins.len()
    }
}

impl Login {
    /// A login that the owner never granted.
    #[cfg(feature = "controls")]
    pub fn anybody() -> Self {
        let now = SystemClock.now();
        let digest = Digest::of(b"");
        Self { number: 0, kind: Kind::Browser, name: "anybody".into(), since: now, seen: now, digest }
    }

    fn is_old(&self, now: Timestamp) -> bool {
        now.as_millisecond() - self.seen.as_millisecond() > UNSEEN_MS
    }

    /// The speaker behind a login.
    pub fn speaker(&self) -> Speaker {
        Speaker {
            channel: "page".into(),
            id: self.number.to_string(),
            name: "at the page".into(),
            role: Role::Owner,
        }
    }
}

/// A random hexadecimal string that nobody can guess.
///
/// # Errors
/// When there are no random numbers.
pub fn random() -> Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).context("there are no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn path(home: &Home) -> PathBuf {
    home.page().join("logins.json")
}

/// The last known address of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PageAddress {
    /// An address.
    At(SocketAddr),
    /// Noted by an older version; the address was the configured one.
    Port(u16),
}

impl PageAddress {
    /// Whether a page at this address has not moved.
    pub fn is(self, at: SocketAddr) -> bool {
        match self {
            Self::At(was) => was == at,
            Self::Port(port) => port == at.port(),
        }
    }

    /// The address for a page that was here, when no address is configured.
    pub fn address(self) -> SocketAddr {
        match self {
            Self::At(was) => was,
            Self::Port(port) => (Ipv4Addr::LOCALHOST, port).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Logins, PageAddress};

    #[test]
    fn a_bearer_is_known_until_it_is_revoked_and_never_written_down() {
        let mut logins = Logins::default();
        let (one, two) = (logins.add(Kind::Browser, "a").unwrap(), logins.add(Kind::Metrics, "b").unwrap());
        assert_ne!(one, two);
        assert!(!serde_json::to_string(&logins).unwrap().contains(&one), "only its digest is kept");
        assert_eq!(logins.of_bearer(&one).map(|(login, _)| login.kind), Some(Kind::Browser));
        assert_eq!(logins.of_bearer(&two).map(|(login, _)| login.number), Some(2));
        for wrong in ["", &one[1..], &format!("{one} "), &one.to_uppercase()] {
            assert!(logins.of_bearer(wrong).is_none(), "{wrong}");
        }
        assert_eq!(logins.revoke(Some(1)), 1);
        assert!(logins.of_bearer(&one).is_none() && logins.of_bearer(&two).is_some());
        assert_eq!(logins.revoke(None), 1);
        assert!(logins.of_bearer(&two).is_none());
        logins.add(Kind::Browser, "c").unwrap();
        assert_eq!(logins.logins[0].number, 3, "a number is one login's, for ever");
    }

    #[test]
    fn a_place_is_a_whole_address_and_was_a_port_once() {
        let at = |noted: &str| serde_json::from_str::<Logins>(noted).map(|logins| logins.at);
        // An older version noted only the port, so the address is not known: with the same port, the page has
        // not moved.
        let old = at(r#"{"next":0,"port":7411,"logins":[]}"#).unwrap().unwrap();
        assert!(old.is("192.0.2.1:7411".parse().unwrap()) && !old.is("127.0.0.1:7412".parse().unwrap()));
        assert_eq!(old.address(), "127.0.0.1:7411".parse().unwrap());
        assert_eq!(at(r#"{"next":0,"port":null,"logins":[]}"#).unwrap(), None);
        assert_eq!(at(r#"{"next":0,"logins":[]}"#).unwrap(), None);
        assert!(at(r#"{"next":0,"port":70000,"logins":[]}"#).is_err());
        for there in ["127.0.0.2:7411", "[::1]:7411"] {
            let place = PageAddress::At(there.parse().unwrap());
            assert!(place.is(there.parse().unwrap()) && !place.is("127.0.0.1:7411".parse().unwrap()));
            let logins = Logins { at: Some(place), ..Logins::default() };
            assert_eq!(at(&serde_json::to_string(&logins).unwrap()).unwrap(), logins.at, "{there}");
        }
    }

    #[test]
    fn one_that_was_not_seen_for_a_month_is_none() {
        let mut logins = Logins::default();
        let bearer = logins.add(Kind::Browser, "a").unwrap();
        logins.logins[0].seen = "2020-01-01T00:00:00Z".parse().unwrap();
        assert!(logins.of_bearer(&bearer).is_none());
    }
}
