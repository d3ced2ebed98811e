//! The witness that the configuration names: a file or a server that is told of each checkpoint, so that who
//! later holds this machine cannot put an old copy of journal and key back unseen.
//!
//! A file is opened before its process binds itself, and only ever grows. A server gets each checkpoint as a
//! line of JSON by POST, and gives all of them back by GET at the same URL; it is reached through the network
//! door, by effects like any other.

use anyhow::{Context as _, Result, anyhow, bail};
use bailey_home::config::Witness;
use bailey_journal::{
    Journal,
    checkpoint::Checkpoint,
    witness::{WITNESS_BYTES_MAX, WitnessRecord},
};
use bailey_kernel::{Acted, Kernel, Scope};
use bailey_protocol::{Action, HeaderValue, HttpRequest, Report, Status};
use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    time::Duration,
};

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Checkpoints that are sent at a time.
const BATCH: usize = 256;

/// A witness that can be told.
#[derive(Debug)]
pub struct Post {
    witness: Witness,
    /// Open, where it is a file that could be opened.
    file: std::io::Result<Option<File>>,
}

/// All that a witness has, asked for by the owner.
pub async fn ask(witness: &Witness, owner: Option<(&Kernel, &Scope)>) -> Result<WitnessRecord> {
    let cannot = || format!("the witness `{witness}` cannot be asked");
    let bytes = match (witness, owner) {
        (Witness::File(path), _) => {
            let mut bytes = Vec::new();
            let file = File::open(path).with_context(cannot)?;
            file.take(WITNESS_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).with_context(cannot)?;
            bytes
        }
        (Witness::Url(url), Some(owner)) => {
            exchange(owner, request("GET", url, Vec::new())).await.with_context(cannot)?
        }
        (Witness::Url(_), None) => bail!("{}: there is no network door here", cannot()),
    };
    let too_much = || {
        let most = WITNESS_BYTES_MAX >> 20;
        anyhow!("the witness `{witness}` has more than {most} MiB: move its oldest lines to another file")
    };
    WitnessRecord::parse(&bytes).ok_or_else(too_much)
}

impl Post {
    /// Gets ready to tell it; that it cannot be reached is said when it is told.
    pub fn to(witness: &Witness) -> Self {
        let open = |path| OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path);
        let file = match witness {
            Witness::File(path) => open(path).map(Some),
            Witness::Url(_) => Ok(None),
        };
        Self { witness: witness.clone(), file }
    }

    /// Tells it of every checkpoint that it was not told of. A server is told by a session only.
    pub(crate) async fn deliver(&self, journal: &Journal, owner: Option<(&Kernel, &Scope)>) -> Result<()> {
        let name = self.witness.to_string();
        if matches!(self.witness, Witness::Url(_)) && owner.is_none() {
            return Ok(());
        }
        let waiting = journal.unwitnessed(&name).await?;
        self.is_there(&waiting)?;
        for batch in waiting.chunks(BATCH) {
            let told = self.tell(batch, owner).await;
            told.with_context(|| {
                format!(
                    "the witness `{name}` was not told everything; checkpoints that wait for it: {}",
                    waiting.len()
                )
            })?;
            if let Some(newest) = batch.last() {
                journal.witnessed(&name, newest).await?;
            }
        }
        Ok(())
    }

    /// Looks that a file is the one that was told before, where any was: what it lies on may not be mounted,
    /// and another of its name stand there, just made.
    fn is_there(&self, waiting: &[Checkpoint]) -> Result<()> {
        let Ok(Some(file)) = &self.file else { return Ok(()) };
        let begins_at = waiting.first().and_then(|first| first.statement().ok()).map_or(0, |says| says.epoch);
        if begins_at > 0 && file.metadata()?.len() == 0 {
            bail!(
                "the witness `{}` is empty, and was told of checkpoints before: mount what it lies on, or put its lines back; for one that \
                 begins anew, name another file",
                self.witness
            );
        }
        Ok(())
    }

    async fn tell(&self, batch: &[Checkpoint], owner: Option<(&Kernel, &Scope)>) -> Result<()> {
        let mut lines = String::new();
        for checkpoint in batch {
            lines.push_str(&serde_json::to_string(checkpoint)?);
            lines.push('\n');
        }
        match (&self.witness, &self.file, owner) {
            (_, Ok(Some(file)), _) => append(file, &lines),
            (_, Err(error), _) => bail!("it cannot be opened: {error}"),
            (Witness::Url(url), _, Some(owner)) => {
                exchange(owner, request("POST", url, lines.into_bytes())).await.map(drop)
            }
            _ => bail!("there is no way to it"),
        }
    }
}

/// Whole lines: after one that a full disk cut, a new one is begun.
fn append(mut file: &File, lines: &str) -> Result<()> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    let begin = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{begin}{lines}").as_bytes())?;
    Ok(file.sync_data()?)
}

/// Sends it, and what is answered in time; what is not is cancelled, so that its entry has an end.
async fn exchange((kernel, scope): (&Kernel, &Scope), action: Action) -> Result<Vec<u8>> {
    let acted = kernel.act(scope, action, &[]);
    tokio::pin!(acted);
    tokio::select! {
        acted = &mut acted => return answer(acted?),
        () = tokio::time::sleep(PATIENCE) => scope.cancel().cancel(),
    }
    // It may have been answered just then.
    answer(acted.await?)
}

fn request(method: &str, url: &str, body: Vec<u8>) -> Action {
    let kind = HeaderValue::Text("application/x-ndjson".into());
    let headers = if body.is_empty() { Vec::new() } else { vec![("content-type".into(), kind)] };
    Action::Http(HttpRequest { method: method.into(), url: url.into(), headers, body: body.into() })
}

fn answer(acted: Acted) -> Result<Vec<u8>> {
    let output = match acted {
        Acted::Done(output) => output,
        Acted::Denied(reasons) => bail!("denied by a rule: {}", reasons.join("; ")),
        Acted::Waiting(_) => bail!("a rule requires that a person is asked first"),
    };
    match (&output.outcome().status, output.report()) {
        (Status::Done, Report::Http(answer)) if (200..300).contains(&answer.status) => {
            Ok(answer.body.0.clone())
        }
        (Status::Done, Report::Http(answer)) => bail!("it answered with status {}", answer.status),
        (Status::Failed { reason }, _) => bail!("{reason}"),
        (Status::Cancelled, _) => bail!("it did not answer within {} s", PATIENCE.as_secs()),
        _ => bail!("it did not come to an end"),
    }
}
