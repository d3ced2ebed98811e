//! Who may speak over a channel: the people whom the owner let in, each with a role, and those who asked to
//! be let in.

use anyhow::{Context as _, Result, bail};
use bailey_home::{
    config::people_of_environment,
    home::{Home, change_json, read_json},
};
use bailey_journal::{Clock as _, SystemClock};
use bailey_protocol::{Role, Speaker, Timestamp};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How many people may wait to be let in, and for how long, in milliseconds.
const ASKED_MAX: usize = 8;
const ASKED_MS: i64 = 60 * 60 * 1000;
/// The characters of a code: no two of them look alike.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The people of one channel.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct People {
    pub(crate) people: Vec<Person>,
    pub(crate) asked: Vec<Stranger>,
}

/// A person whom the owner let in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Person {
    /// The person's id, as the platform vouches.
    pub(crate) id: String,
    /// The name that the person used at that time.
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) since: Timestamp,
}

/// A person who wrote and is not known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stranger {
    /// The code that the person was told to give the owner.
    pub(crate) code: String,
    pub id: String,
    pub name: String,
    pub at: Timestamp,
}

impl Stranger {
    /// Whether the request is recent enough. A request from the future (the clock was put back) is not
    /// recent.
    fn is_fresh(&self, now: i64) -> bool {
        (0..ASKED_MS).contains(&(now - self.at.as_millisecond()))
    }
}

impl People {
    /// The people of a channel, with those of the environment.
    ///
    /// # Errors
    /// When the file cannot be read, or a variable has no valid value.
    pub fn of(home: &Home, channel: &str) -> Result<Self> {
        let mut people: Self = read_json(&path(home, channel))?;
        // The environment adds people, and changes no person whom the owner let in.
        for (id, role) in people_of_environment(channel)? {
            if people.people.iter().all(|person| person.id != id) {
                let name = id.clone();
                people.people.push(Person { id, name, role, since: SystemClock.now() });
            }
        }
        Ok(people)
    }

    /// Changes the people of a channel, one process after the other.
    ///
    /// # Errors
    /// When `change` fails, after which nothing is changed; or when the file cannot be written.
    pub fn change<T>(home: &Home, channel: &str, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let folder = home.make_channel(channel)?;
        change_json(&folder.join("lock"), &path(home, channel), change)
    }

    /// The speaker that this id stands for; `None` when the owner let in no person with this id.
    pub fn speaker(&self, channel: &str, id: &str) -> Option<Speaker> {
        let person = self.people.iter().find(|person| person.id == id)?;
        let Person { id, name, role, .. } = person.clone();
        Some(Speaker { channel: channel.into(), id, name, role })
    }

    /// The owner, as the first person who was let in as that.
    pub fn owner(&self, channel: &str) -> Option<Speaker> {
        let owner = self.people.iter().find(|person| person.role == Role::Owner)?;
        self.speaker(channel, &owner.id)
    }

    /// Whether a request of this person needs no note: they were told their code already, or too many people
    /// wait.
    pub fn is_noted(&self, id: &str) -> bool {
        let now = SystemClock.now().as_millisecond();
        let is_fresh = |asked: &&Stranger| asked.is_fresh(now);
        let fresh: Vec<&Stranger> = self.asked.iter().filter(is_fresh).collect();
        fresh.len() >= ASKED_MAX || fresh.iter().any(|asked| asked.id == id)
    }

    /// Notes that a person asks to be let in. Returns the code that the person gives the owner, and whether
    /// it is a new one. `None` when too many people wait already.
    ///
    /// # Errors
    /// When there are no random numbers.
    pub fn ask(&mut self, id: &str, name: &str) -> Result<Option<(String, bool)>> {
        self.forget_old();
        if let Some(asked) = self.asked.iter().find(|asked| asked.id == id) {
            return Ok(Some((asked.code.clone(), false)));
        }
        if self.asked.len() >= ASKED_MAX {
            return Ok(None);
        }
        let code = code()?;
        let (id, name, at) = (id.to_owned(), name.to_owned(), SystemClock.now());
        self.asked.push(Stranger { code: code.clone(), id, name, at });
        Ok(Some((code, true)))
    }

    /// Lets in the person who was told this code. Also returns whether the home knew this person before.
    ///
    /// # Errors
    /// When no person was told this code, or it was told too long ago.
    pub(crate) fn pair(&mut self, code: &str, role: Role) -> Result<(Person, bool)> {
        self.forget_old();
        let plain = |code: &str| code.replace('-', "").to_ascii_uppercase();
        let Some(at) = self.asked.iter().position(|asked| plain(&asked.code) == plain(code)) else {
            bail!(
                "the code `{code}` is wrong or older than an hour; the person writes again and gets a new \
                 code"
            );
        };
        let Stranger { id, name, .. } = self.asked.remove(at);
        let person = Person { id, name, role, since: SystemClock.now() };
        let before = self.people.len();
        self.people.retain(|other| other.id != person.id);
        let was_known = self.people.len() < before;
        self.people.push(person.clone());
        Ok((person, was_known))
    }

    /// Removes a person, who may not speak any more.
    ///
    /// # Errors
    /// When no person has this id.
    pub(crate) fn forget(&mut self, id: &str) -> Result<Person> {
        let at = self.people.iter().position(|person| person.id == id);
        let at = at.with_context(|| {
            format!("there is no person with the id `{id}`; `bailey channels people` shows all")
        })?;
        Ok(self.people.remove(at))
    }

    fn forget_old(&mut self) {
        let now = SystemClock.now().as_millisecond();
        self.asked.retain(|asked| asked.is_fresh(now));
    }
}

fn path(home: &Home, channel: &str) -> PathBuf {
    home.channel(channel).join("people.json")
}

fn code() -> Result<String> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let letter =
        |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).map_or('A', |letter| char::from(*letter));
    let mut code: String = random.iter().map(letter).collect();
    code.insert(4, '-');
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::People;
    use bailey_journal::{Clock as _, SystemClock};
    use bailey_protocol::{Role, Timestamp};

    #[test]
    fn a_code_is_good_for_an_hour_by_any_clock() {
        let hour = 3_600_000;
        for (ago, is_good) in [(hour / 2, true), (hour + 1000, false), (-72 * hour, false)] {
            let mut people = People::default();
            let (code, _) = people.ask("77", "Bob").unwrap().unwrap();
            let at = SystemClock.now().as_millisecond() - ago;
            people.asked[0].at = Timestamp::from_millisecond(at).unwrap();
            assert_eq!(people.is_noted("77"), is_good, "{ago}");
            assert_eq!(people.pair(&code, Role::User).is_ok(), is_good, "{ago}");
        }
    }
}
