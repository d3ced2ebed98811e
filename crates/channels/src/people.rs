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
/// How often a stranger is told the same code: who writes again is reminded, and floods nothing.
const TOLD_MAX: u8 = 3;
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
    /// The conversation in which the person asked to be let in, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_at: Option<String>,
    /// Whether the person is still to be told that they are let in, and in which role.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_to_be_told: bool,
}

/// A person who wrote and is not known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stranger {
    /// The code that the person gives the owner.
    pub(crate) code: String,
    pub id: String,
    pub name: String,
    pub at: Timestamp,
    /// The conversation in which they asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_at: Option<String>,
    /// How often they were told the code.
    #[serde(default)]
    pub(crate) told: u8,
}

/// A person who is to be told that they are let in.
#[derive(Debug, Clone)]
pub struct Greeting {
    /// The person's id, as the platform vouches.
    pub id: String,
    /// The person's name.
    pub name: String,
    /// The person's role.
    pub role: Role,
    /// The conversation in which they asked, if it is known.
    pub asked_at: Option<String>,
    /// The words for them.
    pub words: String,
}

impl Person {
    fn new(id: String, name: String, role: Role) -> Self {
        Self { id, name, role, since: SystemClock.now(), asked_at: None, is_to_be_told: false }
    }
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
                people.people.push(Person::new(id, name, role));
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

    /// Whether a stranger is told nothing any more: they were told their code often enough, or too many
    /// people wait.
    pub fn is_told_enough(&self, id: &str) -> bool {
        let now = SystemClock.now().as_millisecond();
        let mut fresh = self.asked.iter().filter(|asked| asked.is_fresh(now));
        match fresh.clone().find(|asked| asked.id == id) {
            Some(asked) => asked.told >= TOLD_MAX,
            None => fresh.by_ref().count() >= ASKED_MAX,
        }
    }

    /// Notes that a person asks to be let in. Returns the code that the person gives the owner, and whether
    /// it is a new one. `None` when the person was told it often enough, or too many people wait already.
    ///
    /// # Errors
    /// When there are no random numbers.
    pub fn ask(&mut self, id: &str, name: &str, asked_at: &str) -> Result<Option<(String, bool)>> {
        self.forget_old();
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.id == id) {
            let is_told = asked.told < TOLD_MAX;
            asked.told = asked.told.saturating_add(1);
            return Ok(is_told.then(|| (asked.code.clone(), false)));
        }
        if self.asked.len() >= ASKED_MAX {
            return Ok(None);
        }
        let code = code()?;
        let (id, name, at) = (id.to_owned(), name.to_owned(), SystemClock.now());
        let asked_at = Some(asked_at.to_owned());
        self.asked.push(Stranger { code: code.clone(), id, name, at, asked_at, told: 1 });
        Ok(Some((code, true)))
    }

    /// The command with which the owner lets in the person who got this code. The first and only person who
    /// asks, in a conversation of their own, is most likely the owner.
    pub fn command(&self, channel: &str, code: &str) -> String {
        let is_alone = matches!(&self.asked[..], [one] if one.code == code
            && one.asked_at.as_ref() == Some(&one.id));
        let role = if is_alone && self.owner(channel).is_none() { " --as owner" } else { "" };
        format!("bailey channels pair {channel} {code}{role}")
    }

    /// The next person who is to be told that they are let in.
    pub fn greeting(&self) -> Option<Greeting> {
        let Person { id, name, role, asked_at, .. } =
            self.people.iter().find(|person| person.is_to_be_told)?.clone();
        let may = match role {
            Role::Owner | Role::Operator => "Write what the agent is to do. You answer its questions, too",
            Role::User => "Write what the agent is to do. An owner or an operator answers its questions",
            Role::Guest | Role::Agent | Role::Plugin => {
                "The agent reads your words as information, and not as a task"
            }
        };
        let words = format!("You are let in, as {}. {may}. /help lists the commands.", role.name());
        Some(Greeting { id, name, role, asked_at, words })
    }

    /// Notes that the person was told.
    pub fn greeted(&mut self, id: &str) {
        let told = self.people.iter_mut().filter(|person| person.id == id);
        told.for_each(|person| person.is_to_be_told = false);
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
        let Stranger { id, name, asked_at, .. } = self.asked.remove(at);
        let person = Person { asked_at, is_to_be_told: true, ..Person::new(id, name, role) };
        let before = self.people.len();
        self.people.retain(|other| other.id != person.id);
        let was_known = self.people.len() < before;
        self.people.push(person.clone());
        Ok((person, was_known))
    }

    /// Lets in the person who was told this code, or gives the person of this id, who is let in, another
    /// role. Also returns whether the home knew this person before.
    ///
    /// # Errors
    /// As [`People::pair`]; and when a role is to be changed and is not named.
    pub(crate) fn let_in(&mut self, code_or_id: &str, role: Option<Role>) -> Result<(Person, bool)> {
        let is_let_in = self.people.iter().any(|person| person.id == code_or_id);
        match (self.pair(code_or_id, role.unwrap_or(Role::User)), role) {
            (Err(_), Some(role)) if is_let_in => {
                let person = self.change_role(code_or_id, role).context("the person is not let in")?;
                Ok((person, true))
            }
            (Err(_), None) if is_let_in => bail!(
                "the person with the id `{code_or_id}` is let in already; name the new role with `--as`, \
                 such as `--as owner`"
            ),
            (paired, _) => paired,
        }
    }

    /// Gives a person who is let in another role. `None` when no person of this id is let in.
    pub(crate) fn change_role(&mut self, id: &str, role: Role) -> Option<Person> {
        let person = self.people.iter_mut().find(|person| person.id == id)?;
        (person.role, person.is_to_be_told) = (role, true);
        Some(person.clone())
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
            let (code, _) = people.ask("77", "Bob", "77").unwrap().unwrap();
            let at = SystemClock.now().as_millisecond() - ago;
            people.asked[0].at = Timestamp::from_millisecond(at).unwrap();
            people.asked[0].told = super::TOLD_MAX;
            assert_eq!(people.is_told_enough("77"), is_good, "{ago}");
            assert_eq!(people.pair(&code, Role::User).is_ok(), is_good, "{ago}");
        }
    }
}
