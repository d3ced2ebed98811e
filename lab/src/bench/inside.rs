//! What happens within the process: a decision, and an append to the journal.

use super::case::{Case, compare, table};
use anyhow::{Context as _, Result};
use bailey_journal::{Entry, Fact, Journal, Macaroon, NewSession, OWNER, Payload, SystemClock};
use bailey_policy::{
    Caller, Caveat, Condition, DEFAULT_RULES, Facts, Places, Policy, Token, ToolGlob, built_in_rules, file,
};
use bailey_protocol::{
    Action, Command, Cost, Digest, Effect, EffectId, Kind, Labels, Limits, Role, Sealed, SessionId,
    Timestamp, TokenId, ToolEffect, ToolUse, TurnId,
};
use bailey_secrets::{Redactor, Secret, Vault};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

const ROUNDS: usize = 200;
/// Texts of a MiB that are redacted.
const REDACTIONS: usize = 20;
/// Appends that wait at the same time.
const GROUP: u32 = 64;
/// Entries that are signed and proven.
const PROOFS: usize = 50;
/// Entries of a journal that is verified, and how often that is done.
const ENTRIES: u64 = 100_000;
const VERIFICATIONS: usize = 5;
/// Bytes of a message, as a command's output often has.
const BYTES: usize = 1000;

pub(super) fn run() -> Result<()> {
    decisions()?;
    redaction()?;
    appends()
}

fn decisions() -> Result<()> {
    let sealed = Sealed::new(effect()).map_err(anyhow::Error::msg)?;
    let places = Places {
        workspace: "/home/ann/project".into(),
        user_home: "/home/ann".into(),
        bailey_home: "/home/ann/.bailey".into(),
        programs: vec!["/usr/bin/bailey".into()],
        project: None,
    };
    let default = policy(DEFAULT_RULES)?;
    let mut many = DEFAULT_RULES.to_owned();
    for number in 0..1000 {
        many.push_str(&format!(
            "\n[[rule]]\nname = \"rule-{number}\"\nanswer = \"deny\"\nreason = \"number {number}\"\nmatch = {{ action = \
             \"exec\", command = \"program-{number}\", path = \"{{workspace}}/folder-{number}/**\" }}\n"
        ));
    }
    let many = policy(&many)?;
    let decide = |policy: &Policy| {
        let facts = Facts::new(&sealed, Timestamp::UNIX_EPOCH, &places);
        for _ in 0..GROUP {
            drop(std::hint::black_box(policy.decide(&facts)));
        }
        Ok(())
    };
    let cases = vec![
        Case::new("the default rules", || decide(&default)),
        Case::new("the default rules and 1,000 more", || decide(&many)),
    ];
    compare("a decision about a command", ROUNDS, GROUP, cases)?;
    let under = |policy: &Policy| {
        let token = Token { policy: policy.digest(), ..token() };
        let caller = Caller { is_confined: true, ..Caller::default() };
        let at = Timestamp::UNIX_EPOCH;
        let facts =
            Facts { token: Some(&token), caller: &caller, newest: at, ..Facts::new(&sealed, at, &places) };
        for _ in 0..GROUP {
            drop(std::hint::black_box(policy.decide(&facts)));
        }
        Ok(())
    };
    let cases = vec![
        Case::new("the default rules", || under(&default)),
        Case::new("the default rules and 1,000 more", || under(&many)),
    ];
    compare("a decision under a token", ROUNDS, GROUP, cases)?;
    tools(&places)
}

/// Another runtime's tool, under the token of its task, with that many rules about such tools.
fn tools(places: &Places) -> Result<()> {
    let tool = ToolUse::judged("read_file".into(), Some(ToolEffect::Read), r#"{"path":"a"}"#.into());
    let effect = Effect { role: Role::Plugin, action: Action::Tool(tool), ..effect() };
    let sealed = Sealed::new(effect).map_err(anyhow::Error::msg)?;
    let of = |count: usize| {
        let mut rules = DEFAULT_RULES.to_owned();
        for number in 0..count {
            rules.push_str(&format!(
                "\n[[rule]]\nname = \"rule-{number}\"\nanswer = \"deny\"\nmatch = {{ tool = \"tool-{number}_*\" }}\n"
            ));
        }
        policy(&rules)
    };
    let (few, many) = (of(25)?, of(1000)?);
    let scope = Condition {
        action: Some(vec![Kind::Tool]),
        tool: Some(vec![ToolGlob::new("read_file")?]),
        effect: Some(vec![ToolEffect::Read]),
        ..Condition::default()
    };
    let caveat = Caveat { scope: Some(vec![scope]), ..caveat() };
    let judge = |policy: &Policy, is_held: bool| {
        let token = Token { policy: policy.digest(), caveats: vec![caveat.clone()], ..token() };
        let at = Timestamp::UNIX_EPOCH;
        let facts = Facts { token: is_held.then_some(&token), newest: at, ..Facts::new(&sealed, at, places) };
        for _ in 0..GROUP {
            drop(std::hint::black_box(policy.decide(&facts)));
        }
        Ok(())
    };
    let cases = vec![
        Case::new("under a token, 25 rules", || judge(&few, true)),
        Case::new("under a token, 1,000 rules", || judge(&many, true)),
        Case::new("by 25 rules", || judge(&few, false)),
        Case::new("by 1,000 rules", || judge(&many, false)),
    ];
    compare("a decision about another runtime's tool", ROUNDS, GROUP, cases)
}

/// A token for commands, narrowed once.
fn token() -> Token {
    Token {
        id: TokenId::new([7; 16]),
        policy: Digest::of(b""),
        caveats: vec![caveat(); 2],
        operations_left: 9,
    }
}

fn caveat() -> Caveat {
    let scope = Condition { action: Some(vec![Kind::Exec]), ..Condition::default() };
    let expires = Timestamp::from_second(4_000_000_000).ok();
    Caveat { scope: Some(vec![scope]), expires, operations: Some(1_000_000), ..Caveat::default() }
}

/// The redactor with four keys. A case's time is that of a MiB: its inverse is MiB/s.
fn redaction() -> Result<()> {
    let mut vault = Vault::default();
    for number in 0..4 {
        let value = format!("key-{number}-x7Kq9Lm2pBdW4TzRw8NsYc3HdF6gKe1Ua5QoXi0B");
        vault.insert(format!("KEY_{number}"), Secret::new(value));
    }
    let redactor = Redactor::new(&vault);
    let mebibyte = |line: &str| line.repeat((1 << 20) / line.len());
    let log =
        mebibyte("   Compiling bailey-secrets v0.1.0 (/home/ann/bailey/crates/secrets) 100% in 0.31s\n");
    let near = mebibyte("eDdLcTlMbTJwQmRXNFR6 key-1-x7Kq9Lm2pBdW4TzRw8Ns%59%63\n");
    let redact = |text: &str| {
        drop(std::hint::black_box(redactor.redact(text)));
        Ok(())
    };
    let cases = vec![
        Case::new("a compiler's output", || redact(&log)),
        Case::new("almost the keys, in every line", || redact(&near)),
    ];
    compare("redacting 1 MiB", REDACTIONS, 1, cases)
}

fn policy(rules: &str) -> Result<Policy> {
    let parsed = file::parse("bench.toml", rules, file::Format::Toml)?;
    Ok(Policy::new(built_in_rules(), parsed.rules))
}

fn effect() -> Effect {
    let command = Command {
        argv: vec!["/bin/sh".into(), "-c".into(), "cargo test --quiet && git status".into()],
        cwd: "/home/ann/project".into(),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    };
    Effect {
        id: EffectId::new(1, [1; 10]),
        session: session(),
        parent: None,
        call: None,
        role: Role::Agent,
        action: Action::Exec(command),
        labels: Labels::default(),
        cost: Cost::default(),
    }
}

fn session() -> SessionId {
    SessionId::new(1, [7; 10])
}

fn appends() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let vault = Vault::default();
    let file = folder.path().join("journal.db");
    let opened = Journal::open(&file, Redactor::new(&vault), Arc::new(SystemClock));
    let (journal, mint) = runtime.block_on(opened)?;
    let new = NewSession {
        agent: None,
        confined: None,
        workspace: "/p".into(),
        principal: OWNER.into(),
        model: "test/model".into(),
    };
    runtime.block_on(journal.open_session(session(), new))?;
    let rules = Digest::of(b"rules");
    runtime.block_on(mint.adopt(rules))?;
    let mut held = vec![runtime.block_on(mint.mint_token(session(), rules, caveat()))?];
    for _ in 0..8 {
        held.extend(held.last().cloned().map(|token| token.narrow(&caveat())).transpose()?);
    }
    let check = |token: &Macaroon| Ok(runtime.block_on(mint.present(token)).map(drop)?);
    let checks = [("as it was minted", held.first()), ("narrowed eight times", held.last())];
    let checks = checks.into_iter().filter_map(|(name, token)| Some((name, token?)));
    let checks = checks.map(|(name, token)| Case::new(name, move || check(token))).collect();
    compare("a token's chain and its place in the ledger", ROUNDS, 1, checks)?;
    let raw = Raw::open(&folder.path().join("raw.db"))?;
    let single = vec![
        Case::new("raw SQLite, WAL, one transaction each", || raw.insert(1)),
        Case::new("journal, one append", || Ok(runtime.block_on(journal.append(entry())).map(drop)?)),
    ];
    compare("one append of 1,000 bytes", ROUNDS, 1, single)?;
    let grouped = vec![
        Case::new("raw SQLite, WAL, 64 in one transaction", || raw.insert(GROUP)),
        Case::new("journal, 64 at the same time", || {
            runtime.block_on(async {
                let mut all = tokio::task::JoinSet::new();
                for _ in 0..GROUP {
                    let journal = journal.clone();
                    all.spawn(async move { journal.append(entry()).await });
                }
                while let Some(done) = all.join_next().await {
                    done??;
                }
                Ok(())
            })
        }),
    ];
    compare("an append among 64, per append", ROUNDS, GROUP, grouped)?;
    let proven = vec![
        Case::new("journal, one append", || Ok(runtime.block_on(journal.append(entry())).map(drop)?)),
        Case::new("journal, one append, signed and proven", || {
            runtime.block_on(async {
                let seq = journal.append(entry()).await?;
                let proof = journal.prove(seq, true, None).await?;
                std::hint::black_box(proof);
                Ok(())
            })
        }),
    ];
    compare("an append with its proof", PROOFS, 1, proven)?;
    verification(&runtime, &journal, &raw)
}

/// A whole chain, per 100,000 entries, beside reading as many rows and hashing them once.
fn verification(runtime: &tokio::runtime::Runtime, journal: &Journal, raw: &Raw) -> Result<()> {
    let mut entries = runtime.block_on(journal.verify())?.entries;
    while entries < ENTRIES {
        runtime.block_on(async {
            let mut all = tokio::task::JoinSet::new();
            for _ in 0..1000 {
                let journal = journal.clone();
                all.spawn(async move { journal.append(entry()).await });
            }
            while let Some(done) = all.join_next().await {
                done??;
            }
            anyhow::Ok(())
        })?;
        entries += 1000;
    }
    while raw.count()? < ENTRIES {
        raw.insert(1000)?;
    }
    let per = |count: u64| move |time: Duration| time.mul_f64(100_000.0 / count as f64);
    let (scale, yardstick) = (per(entries), per(raw.count()?));
    let (mut read, mut verified) = (Vec::new(), Vec::new());
    for _ in 0..VERIFICATIONS {
        let begin = Instant::now();
        std::hint::black_box(raw.hash()?);
        read.push(yardstick(begin.elapsed()));
        let begin = Instant::now();
        runtime.block_on(journal.verify())?;
        verified.push(scale(begin.elapsed()));
    }
    let rows = vec![
        ("raw SQLite, each row read and hashed".to_owned(), read),
        ("journal, chain, payloads and what is signed".to_owned(), verified),
    ];
    table("verifying, per 100,000 entries", rows);
    Ok(())
}

fn entry() -> Entry {
    let fact = Fact::TurnEnded { turn: TurnId::new(1, [3; 10]), reason: "answered".into() };
    Entry::of(session(), fact).with(Payload::Text("x".repeat(BYTES)))
}

/// The same rows without a chain, a redactor or another thread.
struct Raw {
    database: rusqlite::Connection,
}

impl Raw {
    fn open(file: &Path) -> Result<Self> {
        let database = rusqlite::Connection::open(file)?;
        database.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE TABLE entry (seq INTEGER PRIMARY KEY, body BLOB NOT NULL, hash BLOB NOT NULL);
             CREATE TABLE payload (seq INTEGER PRIMARY KEY, salt BLOB NOT NULL, bytes BLOB NOT NULL);",
        )?;
        Ok(Self { database })
    }

    fn count(&self) -> Result<u64> {
        Ok(self.database.query_row("SELECT count(*) FROM entry", [], |row| row.get(0))?)
    }

    /// Reads all, and hashes it.
    fn hash(&self) -> Result<[u8; 32]> {
        let mut all = Sha256::new();
        let mut rows =
            self.database.prepare("SELECT body, hash, salt, bytes FROM entry JOIN payload USING (seq)")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..4 {
                all.update(row.get_ref(column)?.as_blob()?);
            }
        }
        Ok(all.finalize().into())
    }

    fn insert(&self, count: u32) -> Result<()> {
        let tx = self.database.unchecked_transaction().context("a transaction")?;
        for _ in 0..count {
            let mut entry = tx.prepare_cached("INSERT INTO entry (body, hash) VALUES (?1, ?2)")?;
            let seq = entry.insert((vec![b'x'; 250], [0u8; 32]))?;
            let mut payload =
                tx.prepare_cached("INSERT INTO payload (seq, salt, bytes) VALUES (?1, ?2, ?3)")?;
            payload.execute((seq, [0u8; 16], vec![b'x'; BYTES]))?;
        }
        Ok(tx.commit()?)
    }
}
