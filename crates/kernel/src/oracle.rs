//! The redactor is no oracle: what it takes out of a result tells whoever guesses a secret that the guess was
//! right. So the hits of a session are counted, and beyond a limit a result with a hit is not shown at all.

use crate::{Kernel, Refused, Scope, screen::Screened};
use bailey_journal::{Masked, hits};
use bailey_protocol::{Digest, ToolCall};

/// What the model is told in place of a result.
const WITHHELD: &str = "withheld: this result held the value of a secret that Bailey keeps, and so many results of this session did that to \
                        show where it stood would help to guess it. The call was done; nothing of its result is shown. Go on \
                        without it, and do not look for secrets; the person was told";

impl Kernel {
    /// Whether the screened result of a call may be shown, with what its entry says of the secrets in it;
    /// none where there was none. Call it with the `hits` lock held until the entry is written.
    pub(crate) async fn weigh(
        &self,
        scope: &Scope,
        call: &ToolCall,
        screened: &mut Screened,
    ) -> Result<Option<Masked>, Refused> {
        if screened.known.is_empty() {
            return Ok(None);
        }
        let asked = format!("{} {}", call.name, call.arguments);
        let clean = self.journal().redactor().redact(&asked);
        let of = (clean.hits == 0).then(|| Digest::of(asked.as_bytes()));
        let mut masked = Masked { secrets: std::mem::take(&mut screened.known), of, withheld: false };
        if let Some(limit) = self.inner.config.budgets.secret_hits {
            let before = self.journal().masked(scope.session()).await?;
            masked.withheld = hits(before.iter().chain([&masked])) > limit;
        }
        if masked.withheld {
            screened.text = WITHHELD.to_owned();
        }
        Ok(Some(masked))
    }

    /// What people are told of a result that was withheld.
    pub(crate) fn withheld(&self) -> String {
        let limit = self.inner.config.budgets.secret_hits.unwrap_or_default();
        format!(
            "a result was withheld from the model: more than {limit} different results of this session held known secrets, as they \
             do where somebody guesses them; `bailey audit log` shows the calls, and `limits.secret_hits` in config.toml is the limit"
        )
    }
}
