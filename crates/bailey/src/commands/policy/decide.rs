//! `bailey policy decide --stdio`: the gate for other runtimes. They run tools of their own, and ask here
//! whether they may; docs/extensions.md has the protocol.
//!
//! Lines are answered one after the other, in their order. What cannot be read is answered with an error and
//! forgotten; what cannot be judged or written down is denied.

mod line;

use crate::{
    compose::{self, Gate, Keys},
    config::Config,
    exit,
    front::EndSignals,
    home::Home,
    print::Printer,
};
use anyhow::{Context as _, Result};
use bailey_kernel::{Refused, Task};
use bailey_policy::{ARGUMENTS_MAX, Trust};
use bailey_protocol::Verdict;
use line::{Declared, LINE_BYTES_MAX, too_long};
pub(crate) use line::{Request, read};
use serde_json::{Value, json};
use std::{io, process::ExitCode, thread};
use tokio::sync::mpsc;

/// How many lines may wait.
const LINES_WAITING_MAX: usize = 16;
/// Most verdicts of one task.
const VERDICTS_MAX: u64 = 1_000_000;
/// Most bytes that one task may write, in all its lines together.
const TASK_BYTES_MAX: u64 = 1 << 30;

pub(super) async fn run(home: &Home, trust: Option<Trust>, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    let gate = compose::gate(home, &config, keys, trust).await?;
    let mut ended = EndSignals::listen()?;
    let mut lines = lines()?;
    let mut client = Client { gate, task: None };
    let code = loop {
        let line = tokio::select! {
            biased;
            code = ended.heard() => break code,
            line = lines.recv() => line,
        };
        match line {
            Some(line) => printer.json(&client.answer(line).await),
            None => break exit::DONE,
        }
    };
    client.end().await?;
    compose::sign(client.gate.kernel.journal(), None, None, printer).await;
    Ok(ExitCode::from(code))
}

/// A line of the other program's, or the reason why it cannot be taken.
type InputLine = Result<Vec<u8>, String>;

/// Reads lines in a thread of its own, which ends with the process.
fn lines() -> Result<mpsc::Receiver<InputLine>> {
    let (sender, lines) = mpsc::channel(LINES_WAITING_MAX);
    let read = move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next(&mut input) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    };
    thread::Builder::new().name("lines".into()).spawn(read).context("no thread can be started")?;
    Ok(lines)
}

/// The next line without its end; none at the end of the input. Of one that is too long nothing is kept.
fn next(input: &mut impl io::BufRead) -> io::Result<Option<InputLine>> {
    let (mut line, mut length) = (Vec::new(), 0_usize);
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok((length > 0).then(|| finished(line, length)));
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        length = length.saturating_add(part.len());
        if length <= LINE_BYTES_MAX {
            line.extend_from_slice(part);
        } else {
            line = Vec::new();
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(finished(line, length)));
        }
    }
}

fn finished(line: Vec<u8>, length: usize) -> InputLine {
    if length > LINE_BYTES_MAX { Err(too_long()) } else { Ok(line) }
}

/// The other program.
struct Client {
    gate: Gate,
    task: Option<OpenTask>,
}

/// The task that the other program works at.
struct OpenTask {
    task: Task,
    verdicts_left: u64,
    bytes_left: u64,
}

impl Client {
    async fn answer(&mut self, line: InputLine) -> Value {
        let bytes = line.as_ref().map_or(0, Vec::len);
        let asked = match line.and_then(|line| read(&line)) {
            Ok(asked) => asked,
            Err(error) => return json!({ "error": error }),
        };
        if let Some(open) = &mut self.task {
            open.bytes_left = open.bytes_left.saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
        let done = match asked {
            Request::Hello => {
                return json!({ "ok": true, "name": "bailey", "version": env!("CARGO_PKG_VERSION") });
            }
            Request::Decide { id, tool, args } => return self.decide(&id, &tool, &args).await,
            Request::Begin(declared) => {
                let begun = self.begin(declared).await;
                return begun.unwrap_or_else(|error| json!({ "error": error.to_string() }));
            }
            Request::Observe { tool, args, output } => self.observe(&tool, &args, &output).await,
            Request::End => self.end().await,
        };
        done.map_or_else(|error| json!({ "error": error.to_string() }), |()| json!({ "ok": true }))
    }

    async fn begin(&mut self, declared: Result<Declared, String>) -> Result<Value, Refused> {
        self.end().await?;
        let Declared { title, tools, remarks } = declared.map_err(Refused::Failed)?;
        let (connection, scope) =
            self.gate.connect().map_err(|error| Refused::Failed(format!("{error:#}")))?;
        let task = self.gate.kernel.begin_task(&connection, scope, title, tools).await?;
        self.task = Some(OpenTask { task, verdicts_left: VERDICTS_MAX, bytes_left: TASK_BYTES_MAX });
        Ok(if remarks.is_empty() { json!({ "ok": true }) } else { json!({ "ok": true, "remarks": remarks }) })
    }

    async fn decide(&mut self, id: &Value, tool: &str, args: &str) -> Value {
        let no = |reason: String| json!({ "id": id, "decision": "deny", "reason": reason });
        let Some(open) = &mut self.task else { return no(no_task()) };
        if open.verdicts_left == 0 || open.bytes_left == 0 {
            return no("this task has asked as much as a task may: begin another one".into());
        }
        open.verdicts_left -= 1;
        // Neither parsed nor kept.
        if args.len() > ARGUMENTS_MAX {
            return no(format!("{} bytes of arguments: at most {ARGUMENTS_MAX}", args.len()));
        }
        match self.gate.kernel.judge(&mut open.task, tool, args).await {
            Ok(judgement) => {
                let decision = match judgement.verdict {
                    Verdict::Allowed => "allow",
                    Verdict::Asked => "ask",
                    Verdict::Approved | Verdict::Denied => "deny",
                };
                json!({ "id": id, "decision": decision, "reason": judgement.reasons.join("; ") })
            }
            Err(error) => no(format!("it could not be judged: {error}")),
        }
    }

    async fn observe(&mut self, tool: &str, args: &str, output: &str) -> Result<(), Refused> {
        let open = self.task.as_mut().ok_or_else(|| Refused::Failed(no_task()))?;
        if open.bytes_left == 0 {
            return Err(Refused::Failed("this task has reported as much as a task may".into()));
        }
        self.gate.kernel.report(&mut open.task, tool, args, output).await
    }

    async fn end(&mut self) -> Result<(), Refused> {
        match self.task.take() {
            Some(open) => self.gate.kernel.end_task(open.task).await,
            None => Ok(()),
        }
    }
}

fn no_task() -> String {
    "there is no task: `begin` one first".into()
}

/// Whether a rule that allows everything lets this use of a tool through.
#[cfg(feature = "fuzz")]
pub(crate) fn is_judged(name: String, args: String) -> bool {
    use bailey_policy::{Answer, Facts, Places, Policy, Rule, Tier};
    use bailey_protocol::{
        Action, Cost, Effect, EffectId, Labels, Role, Sealed, SessionId, Timestamp, ToolEffect, ToolUse,
    };
    let rule = Rule {
        name: "all".into(),
        tier: Tier::User,
        priority: 0,
        answer: Answer::Allow,
        matches: bailey_policy::Condition::default(),
        except: Vec::new(),
        text: "everything".into(),
    };
    let effect = Effect {
        id: EffectId::new(0, [0; 10]),
        session: SessionId::new(0, [0; 10]),
        parent: None,
        call: None,
        role: Role::Plugin,
        action: Action::Tool(ToolUse::judged(name, Some(ToolEffect::Read), args)),
        labels: Labels::default(),
        cost: Cost::default(),
    };
    let Ok(sealed) = Sealed::new(effect) else { return false };
    let places = Places::default();
    let policy = Policy::new(Vec::new(), vec![rule]);
    let decided = policy.decide(&Facts::new(&sealed, Timestamp::UNIX_EPOCH, &places));
    matches!(decided.verdict, bailey_policy::Verdict::Allow(_))
}

#[cfg(test)]
mod tests;
