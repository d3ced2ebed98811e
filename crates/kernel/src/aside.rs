//! The verb `call_aside`: one call of a tool by the owner, outside any turn. Its result passes the screen,
//! and becomes a part of a conversation only when the owner's next message brings it along.

use crate::{
    Kernel, Output, Plan, Refused, Scope, Tool,
    admit::{ActionRequest, Admission},
    call::picture,
    cut,
    live::Audience,
    screen, tool,
};
use bailey_journal::Purpose;
use bailey_protocol::{Action, Cost, Happening, Image, Integrity, Labels, Secrecy, Status, ToolCall};

/// The result of a call by the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// Whether the tool did its task.
    pub ok: bool,
    /// The screened text, as a model would read it.
    pub text: String,
    /// The picture that the call read, if any.
    pub image: Option<Image>,
}

impl Kernel {
    /// Performs a call on the owner's own authority. The front end is told the call, its output while it
    /// comes, and its result. A call that needs reads first, or a human's yes, is refused.
    ///
    /// # Errors
    /// [`Refused::Denied`] with the reason, or when the journal cannot be written.
    pub async fn call_aside(
        &self,
        scope: &Scope,
        tool: &dyn Tool,
        call: &ToolCall,
    ) -> Result<Aside, Refused> {
        let action = match tool::plan(tool, call, &[]) {
            Plan::Act(action) => action,
            Plan::Refuse(why) => return Err(Refused::Denied(vec![why])),
            Plan::Need(_) | Plan::Attend(_) | Plan::Delegate(_) => {
                return Err(Refused::Failed(format!("`{}` cannot be called outside a turn", call.name)));
            }
        };
        let aside = self.perform_aside(scope, action, tool, call).await;
        if let Err(Refused::Denied(reasons)) = &aside {
            self.tell_result(scope, call, (false, &reasons.join("; ")), String::new(), 0).await?;
        }
        aside
    }

    async fn perform_aside(
        &self,
        scope: &Scope,
        action: Action,
        tool: &dyn Tool,
        call: &ToolCall,
    ) -> Result<Aside, Refused> {
        let asked = ActionRequest {
            action: action.clone(),
            purpose: Purpose::Own,
            for_a_change: false,
            call: None,
            parent: None,
            labels: Labels::new(Integrity::Owner, Secrecy::Private),
            cost: Cost::default(),
        };
        let started = match self.admit(scope, asked, &[]).await? {
            Admission::Run(started) => started,
            Admission::Denied(reasons) => return Err(Refused::Denied(reasons)),
            Admission::Waits(question, _) => {
                let why = "the rules ask a person before this, also for the owner's own command";
                self.withdraw(scope, question, why).await?;
                return Err(Refused::Denied(vec![why.into()]));
            }
        };
        let finished = self.launch(scope, *started, &action, Audience::Call(call.id.clone())).await?;
        let outcome = finished.output.outcome();
        let is_clean = cut::to_conclude(self.journal().redactor(), &finished.output).is_none();
        let image = is_clean.then(|| picture(outcome)).flatten();
        let (conclusion, text) = self.conclude_aside(tool, call, &finished.output);
        let told = (conclusion.ok, conclusion.summary.as_str());
        self.tell_result(scope, call, told, text.clone(), outcome.duration_ms).await?;
        Ok(Aside { ok: conclusion.ok, text, image })
    }

    /// The end of a call by the owner, and its screened text.
    pub(crate) fn conclude_aside(
        &self,
        tool: &dyn Tool,
        call: &ToolCall,
        output: &Output,
    ) -> (tool::Conclusion, String) {
        let redactor = self.journal().redactor();
        let clean = cut::to_conclude(redactor, output);
        let conclusion = match output.outcome().status {
            Status::Cancelled | Status::Unknown => tool::Conclusion {
                ok: false,
                summary: "cancelled".into(),
                text: "cancelled before it ended".into(),
            },
            Status::Done | Status::Failed { .. } => {
                tool::conclude(tool, call, &[], clean.as_ref().unwrap_or(output), redactor)
            }
        };
        let text = screen::screen(redactor, &conclusion.text).text;
        (conclusion, text)
    }

    async fn tell_result(
        &self,
        scope: &Scope,
        call: &ToolCall,
        (ok, summary): (bool, &str),
        text: String,
        duration_ms: u64,
    ) -> Result<(), Refused> {
        let (call, summary) = (call.id.clone(), summary.to_owned());
        let happening = Happening::Result { call, ok, summary, text, duration_ms, enforced: None };
        self.tell(scope, happening).await
    }
}
