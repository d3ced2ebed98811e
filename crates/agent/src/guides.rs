//! What a project says about itself to agents: `AGENTS.md` at its root, and in each directory that the agent
//! touches; and what the agent's own file and the papers of the home say.

use crate::Hands;
use bailey_kernel::{Context, Kernel, Paper, Refused, Scope, Segment, claims};
use bailey_protocol::{ToolCall, WsPath};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

/// The file's name (<https://agents.md>).
const NAME: &str = "AGENTS.md";
/// The most guides that one session looks for: each may be an effect.
const LOOKS_MAX: usize = 64;

/// The agent's own file, as far as this process knows it. Clones are one.
#[derive(Debug, Clone)]
pub struct Own {
    path: WsPath,
    text: Arc<Mutex<Option<String>>>,
    /// The papers beside it, which stay as they are as long as this process lives.
    papers: Arc<[(Paper, WsPath, Option<String>)]>,
}

impl Own {
    /// The file, and what it holds; none where it is not there.
    #[must_use]
    pub fn new(path: WsPath, text: Option<String>) -> Self {
        Self { path, text: Arc::new(Mutex::new(text)), papers: Arc::default() }
    }

    /// The same with the papers of the home, each with where it is and what it holds; none where it is not
    /// there.
    #[must_use]
    pub fn beside(self, papers: impl IntoIterator<Item = (Paper, WsPath, Option<String>)>) -> Self {
        Self { papers: papers.into_iter().collect(), ..self }
    }

    /// The file, absolute.
    #[must_use]
    pub fn path(&self) -> &WsPath {
        &self.path
    }

    /// What it holds; none where it is not there.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It holds this now. The model is shown it at the next turn.
    pub fn set(&self, text: Option<String>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// Where was looked for guides. Clones are one.
#[derive(Debug, Clone, Default)]
pub struct Guides {
    own: Option<Own>,
    looked: Arc<Mutex<BTreeSet<String>>>,
}

impl Guides {
    /// The same with the agent's own file and the papers beside it, which only its person's own session is
    /// shown.
    #[must_use]
    pub fn with(own: Option<Own>) -> Self {
        Self { own, ..Self::default() }
    }

    /// Reads the papers and the agent's own file, the guides from the root to where the
    /// person stands, and those that the context holds already, where they say something new. For the
    /// beginning of a turn.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn refresh(
        &self,
        kernel: &Kernel,
        scope: &Scope,
        context: &mut Context,
    ) -> Result<(), Refused> {
        let directories = on_the_way(&scope.workspace().0, scope.start());
        let mut paths: Vec<WsPath> = directories.iter().map(|directory| in_directory(directory)).collect();
        for segment in context.segments() {
            if let Segment::Guide(guide) = segment
                && !guide.is_own()
                && !paths.contains(guide.path())
            {
                paths.push(guide.path().clone());
            }
        }
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).extend(directories);
        // First, so that what they say is not labelled by what the project says.
        for (paper, path, text) in self.own.iter().flat_map(|own| own.papers.iter()) {
            if let Some(guide) = kernel.paper(scope, context, *paper, path, text.as_deref()).await? {
                context.push(guide);
            }
        }
        if let Some(own) = &self.own
            && let Some(guide) = kernel.own_guide(scope, context, own.path(), own.text().as_deref()).await?
        {
            context.push(guide);
        }
        for path in paths {
            if let Some(guide) = kernel.guide(scope, context, &path).await? {
                context.push(guide);
            }
        }
        Ok(())
    }

    /// The directories below the workspace on the way to these paths, from the root down, that nobody looked
    /// at yet.
    fn new_directories(&self, workspace: &str, paths: impl Iterator<Item = WsPath>) -> Vec<String> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = Vec::new();
        for path in paths {
            let Some((directory, _)) = path.0.rsplit_once('/') else { continue };
            for directory in on_the_way(workspace, &directory.into()).into_iter().skip(1) {
                if looked.len() < LOOKS_MAX && looked.insert(directory.clone()) {
                    new.push(directory);
                }
            }
        }
        new
    }
}

impl Hands {
    /// Reads the guides of directories that these calls were the first to touch.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn guides(&self, context: &mut Context, calls: &[ToolCall]) -> Result<(), Refused> {
        let workspace = &self.scope.workspace().0;
        let claimed = calls.iter().filter_map(|call| Some(claims(&*self.tools.find(&call.name)?, call)));
        let paths = claimed.flat_map(|claims| claims.reads.into_iter().chain(claims.writes));
        // The user's home has no guides, and what lies there is not below the workspace.
        let paths = paths.filter(|path| path.0 != "~" && !path.0.starts_with("~/"));
        let paths = paths.map(|path| crate::waves::clean(&self.scope.place(&path), workspace));
        for directory in self.guides.new_directories(workspace, paths) {
            if let Some(guide) = self.kernel.guide(&self.scope, context, &in_directory(&directory)).await? {
                context.push(guide);
            }
        }
        Ok(())
    }
}

/// The workspace, and each directory below it on the way to this one, which is the last; nothing of one
/// elsewhere.
fn on_the_way(workspace: &str, directory: &WsPath) -> Vec<String> {
    let Some(below) = directory.relative_to(workspace) else { return Vec::new() };
    let ends = below.match_indices('/').map(|(end, _)| end).chain((!below.is_empty()).then_some(below.len()));
    let directories = ends.filter_map(|end| below.get(..end)).map(|below| format!("{workspace}/{below}"));
    std::iter::once(workspace.to_owned()).chain(directories).collect()
}

fn in_directory(directory: &str) -> WsPath {
    WsPath(format!("{directory}/{NAME}"))
}
