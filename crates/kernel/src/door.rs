//! The way to further effects from inside a running one: what a sandbox or a sub-agent asks for goes the same
//! way as everything else, with the running effect as its parent.

use crate::{
    BoxFuture, Kernel, Output, Refused, Scope,
    admit::{ActionRequest, Admission},
    live::Audience,
};
use bailey_journal::{Macaroon, Purpose};
use bailey_policy::HostGlob;
use bailey_protocol::{Action, Cost, Digest, EffectId, Happening, Labels};
use std::{collections::BTreeSet, fmt, sync::Arc};
use tokio::sync::Mutex;

/// The way to further effects from inside a running one. The kernel puts it into the effect's `Io`.
#[derive(Clone)]
pub struct Door {
    pub(crate) kernel: Kernel,
    pub(crate) scope: Scope,
    pub(crate) parent: EffectId,
    pub(crate) labels: Labels,
    /// The hosts to which alone it leads, where it is a peer's.
    pub(crate) hosts: Option<Arc<Hosts>>,
}

/// The hosts of a peer's declaration, and the token that covers its requests.
pub(crate) struct Hosts {
    peer: String,
    hosts: Vec<HostGlob>,
    /// The names of the owner's keys that its requests may get.
    keys: BTreeSet<String>,
    /// The token, and the policy under which it was minted.
    pub(crate) token: Mutex<Option<(Digest, Macaroon)>>,
}

impl Hosts {
    pub(crate) fn new(peer: &str, hosts: Vec<HostGlob>, keys: BTreeSet<String>) -> Self {
        Self { peer: peer.into(), hosts, keys, token: Mutex::default() }
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("parent", &self.parent).finish_non_exhaustive()
    }
}

impl Door {
    /// Performs an action inside the running effect, on its authority and with its labels. Nobody can be
    /// asked from here: what would need a human is refused.
    ///
    /// # Errors
    /// When the gate refuses, or the journal cannot be written.
    pub fn act(&self, action: Action) -> BoxFuture<'_, Result<Output, Refused>> {
        Box::pin(async move {
            let scope = self.authority().await?;
            match self.kernel.admit(&scope, self.asked(action.clone()), &[]).await? {
                Admission::Run(started) => {
                    Ok(self.kernel.launch(&scope, *started, &action, Audience::Nobody).await?.output)
                }
                Admission::Denied(reasons) => Err(Refused::Denied(reasons)),
                Admission::Waits(id, _) => {
                    Err(Refused::Failed(format!("question {id} was asked from inside an effect")))
                }
            }
        })
    }

    /// Tells the session's front ends something that the running effect does.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn tell(&self, happening: Happening) -> Result<(), Refused> {
        self.kernel.tell(&self.scope, happening).await
    }

    /// Writes down that an action was refused by whoever would perform it, whatever the rules say of it.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn refuse(&self, action: Action, reason: String) -> BoxFuture<'_, Result<(), Refused>> {
        Box::pin(async move {
            let sealed = self.kernel.sealed(&self.scope, self.asked(action))?;
            self.kernel.deny(&self.scope, &sealed, vec![reason], None).await.map(drop)
        })
    }

    /// Starts a peer of the session, when it does not run.
    ///
    /// # Errors
    /// Why it cannot be called.
    pub async fn start(&self, peer: &str) -> Result<(), String> {
        self.kernel.start_peer(&self.scope, peer).await
    }

    /// Whether requests by this way may get this key of the owner's. Those of a peer get the keys of its
    /// declaration: another stand-in it has only from another program.
    #[must_use]
    pub fn takes_key(&self, name: &str) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.keys.contains(name))
    }

    /// By what authority an action is asked for. A peer has a token for the hosts of its declaration. When
    /// the rules change, the token is minted anew.
    async fn authority(&self) -> Result<Scope, Refused> {
        let Some(hosts) = &self.hosts else { return Ok(self.scope.clone()) };
        let mut kept = hosts.token.lock().await;
        loop {
            let policy = self.kernel.policy().await?;
            if let Some((digest, token)) = &*kept
                && *digest == policy.digest()
            {
                return Ok(self.scope.confined(token.clone(), None));
            }
            if let Some((_, old)) = kept.take() {
                self.kernel.end_token(&self.scope, old.id()).await?;
            }
            let minted = self.kernel.mint_requests(&self.scope, &policy, &hosts.peer, &hosts.hosts).await?;
            *kept = minted.map(|token| (policy.digest(), token));
        }
    }

    fn asked(&self, action: Action) -> ActionRequest {
        ActionRequest {
            action,
            purpose: Purpose::Own,
            for_a_change: false,
            call: None,
            parent: Some(self.parent),
            labels: self.labels.clone(),
            cost: Cost::default(),
        }
    }
}
