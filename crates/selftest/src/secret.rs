//! A command prints a key that Bailey knows, as it is and in Base64. The journal must hold neither form.

use super::{
    attack::{Attempt, Tried},
    fixture::{Fixture, Side},
};
use crate::probe::base64;
use anyhow::Result;
use bailey_journal::{Entry, Fact, Journal, Payload, SystemClock};
use bailey_secrets::{Redactor, Vault};
use std::{fs, path::Path, sync::Arc};

pub(crate) async fn tried(fixture: &Fixture) -> Result<Tried> {
    let forms = [("it is", fixture.secret.clone()), ("Base64", base64(fixture.secret.as_bytes()))];
    let words = fixture.words("print {yard}/token.txt", Side::Inside, None);
    let ran = fixture.inside(words, fixture.limits.clone()).await?;
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    if !forms.iter().all(|(_, form)| printed.contains(form)) {
        return Ok(Tried {
            attack: Attempt::Nothing("the command did not print it".into()),
            control: Attempt::Nothing(String::new()),
        });
    }
    let attack = held(&fixture.home.journal(), &forms)?;
    // The control: the same text through a redactor that knows no key.
    let path = fixture.folder("bare")?.join("journal.db");
    let redactor = Redactor::new(&Vault::default());
    let (journal, _mint) = Journal::open(&path, redactor, Arc::new(SystemClock)).await?;
    let fact = Fact::Stopped;
    journal
        .append(Entry { session: None, effect: None, fact, payload: Some(Payload::Text(printed)) })
        .await?;
    let control = held(&path, &forms)?;
    Ok(Tried { attack, control })
}

/// Whether the journal's files hold one of the forms.
fn held(journal: &Path, forms: &[(&str, String)]) -> Result<Attempt> {
    for ending in ["db", "db-wal"] {
        let bytes = fs::read(journal.with_extension(ending)).unwrap_or_default();
        for (name, form) in forms {
            if bytes.windows(form.len()).any(|part| part == form.as_bytes()) {
                return Ok(Attempt::Reached(format!("the journal holds it as {name}")));
            }
        }
    }
    Ok(Attempt::Refused("the journal holds neither it nor its Base64".into()))
}
